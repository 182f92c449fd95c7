"""The code of the README and of every page of the docs runs, and prints what the pages show; links lead somewhere."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from awatt import AspectDetector
from awatt.cli import app
from notebooks import run_notebook
from notebooks import shown as shown_texts
from pages import Step, run_step, steps

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
PAGES = sorted((ROOT / "docs").rglob("*.md"))

LINK = re.compile(r"\]\((?!https?:|#|mailto:)([^)#\s]+)(#[^)\s]+)?\)")
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
SECONDS = re.compile(r"\bin [\d.,]+ s\b")


@pytest.fixture(autouse=True)
def own_methods() -> Iterator[None]:
    """Methods that a page adds are gone after it."""
    if not find_spec("torch"):
        yield
        return
    from awatt.models.methods import MODELS

    before = dict(MODELS)
    yield
    MODELS.clear()
    MODELS.update(before)


def scripts() -> list[Any]:
    """The README's blocks each on its own; those of another page one after the other."""
    readme = enumerate(steps(README.read_text("utf-8")), 1)
    single = [pytest.param([step], id=f"README-{number}") for number, step in readme]
    pages = [pytest.param(found, id=page.stem) for page in PAGES if (found := steps(page.read_text("utf-8")))]
    return single + pages


def check_output(printed: str, shown: str) -> None:
    """The same words, and numbers that differ by 1 in the last digit shown at most: machines round differently."""
    printed, shown = SECONDS.sub("in # s", printed), SECONDS.sub("in # s", shown)
    assert NUMBER.sub("#", printed).split() == NUMBER.sub("#", shown).split()
    for found, wanted in zip(NUMBER.findall(printed), NUMBER.findall(shown), strict=True):
        decimals = len(wanted.partition(".")[2])
        tolerance = 1.01 * 10**-decimals if decimals else 0
        assert float(found) == pytest.approx(float(wanted), rel=0, abs=tolerance), printed


@pytest.mark.parametrize("script", scripts())
def test_a_page_prints_what_it_shows(script: list[Step], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = "".join(step.code for step in script)
    for needed, word in (("torch", "awatt.research"), ("torch", "awatt train"), ("pandas", "pandas")):
        if word in code and not find_spec(needed):
            pytest.skip(f"needs {needed}")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    names: dict[str, Any] = {"__name__": "page"}
    for step in script:
        printed = run_step(step, names)
        if step.shown:
            check_output(printed, step.shown)


@pytest.mark.parametrize("page", [README, *PAGES, *ROOT.glob("[A-Z]*.md")], ids=lambda page: page.name)
def test_links_lead_to_files_that_exist(page: Path) -> None:
    links = [target for target, _ in LINK.findall(page.read_text("utf-8"))]
    assert [target for target in links if not (page.parent / target).exists()] == []


@pytest.mark.parametrize("page", [README, *PAGES, *ROOT.glob("[A-Z]*.md")], ids=lambda page: page.name)
def test_commands_that_a_page_only_shows_exist_with_their_options(page: Path) -> None:
    for line in re.findall(r"^awatt .+", page.read_text("utf-8").replace("\\\n", " "), flags=re.MULTILINE):
        command: Any = get_command(app)
        words = shlex.split(line, comments=True)[1:]
        while hasattr(command, "commands"):
            command = command.commands[words.pop(0)]
        known = {name for each in command.params for name in (*each.opts, *each.secondary_opts)}
        assert {word.partition("=")[0] for word in words if word.startswith("--")} <= known, line


@pytest.mark.parametrize("printed", ["food  0.82\n", "food 0.81", "food 0.8249"])
def test_rounding_may_differ_in_the_last_digit(printed: str) -> None:
    check_output(printed, "food 0.82\n")


@pytest.mark.parametrize("printed", ["", "food 0.84", "food -0.82", "service 0.82", "food 0.82 0.10"])
def test_any_other_output_fails(printed: str) -> None:
    with pytest.raises(AssertionError):
        check_output(printed, "food 0.82\n")


def test_the_shipped_examples_find_both_aspects_of_the_papers_sentence() -> None:
    detector = AspectDetector.from_examples(ROOT / "examples" / "aspects.jsonl")
    assert detector.detect("The cheesecake is tasty and the staff are friendly.").aspects == ["food", "service"]


@pytest.mark.parametrize("path", sorted((ROOT / "docs" / "notebooks").glob("*.ipynb")), ids=lambda path: path.stem)
def test_a_notebook_shows_what_it_stores(path: Path) -> None:
    stored = json.loads(path.read_text("utf-8"))
    made = json.loads(path.read_text("utf-8"))
    for needed in {"pandas", "torch"}:
        if f"import {needed}" in path.read_text("utf-8") and not find_spec(needed):
            pytest.skip(f"needs {needed}")
    run_notebook(made)
    for printed, shown in zip(shown_texts(made), shown_texts(stored), strict=True):
        check_output(rounded(printed), rounded(shown))


def rounded(text: str) -> str:
    """Numbers with two decimals, which is as much as machines agree on."""
    return re.sub(r"\d+\.\d{3,}", lambda found: f"{float(found[0]):.2f}", text)
