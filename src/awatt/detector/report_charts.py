"""The charts of a report, as HTML and SVG."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Decimal
from html import escape

from awatt.detector.quality import Measure


def percent(share: float) -> str:
    """A share, with a decimal where it is small. Halves are rounded up, as the workbench's `toFixed` does."""
    last = Decimal("0.1") if 0 < share < 0.1 else Decimal(1)
    return f"{Decimal(100 * share).quantize(last, ROUND_HALF_UP)} %"


def interval(share: Measure) -> str:
    """The interval of a share."""
    return f"{percent(share.low)} to {percent(share.high)}"


def bar(share: Measure, colour: str, top: float) -> str:
    """A bar for a share, full at ``top``, with its interval as a thin line."""
    filled, low, high = (100 * min(1.0, value / top) for value in (share.value, share.low, share.high))
    line = f'<b style="left: {low:.1f}%; width: {high - low:.1f}%"></b>'
    return f'<span class="bar" style="--c: {colour}"><i style="width: {filled:.1f}%"></i>{line}</span>'


def line_chart(names: Sequence[str], shares: Sequence[Measure | None], colour: str, top: float, label: str) -> str:
    """A line in the band of its intervals, as SVG; it is broken where there is no share."""
    wide, tall, left = 320, 130, 44
    steps = max(1, len(names) - 1)
    xs = [left + (wide - left - 8) * n / steps for n in range(len(names))]

    def y(value: float) -> float:
        return 8 + (tall - 32) * (1 - min(1.0, value / top))

    runs: list[list[tuple[float, Measure]]] = []
    for n, share in enumerate(shares):
        if share is not None:
            if n == 0 or shares[n - 1] is None:
                runs.append([])
            runs[-1].append((xs[n], share))
    drawn = []
    for run in runs:
        edge = [(x, y(s.low)) for x, s in run] + [(x, y(s.high)) for x, s in reversed(run)]
        drawn.append(f'<path d="{_path(edge)}Z" fill="{colour}" fill-opacity=".2"/>')
        drawn.append(
            f'<path d="{_path([(x, y(s.value)) for x, s in run])}" fill="none" stroke="{colour}" stroke-width="2"/>'
        )
        drawn += [f'<circle cx="{x:.1f}" cy="{y(s.value):.1f}" r="2.5" fill="{colour}"/>' for x, s in run]
    for value in (0.0, top):
        at = f'y1="{y(value):.1f}" y2="{y(value):.1f}"'
        drawn.append(f'<line x1="{left}" x2="{wide - 8}" {at} stroke="#20242a" stroke-opacity=".15"/>')
        drawn.append(
            f'<text x="{left - 6}" y="{y(value) + 4:.1f}" text-anchor="end" font-size="11">{percent(value)}</text>'
        )
    for n, anchor in ((0, "start"), (len(names) - 1, "end")):
        drawn.append(
            f'<text x="{xs[n]:.1f}" y="{tall - 6}" text-anchor="{anchor}" font-size="11">{escape(names[n])}</text>'
        )
    return f'<svg viewBox="0 0 {wide} {tall}" role="img" aria-label="{escape(label)}">{"".join(drawn)}</svg>'


def _path(points: Sequence[tuple[float, float]]) -> str:
    return "".join(f"{'L' if n else 'M'}{x:.1f} {y:.1f}" for n, (x, y) in enumerate(points))
