"""Results as HTML, for notebooks: deciding words marked in the colour of their aspect, everything else escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from itertools import compress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from awatt.detector.detector import AspectDetector
    from awatt.detector.report import Report
    from awatt.detector.results import Detection

#: of the same aspects as the terminal's colours; translucent, so that they suit light and dark pages
HUES = (187, 45, 300, 130, 220, 0)
NUMBERS = "text-align: right"


def mark(text: str, number: int, title: str = "") -> str:
    """The text in the colour of aspect ``number``."""
    colour = f"hsla({HUES[number % len(HUES)]}, 80%, 45%"
    style = f"background: {colour}, 0.2); border-bottom: 2px solid {colour}, 0.8); color: inherit; padding: 0 2px"
    hint = f' title="{escape(title)}"' if title else ""
    return f'<mark style="{style}"{hint}>{escape(text)}</mark>'


def detection_html(found: Detection) -> str:
    """The sentence with its deciding words marked, then the aspects with their scores."""
    order = {aspect: number for number, aspect in enumerate(found.scores)}
    pieces = found.pieces()
    sentence = "".join(mark(text, order[of[0]], ", ".join(of)) if of else escape(text) for text, of in pieces)
    named = [mark(f"{aspect} {found.scores[aspect]:.2f}", order[aspect]) for aspect in found.aspects]
    return f'<div style="margin: 2px 0">{sentence} → {" ".join(named) or "none"}</div>'


def detector_html(detector: AspectDetector) -> str:
    """The aspects with their thresholds, and the first example of each with its deciding words."""
    examples, cut = detector.examples_, detector.thresholds().tolist()
    rows = []
    for number, (aspect, count) in enumerate(zip(detector.aspects_, detector.counts_.tolist(), strict=True)):
        limit = "" if cut[number] != cut[number] else f"{cut[number]:.2f}"  # NaN: the model decides per sentence
        first = ""
        if examples is not None and count:
            shown = detector.detect(next(compress(examples.texts, examples.labels[:, number])))
            first = detection_html(shown)
        rows.append([mark(aspect, number), f"{count:,}", limit, first])
    heads = ["aspect", "examples", "threshold", "first example, as the detector sees it"]
    return f"<div><code>{escape(repr(detector))}</code></div>{table(heads, rows)}"


def report_html(report: Report) -> str:
    """The table of the aspects, what to expect on the file, and what looks wrong."""
    heads, rows = report.table()
    cells = [[mark(row[0], number), *map(escape, row[1:])] for number, row in enumerate(rows)]
    parts = [table([*heads, ""], cells), *(f"<p>{escape(line)}</p>" for line in report.expectations())]
    for title, lines in report.findings():
        parts.append(f"<p><b>{escape(title)}</b></p><ul>{''.join(f'<li>{escape(line)}</li>' for line in lines)}</ul>")
    return "".join(parts)


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table whose cells are HTML: the first and the last column as text, those between as numbers."""

    def line(tag: str, cells: Sequence[str]) -> str:
        styles = ["text-align: left", *[NUMBERS] * (len(cells) - 2), "text-align: left"]
        made = (f'<{tag} style="{style}">{cell}</{tag}>' for style, cell in zip(styles, cells, strict=True))
        return f"<tr>{''.join(made)}</tr>"

    body = "".join(line("td", row) for row in rows)
    return f"<table><thead>{line('th', heads)}</thead><tbody>{body}</tbody></table>"
