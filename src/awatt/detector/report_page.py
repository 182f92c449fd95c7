"""A report to share: one HTML file without scripts or anything loaded, that also prints well."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from awatt import __version__
from awatt.detector.comparison import AspectShares, Comparison
from awatt.detector.findings import AspectFindings, Findings, read_findings
from awatt.detector.models import FAST
from awatt.detector.opening import other_file_errors
from awatt.detector.quality import AspectQuality, CoursePoint, Measure, Quality, measure_file
from awatt.detector.report_charts import bar, interval, line_chart, percent
from awatt.errors import AwattError, plural
from awatt.records.source import OnError, raise_error

if TYPE_CHECKING:
    from awatt.detector.detector import AspectDetector

COLOURS = (
    *("#4e79a7", "#e0883b", "#59a14f", "#d1605e", "#8a6bb1", "#3fa7a0"),
    *("#c9a227", "#c2679a", "#7a8b3c", "#9c755f", "#5b8fd1", "#7f7f8f"),
)
MAX_COLUMNS = 6  # comparisons: those with the clearest differences
MAX_PANELS = 12  # aspects per comparison: those that differ most
MAX_DIFFERENCES = 6  # sentences that say what differs
NOT_MEASURED = "It has not been measured: that needs a random sample of the sentences with labels."
POLICY = "default-src 'none'; style-src 'unsafe-inline'"
STYLE = """
:root { color-scheme: light; --soft: #5d6570; --line: #e2e3e0; }
* { box-sizing: border-box; print-color-adjust: exact; -webkit-print-color-adjust: exact; }
body { margin: 0 auto; max-width: 62rem; padding: 2rem 1.2rem; font: 15px/1.5 system-ui, sans-serif; color: #20242a;
  background: #fff; }
h1 { font-size: 1.7rem; margin: 0; } h2 { font-size: 1.2rem; margin: 2.2rem 0 .5rem; }
h3 { font-size: 1rem; margin: 0; }
p { max-width: 46rem; } .soft, figcaption, small { color: var(--soft); }
table { border-collapse: collapse; width: 100%; } th { text-align: left; font-weight: 500; }
td, th { padding: .15rem .6rem .15rem 0; vertical-align: middle; } .number { text-align: right; white-space: nowrap;
  font-variant-numeric: tabular-nums; }
.bar { position: relative; display: block; height: .85rem; min-width: 6rem; background: #eeefec; border-radius: 3px; }
.bar i { position: absolute; inset: 0 auto 0 0; background: var(--c); border-radius: 3px; }
.bar b { position: absolute; top: calc(50% - 1px); height: 2px; background: #20242a; }
.panels { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(17rem, 100%), 1fr)); gap: 1rem 2rem; }
.panel { break-inside: avoid; min-width: 0; } .panel th { width: 34%; overflow-wrap: anywhere; } svg { width: 100%; }
.heat { width: auto; } .heat td { text-align: center; min-width: 2.6rem; border: 2px solid #fff; padding: .2rem .3rem; }
.scroll { overflow-x: auto; } blockquote { margin: .3rem 0; padding-left: .8rem; border-left: 3px solid var(--c); }
.aspect { break-inside: avoid; margin: .8rem 0; } mark { background: none; color: inherit; font-weight: 600;
  border-bottom: 2px solid var(--c); }
@media print { body { max-width: none; padding: 0; font-size: 11pt; } h2 { break-after: avoid; }
  @page { margin: 16mm; } }
"""


@dataclass(frozen=True)
class ReportPage:
    """What the page says besides the findings."""

    title: str
    findings: Findings
    quality: Quality | None  # on a random sample, or None where none is labelled
    course: Sequence[CoursePoint] = ()
    expectations: Sequence[str] = ()  # what to expect, as far as the examples show it
    details: Sequence[tuple[str, str]] = ()  # how it was made

    @property
    def summary(self) -> str:
        """What it is about, in a few words."""
        found = self.findings
        return f"{plural(found.n_reviews, 'review')}, {plural(found.n_sentences, 'sentence')}"

    def html(self) -> str:
        """The whole file."""
        found = self.findings
        colours = {name: COLOURS[n % len(COLOURS)] for n, name in enumerate(found.names)}
        share = 1 - found.none / max(1, found.n_sentences)
        aspects = plural(len(found.names), "aspect")
        parts = [
            f"<h1>{escape(self.title)}</h1>",
            f'<p class="soft">{self.summary}. At least one of {aspects} was found in {percent(share)} of the sentences.'
            "</p>",
            _section("How often each aspect is mentioned", _shares(found.aspects, colours)),
            _section("What differs most", _differences(found.comparisons)),
            *(_section(f"By {each.column}", _comparison(each, colours)) for each in found.comparisons[:MAX_COLUMNS]),
            _section("Mentioned together", _matrix(found)),
            _section("Typical sentences", "".join(_typical(each, colours[each.name]) for each in found.aspects)),
            _section("How good the detection is", self._quality(colours)),
            _section("How this was made", _details(self.details)),
        ]
        head = (
            '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
            f'<meta http-equiv="content-security-policy" content="{POLICY}">'
            f"<title>{escape(self.title)}</title><style>{STYLE}</style>"
        )
        body = "".join(parts)
        return f'<!doctype html>\n<html lang="en"><head>{head}</head><body><main>{body}</main></body></html>\n'

    def _quality(self, colours: dict[str, str]) -> str:
        expected = "".join(f"<p>{escape(line)}</p>" for line in self.expectations)
        if self.quality is None:
            return f"<p><b>{NOT_MEASURED}</b></p>{expected}"
        heads = ("aspect", "mentioned", "found", "precision", "recall", "F1")
        rows = [self.quality.overall, *self.quality.aspects]
        cells = "".join(_quality_row(row, colours.get(row.name, "#5d6570")) for row in rows)
        titles = "".join(f'<th scope="col"{" class=number" if n else ""}>{head}</th>' for n, head in enumerate(heads))
        said = f"Measured on {plural(self.quality.n_sentences, 'random sentence')} that a person labelled"
        note = f"<p>{said}, left out of what the detector learned from; in brackets the 95 % intervals.</p>"
        table = f'<div class="scroll"><table><thead><tr>{titles}</tr></thead><tbody>{cells}</tbody></table></div>'
        return note + table + _course(self.course)


def report_file(
    detector: AspectDetector,
    path: str,
    title: str | None = None,
    labels: str | None = None,
    *,
    learn: bool = True,
    split: bool = False,
    text_column: str = "text",
    aspects_column: str = "aspects",
    format: str | None = None,
    on_error: OnError = raise_error,
) -> ReportPage:
    """The report about a file of reviews, measured on the labelled part of them in the file ``labels``, if given.

    With ``learn`` the detector learns from a sample of the reviews first; ``split`` whole reviews into sentences.
    """
    detector, findings = read_findings(detector, path, text_column, format, split, learn, on_error)
    quality = None
    if labels is not None:
        with other_file_errors("--text-column; its name must be the same in FILE"):
            quality = measure_file(detector, labels, text_column, aspects_column, on_error=on_error)
    expected = () if quality else expectations(detector)
    return ReportPage(title or Path(path).name, findings, quality, (), expected, describe_detector(detector))


def expectations(detector: AspectDetector) -> list[str]:
    """What the examples say about the quality; nothing where they are too few."""
    try:
        return detector.report().expectations()
    except AwattError:
        return []


def describe_detector(detector: AspectDetector) -> list[tuple[str, str]]:
    """How the findings were made, for the end of the report."""
    cut = detector.thresholds().tolist()
    limits = [
        f"{name} {'its own' if math.isnan(value) else f'{value:.2f}'}"
        for name, value in zip(detector.aspects, cut, strict=True)
    ]
    counts = [f"{name} {count}" for name, count in zip(detector.aspects, detector.counts_.tolist(), strict=True)]
    return [
        ("Program", f"awatt {__version__}"),
        ("Model", str(detector.model or FAST)),
        ("Examples per aspect", ", ".join(counts)),
        ("Thresholds", ", ".join(limits)),
    ]


def _section(title: str, content: str) -> str:
    return f"<section><h2>{escape(title)}</h2>{content}</section>" if content else ""


def _shares(aspects: Sequence[AspectFindings], colours: dict[str, str]) -> str:
    top = max((each.reviews.high for each in aspects), default=1.0) or 1.0
    rows = "".join(
        f'<tr><th scope="row">{escape(each.name)}</th><td style="width: 50%">'
        f"{bar(each.reviews, colours[each.name], top)}</td>"
        f'<td class="number">{percent(each.reviews.value)}</td><td class="number soft">{interval(each.reviews)}'
        f'</td><td class="number">{plural(each.sentences, "sentence")}</td></tr>'
        for each in aspects
    )
    note = '<p class="soft">Share of the reviews, with its 95 % interval, and the number of sentences.</p>'
    return f'<div class="scroll"><table><tbody>{rows}</tbody></table></div>{note}' if rows else ""


def _differences(comparisons: Sequence[Comparison]) -> str:
    """In sentences: the aspects whose highest and lowest share have intervals that do not overlap."""
    found: list[tuple[float, str]] = []
    for comparison in comparisons:
        for aspect in comparison.aspects:
            known = [(share, group) for share, group in zip(aspect.shares, comparison.groups, strict=True) if share]
            (low, least), (high, most) = (pick(known, key=lambda each: each[0].value) for pick in (min, max))
            if low.high < high.low:
                shares = f"{percent(high.value)} of the reviews with {escape(comparison.column)} {escape(most)}"
                other = f"{percent(low.value)} with {escape(least)}"
                found.append((aspect.strength, f"<li><b>{escape(aspect.name)}</b>: in {shares}, in {other}.</li>"))
    lines = [line for _, line in sorted(found, key=lambda each: -each[0])[:MAX_DIFFERENCES]]
    if not lines:
        return "<p>No difference by a column is clear.</p>" if comparisons else ""
    return f"<ul>{''.join(lines)}</ul>"


def _comparison(comparison: Comparison, colours: dict[str, str]) -> str:
    shares = [share.high for each in comparison.aspects for share in each.shares if share]
    top = next((each for each in (0.05, 0.1, 0.2, 0.3, 0.4, 0.6, 0.8) if each >= max(shares, default=1.0)), 1.0)
    draw = _line if comparison.kind == "time" else _bars
    shown = comparison.aspects[:MAX_PANELS]
    panels = "".join(
        f'<div class="panel"><h3>{escape(each.name)}</h3>{draw(comparison, each, colours[each.name], top)}</div>'
        for each in shown
    )
    left = len(comparison.aspects) - len(shown)
    rest = f" Not shown: {plural(left, 'further aspect')} with smaller differences." if left else ""
    drawn = "The bands" if comparison.kind == "time" else f"A full bar is {percent(top)}; the thin lines"
    return f'<div class="panels">{panels}</div><p class="soft">{drawn} are 95 % intervals.{rest}</p>'


def _bars(comparison: Comparison, aspect: AspectShares, colour: str, top: float) -> str:
    rows = "".join(
        f'<tr><th scope="row">{escape(group)}</th><td>{bar(share, colour, top) if share else ""}</td>'
        f'<td class="number">{percent(share.value) if share else "–"}</td></tr>'
        for group, share in zip(comparison.groups, aspect.shares, strict=True)
    )
    return f"<table><tbody>{rows}</tbody></table>"


def _line(comparison: Comparison, aspect: AspectShares, colour: str, top: float) -> str:
    label = f"{aspect.name} by {comparison.column}"
    return line_chart(comparison.groups, aspect.shares, colour, top, label)


def _matrix(found: Findings) -> str:
    if len(found.names) < 2:
        return ""
    most = max((count for n, row in enumerate(found.together) for m, count in enumerate(row) if n != m), default=0) or 1

    def cell(n: int, m: int) -> str:
        if n == m:
            return '<td class="soft">·</td>'
        count = found.together[n][m]
        return f'<td style="background: rgba(78, 121, 167, {0.08 + 0.5 * count / most:.2f})">{count:,}</td>'

    heads = "".join(f'<th scope="col">{escape(name)}</th>' for name in found.names)
    rows = "".join(
        f'<tr><th scope="row">{escape(name)}</th>{"".join(cell(n, m) for m in range(len(found.names)))}</tr>'
        for n, name in enumerate(found.names)
    )
    note = '<p class="soft">Sentences that mention both aspects.</p>'
    return f'<div class="scroll"><table class="heat"><thead><tr><td></td>{heads}</tr></thead>{rows}</table></div>{note}'


def _typical(aspect: AspectFindings, colour: str) -> str:
    quotes = []
    for each in aspect.typical:
        pieces = (f"<mark>{escape(text)}</mark>" if aspect.name in of else escape(text) for text, of in each.pieces())
        quotes.append(f"<blockquote>{''.join(pieces)}</blockquote>")
    content = "".join(quotes) or '<p class="soft">It was not found.</p>'
    return f'<div class="aspect" style="--c: {colour}"><h3>{escape(aspect.name)}</h3>{content}</div>'


def _quality_row(row: AspectQuality, colour: str) -> str:
    def cell(measure: Measure | None) -> str:
        return f'<td class="number">{"–" if measure is None else escape(str(measure))}</td>'

    counts = f'<td class="number">{row.mentioned:,}</td><td class="number">{row.found:,}</td>'
    name = f'<th scope="row" style="border-left: 4px solid {colour}; padding-left: .5rem">{escape(row.name)}</th>'
    return f"<tr>{name}{counts}{cell(row.precision)}{cell(row.recall)}{cell(row.f1)}</tr>"


def _course(points: Sequence[CoursePoint]) -> str:
    if len(points) < 2 or not any(point.quality.overall.f1 for point in points):
        return ""
    names = [plural(point.n_examples, "example") for point in points]
    panels = "".join(
        f'<div class="panel"><h3>{title}</h3>{line_chart(names, shares, "#2f6299", 1.0, f"{title} by examples")}</div>'
        for title, shares in (
            ("F1", [point.quality.overall.f1 for point in points]),
            ("Precision", [point.quality.overall.precision for point in points]),
            ("Recall", [point.quality.overall.recall for point in points]),
        )
    )
    days = [f"{datetime.fromtimestamp(point.when):%d %B %Y}" for point in points if point.when]
    span = "" if not days else f", on {days[0]}" if days[0] == days[-1] else f", from {days[0]} to {days[-1]}"
    note = f'<p class="soft">All aspects on the same sample, as the detector learned from more examples{span}.</p>'
    return f'<h3>Over time</h3><div class="panels">{panels}</div>{note}'


def _details(details: Sequence[tuple[str, str]]) -> str:
    rows = "".join(f'<tr><th scope="row">{escape(name)}</th><td>{escape(value)}</td></tr>' for name, value in details)
    return f"<table><tbody>{rows}</tbody></table>" if rows else ""
