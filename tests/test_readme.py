"""The README's Python and its first command, and the Python of the how-to, run as printed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
PAGES = (README, ROOT / "docs" / "detect.md")
BLOCKS = [
    block for page in PAGES for block in re.findall(r"```python\n(.*?)```", page.read_text("utf-8"), flags=re.DOTALL)
]


def test_the_readme_has_examples() -> None:
    assert BLOCKS


@pytest.mark.parametrize("line", re.findall(r"^awatt .* --examples examples/.*", README.read_text("utf-8"), flags=re.M))
def test_the_first_command_runs(line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Any) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    assert run(*line.split()[1:]).code == 0
    assert (tmp_path / "found.jsonl").read_text("utf-8").count("\n") == 12


@pytest.mark.parametrize("block", BLOCKS)
def test_a_readme_example_runs(block: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(block, str(README), "exec"), {})
