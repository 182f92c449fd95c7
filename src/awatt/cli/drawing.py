"""Bar charts for the terminal."""

from __future__ import annotations

from collections.abc import Mapping

WIDTH = 24  # characters of a full bar
EIGHTHS = " ▏▎▍▌▋▊▉"


def bar(share: float, width: int = WIDTH) -> str:
    """A bar of up to ``width`` characters, drawn to an eighth of a character."""
    full, eighth = divmod(round(min(max(share, 0.0), 1.0) * width * 8), 8)
    return ("█" * full + EIGHTHS[eighth].strip()).ljust(width)


def count_chart(counts: Mapping[str, int], none: int, rows: int) -> list[str]:
    """One line per aspect, most frequent first, then one for sentences without an aspect."""
    ranked = sorted(counts.items(), key=lambda item: -item[1])
    lines = [*ranked, ("no aspect" if "none" in counts else "none", none)]
    width, most = max(len(name) for name, _ in lines), max(1, *(count for _, count in lines))
    return [f"{name:<{width}}  {bar(n / most)} {n:>9,}  {n / max(rows, 1):>6.1%}" for name, n in lines]
