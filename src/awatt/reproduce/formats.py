"""A table of numbers as Markdown, CSV and LaTeX."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass


@dataclass(frozen=True)
class Measured:
    """A mean with the half-width of its 95 % confidence interval, and significance marks."""

    mean: float
    half_width: float | None
    digits: int
    marks: str = ""

    def __str__(self) -> str:
        mean = f"{self.mean:.{self.digits}f}"
        interval = "" if self.half_width is None else f" ± {self.half_width:.{self.digits}f}"
        return mean + interval + self.marks


@dataclass(frozen=True)
class Table:
    """A table. Columns whose name begins with ``quoted`` hold the paper's numbers and are set in italics."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str | Measured, ...], ...]
    notes: tuple[str, ...] = ()

    def is_quoted(self, column: int) -> bool:
        """Whether the column holds the paper's numbers."""
        return self.header[column].startswith("quoted")


def markdown_lines(table: Table) -> str:
    """The table as Markdown, without title and notes."""
    lines = ["| " + " | ".join(table.header) + " |", "|" + "---|" * len(table.header)]
    for row in table.rows:
        cells = [f"*{cell}*" if cell and table.is_quoted(column) else str(cell) for column, cell in enumerate(row)]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def markdown(table: Table) -> str:
    """A Markdown page: title, table, notes."""
    notes = "".join(f"\n{note}\n" for note in table.notes)
    return f"# {table.title}\n\n{markdown_lines(table)}{notes}"


def as_csv(table: Table) -> str:
    """For programs: a measured column becomes three columns: mean, half-width and marks."""
    measured = [
        any(isinstance(row[column], Measured) for row in table.rows) for column in range(len(table.header))
    ]  # an empty cell of such a column becomes three, too
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    header: list[str] = []
    for name, is_measured in zip(table.header, measured, strict=True):
        header += [name, f"{name} ±", f"{name} marks"] if is_measured else [name]
    writer.writerow(header)
    for row in table.rows:
        cells: list[str] = []
        for cell, is_measured in zip(row, measured, strict=True):
            if isinstance(cell, Measured):
                width = "" if cell.half_width is None else f"{cell.half_width:.{cell.digits}f}"
                cells += [f"{cell.mean:.{cell.digits}f}", width, cell.marks]
            else:
                cells += [cell, "", ""] if is_measured else [cell]
        writer.writerow(cells)
    return text.getvalue()


_LATEX = {
    "\\": r"\textbackslash{}",
    **{letter: f"\\{letter}" for letter in "&%$#_{}"},
    "±": r"$\pm$",
    "Δ": r"$\Delta$",
    "†": r"$^\dagger$",
    "‡": r"$^\ddagger$",
    "×": r"$\times$",
}


def latex(table: Table) -> str:
    """A LaTeX ``table`` environment; needs the package booktabs."""
    lines = [r"\begin{table*}", r"\small", r"\begin{tabular}{" + "l" * len(table.header) + "}", r"\toprule"]
    lines += [_latex_row(table.header), r"\midrule"]
    for row in table.rows:
        texts = [_escape(str(cell)) for cell in row]
        lines.append(
            " & ".join(
                rf"\emph{{{text}}}" if text and table.is_quoted(column) else text for column, text in enumerate(texts)
            )
            + r" \\"
        )
    caption = " ".join((table.title + ".", *table.notes))
    lines += [r"\bottomrule", r"\end{tabular}", rf"\caption{{{_escape(caption)}}}", r"\end{table*}"]
    return "\n".join(lines) + "\n"


def _latex_row(cells: tuple[str, ...]) -> str:
    return " & ".join(map(_escape, cells)) + r" \\"


def _escape(text: str) -> str:
    return "".join(_LATEX.get(letter, letter) for letter in text)
