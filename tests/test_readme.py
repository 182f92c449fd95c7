"""The Python of the README and the docs, and the README's first commands, print what the pages show."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from awatt import AspectDetector

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
PAGES = (README, ROOT / "docs" / "detect.md")  # each block runs on its own
TUTORIALS = (ROOT / "docs" / "model.md",)  # each block builds on those before it

#: a block of Python and, if a block of text follows directly, the output that the page shows
BLOCK = re.compile(r"```python\n(.*?)```(?:\s*```text\n(.*?)```)?", flags=re.DOTALL)
#: the same for a command that needs no other files than the examples, the last line of its block
COMMAND = re.compile(r"^(awatt .* --examples examples/.*)\n```(?:\s*```text\n([^`]*)```)?", flags=re.MULTILINE)
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")

Script = list[tuple[str, str]]


def blocks(page: Path) -> Script:
    return BLOCK.findall(page.read_text("utf-8"))


def scripts() -> list[Any]:
    single = [pytest.param([block], id=f"{page.name}-{n}") for page in PAGES for n, block in enumerate(blocks(page), 1)]
    return single + [pytest.param(blocks(page), id=page.name) for page in TUTORIALS]


def check_output(printed: str, shown: str) -> None:
    """The same words, and numbers that differ by 1 in the last digit shown at most: machines round differently."""
    assert NUMBER.sub("#", printed).split() == NUMBER.sub("#", shown).split()
    for found, wanted in zip(NUMBER.findall(printed), NUMBER.findall(shown), strict=True):
        decimals = len(wanted.partition(".")[2])
        tolerance = 1.01 * 10**-decimals if decimals else 0
        assert float(found) == pytest.approx(float(wanted), rel=0, abs=tolerance), printed


@pytest.mark.parametrize("page", [*PAGES, *TUTORIALS], ids=lambda page: page.name)
def test_every_page_has_examples(page: Path) -> None:
    assert blocks(page)


@pytest.mark.parametrize(("line", "shown"), COMMAND.findall(README.read_text("utf-8")))
def test_a_command_prints_what_the_readme_shows(
    line: str, shown: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    done = run(*shlex.split(line)[1:])
    assert done.code == 0
    if shown:
        check_output(done.out, shown)
    if "--out found.jsonl" in line:
        assert (tmp_path / "found.jsonl").read_text("utf-8").count("\n") == 12


@pytest.mark.parametrize("script", scripts())
def test_an_example_prints_what_the_page_shows(
    script: Script, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for code, shown in script:
        exec(compile(code, "<example>", "exec"), names)
        printed = capsys.readouterr().out
        if shown:
            check_output(printed, shown)


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
