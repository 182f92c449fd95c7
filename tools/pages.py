"""Run the code of pages of documentation, and store what it prints: python tools/pages.py docs/tutorials/*.md

A block of Python may be followed by a block of text, its output. In a block ``console`` each line after ``$ `` is a
command, and what follows is its output. The blocks of a page run in order, in a temporary folder with a link to
``examples``.
"""

from __future__ import annotations

import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
BLOCK = re.compile(r"^```(python|console)\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", flags=re.DOTALL | re.MULTILINE)


class Step(NamedTuple):
    """Code or a command, and the output that the page shows; empty if it shows none."""

    code: str
    shown: str
    is_command: bool


def steps(text: str) -> list[Step]:
    """What a page runs, in its order."""
    return [step for block in BLOCK.finditer(text) for step in _steps_of(block)]


def _steps_of(block: re.Match[str]) -> Iterator[Step]:
    kind, code, shown = block.groups(default="")
    if kind == "python":
        yield Step(code, shown, False)
        return
    for part in re.split(r"^\$ ", code, flags=re.MULTILINE)[1:]:
        command = re.match(r"(?:.*\\\n)*.*\n", part)  # a command goes on after a backslash
        assert command
        yield Step(command[0], part[command.end() :], True)


def run_step(step: Step, names: dict[str, Any]) -> str:
    """What a step prints: Python with these global names; a command's errors too."""
    printed = io.StringIO()
    with redirect_stdout(printed):
        if not step.is_command:
            exec(compile(step.code, "<page>", "exec"), names)
        elif step.code.startswith("awatt "):
            with redirect_stderr(printed):
                _run_awatt(shlex.split(step.code.replace("\\\n", ""))[1:])
        else:
            done = subprocess.run(step.code, shell=True, capture_output=True, text=True, check=True)
            printed.write(done.stdout)
    return printed.getvalue()


def _run_awatt(arguments: list[str]) -> None:
    """The command in this process, which is faster; it must succeed."""
    from awatt.cli import main

    before, sys.argv = sys.argv, ["awatt", *arguments]
    try:
        main()
    except SystemExit as stop:
        if stop.code:
            raise RuntimeError(f"awatt {shlex.join(arguments)} ended with code {stop.code}") from None
    finally:
        sys.argv = before


def refresh(text: str) -> str:
    """The page with the outputs that came out, wherever it shows one."""
    names: dict[str, Any] = {"__name__": "page"}

    def rewrite(block: re.Match[str]) -> str:
        made = ""
        for step in _steps_of(block):
            printed = run_step(step, names).rstrip() + "\n"
            if step.is_command:
                made += f"$ {step.code}{printed if step.shown else ''}"
            else:
                made = f"```python\n{step.code}```\n" + (f"\n```text\n{printed}```\n" if step.shown else "")
        return f"```console\n{made}```\n" if block[1] == "console" else made

    return BLOCK.sub(rewrite, text)


if __name__ == "__main__":
    for path in map(Path, sys.argv[1:]):
        path = path.resolve()
        with tempfile.TemporaryDirectory() as folder, chdir(folder):
            os.symlink(ROOT / "examples", "examples")
            path.write_text(refresh(path.read_text("utf-8")), "utf-8")
