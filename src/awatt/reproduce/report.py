"""One self-contained HTML file with every table and figure that has results."""

from __future__ import annotations

import base64
from html import escape
from pathlib import Path
from string import Template

from awatt import __version__
from awatt.files import write_text
from awatt.reproduce.formats import Table
from awatt.reproduce.publish import figure_path, publish
from awatt.reproduce.suites import FIGURES, ITEMS
from awatt.reproduce.tables import table

_PAGE = Template("""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>awatt: the paper's tables and figures</title>
<style>
:root { color-scheme: light dark; --text: #1d1d1f; --page: #ffffff; --soft: #f4f5f7; --line: #d5d8dd; --link: #0060a0; }
@media (prefers-color-scheme: dark) {
  :root { --text: #e6e6e6; --page: #17181b; --soft: #222429; --line: #3a3d44; --link: #7cc0f2; }
}
body { margin: 0 auto; max-width: 75rem; padding: 1rem; font: 16px/1.5 system-ui, sans-serif;
  color: var(--text); background: var(--page); }
a { color: var(--link); }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: 0.875rem; font-variant-numeric: tabular-nums; }
th, td { padding: 0.25rem 0.75rem 0.25rem 0; text-align: left; white-space: nowrap;
  border-bottom: 1px solid var(--line); }
thead th { background: var(--soft); }
td em { opacity: 0.75; }
img { max-width: 100%; background: #ffffff; border-radius: 6px; padding: 0.5rem; box-sizing: border-box; }
.note { font-size: 0.875rem; max-width: 55rem; }
</style>
</head>
<body>
<h1>The paper's tables and figures</h1>
<p>Multi-Label Few-Shot Learning for Aspect Category Detection (Hu et al. 2021,
<a href="https://aclanthology.org/2021.acl-long.495">acl-long.495</a>), reproduced with awatt $version.
Numbers <em>in italics</em> are quoted from the paper; all others come from our runs.</p>
<nav><ul>
$links
</ul></nav>
$sections
</body>
</html>
""")


def write_report(results: Path) -> Path:
    """Write all tables and figures, then an HTML page with all of them. Returns its path."""
    written = set(publish(results))
    links, sections = [], []
    for name, item in ITEMS.items():
        if name in FIGURES:
            path = figure_path(results, name, "svg")
            content = _image(path, item.title) if path in written else ""
        else:
            content = _table(table(name, results)) if results / f"{name}.md" in written else ""
        if content:
            links.append(f'<li><a href="#{name}">{escape(item.title)}</a></li>')
            sections.append(f'<section id="{name}">\n<h2>{escape(item.title)}</h2>\n{content}\n</section>')
    page = _PAGE.substitute(version=__version__, links="\n".join(links), sections="\n".join(sections))
    target = results / "report.html"
    write_text(target, page)
    return target


def _table(content: Table) -> str:
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in content.header)
    rows = []
    for row in content.rows:
        texts = [escape(str(cell)) for cell in row]
        cells = [
            f"<em>{text}</em>" if text and content.is_quoted(column) else text for column, text in enumerate(texts)
        ]
        rows.append("<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
    notes = "\n".join(f'<p class="note">{escape(note)}</p>' for note in content.notes)
    body = "\n".join(rows)
    return (
        f'<div class="wide"><table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table></div>\n{notes}'
    )


def _image(path: Path, title: str) -> str:
    """As a data URL, so that the ids of one SVG cannot clash with those of another."""
    content = base64.b64encode(path.read_bytes()).decode("ascii")
    return f'<img alt="{escape(title)}" src="data:image/svg+xml;base64,{content}">'
