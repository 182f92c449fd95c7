"""Run notebooks without Jupyter, and store what their cells show: python tools/notebooks.py docs/notebooks/*.ipynb"""

from __future__ import annotations

import ast
import io
import json
import os
import sys
import tempfile
from contextlib import chdir, redirect_stdout
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]


def run_cell(source: str, names: dict[str, Any]) -> list[dict[str, Any]]:
    """What a cell shows: what it prints, and the value of its last line."""
    tree, printed, value = ast.parse(source), io.StringIO(), None
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    with redirect_stdout(printed):
        exec(compile(tree, "<cell>", "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "<cell>", "eval"), names)
    outputs: list[dict[str, Any]] = []
    if lines := printed.getvalue().splitlines(keepends=True):
        outputs.append({"output_type": "stream", "name": "stdout", "text": lines})
    if value is not None:
        data = {"text/plain": repr(value).splitlines(keepends=True)}
        if html := getattr(value, "_repr_html_", lambda: None)():
            data["text/html"] = html.splitlines(keepends=True)
        outputs.append({"output_type": "execute_result", "execution_count": None, "metadata": {}, "data": data})
    return outputs


def run_notebook(notebook: dict[str, Any]) -> None:
    """Run all cells in order, in a temporary folder with a link to ``examples``, and store their outputs."""
    names: dict[str, Any] = {"__name__": "__main__"}
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        os.symlink(ROOT / "examples", "examples")
        number = 0
        for cell in notebook["cells"]:
            if cell["cell_type"] == "code":
                number += 1
                cell["execution_count"] = number
                cell["outputs"] = run_cell("".join(cell["source"]), names)
                for output in cell["outputs"]:
                    if "execution_count" in output:
                        output["execution_count"] = number


def shown(notebook: dict[str, Any]) -> list[str]:
    """The text of every output."""
    outputs = [output for cell in notebook["cells"] for output in cell.get("outputs", ())]
    return ["".join(output["text"] if "text" in output else output["data"]["text/plain"]) for output in outputs]


if __name__ == "__main__":
    for path in map(Path, sys.argv[1:]):
        content = json.loads(path.read_text("utf-8"))
        run_notebook(content)
        path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", "utf-8")
