"""What the tests of several commands need."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def examples(tmp_path: Path) -> Path:
    """A file of four examples of two aspects."""
    path = tmp_path / "aspects.csv"
    rows = ["the pizza was delicious,food", "delicious pizza,food", "a rude waiter,staff", "the waiter was rude,staff"]
    path.write_text("\n".join(["text,aspects", *rows]) + "\n")
    return path
