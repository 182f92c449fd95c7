"""Write tables, figures and the README's table from existing results, without training."""

from __future__ import annotations

from pathlib import Path

from awatt.errors import AwattError
from awatt.files import write_text, write_whole
from awatt.reproduce.figures import figure_csv
from awatt.reproduce.formats import as_csv, latex, markdown, markdown_lines
from awatt.reproduce.plots import draw
from awatt.reproduce.results import result_files
from awatt.reproduce.suites import FIGURES, ITEMS
from awatt.reproduce.tables import headline, table

BEGIN, END = "<!-- results:begin -->", "<!-- results:end -->"


def publish(results: Path) -> list[Path]:
    """Write all tables and figures that have results, and the README's table. Returns the written files."""
    result_files(results)  # raises an error if there are none
    written = write_texts(readme_text(results))
    for name in ITEMS:
        written += publish_item(name, results)
    return written


def publish_item(name: str, results: Path) -> list[Path]:
    """Write one table or figure, if it has results."""
    written = write_texts(item_texts(name, results))
    if name in FIGURES and written:
        for suffix, image in draw(name, written[0].read_text("utf-8")).items():
            path = figure_path(results, name, suffix)
            write_whole(path, image)
            written.append(path)
    return written


def item_texts(name: str, results: Path) -> dict[Path, str]:
    """File -> content: a table in three formats if it has rows, a figure's data if all of its runs are finished."""
    if name in FIGURES:
        data = figure_csv(name, results)
        return {} if data is None else {figure_path(results, name, "csv"): data}
    content = table(name, results)
    formats = {"md": markdown, "csv": as_csv, "tex": latex} if content.rows else {}
    return {results / f"{name}.{suffix}": write(content) for suffix, write in formats.items()}


def readme_text(results: Path) -> dict[Path, str]:
    """The README next to the results folder with its table replaced, if it has the markers."""
    path = results.absolute().parent / "README.md"
    if not path.is_file():
        return {}
    before, begin, rest = path.read_text("utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    if begin and not end:
        raise AwattError(f"{path} has {BEGIN} but no {END} after it. Add {END} where the table ends.")
    return {path: f"{before}{BEGIN}\n{markdown_lines(headline(results))}{END}{after}"} if begin else {}


def figure_path(results: Path, name: str, suffix: str) -> Path:
    """Path of a figure."""
    return results / "figures" / f"{name}.{suffix}"


def write_texts(contents: dict[Path, str]) -> list[Path]:
    """Write each file; an interrupted write leaves the old one."""
    for path, content in contents.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, content)
    return list(contents)
