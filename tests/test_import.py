"""Importing is light, and imports only what the package declares."""

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import awatt

ROOT = Path(__file__).resolve().parents[1]
HEAVY = {"torch", "transformers", "pyarrow", "scipy", "sklearn", "ray", "matplotlib", "fastapi"}
LIGHT = {"numpy", "tokenizers", "safetensors", "typer", "click", "rich", "pydantic"}


def imported_by(statement: str) -> set[str]:
    """The top-level modules in a fresh process after ``statement``."""
    code = f"{statement}\nimport sys\nprint(*sorted({{name.partition('.')[0] for name in sys.modules}}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=True)
    assert done.stderr == ""
    return set(done.stdout.split())


def test_import_awatt_brings_no_other_package() -> None:
    found = imported_by("import awatt")
    assert "awatt" in found
    assert not found & (HEAVY | LIGHT)


MODULES = [
    "awatt.cli",
    "awatt.errors",
    "awatt.data.episode",
    "awatt.data.sampler",
    "awatt.detector.detector",
]
MODULES += ["awatt.scale.detection", "awatt.scale.dataset", "awatt.scale.experiments"]


@pytest.mark.parametrize("module", MODULES)
def test_import_of_a_part_brings_nothing_heavy(module: str) -> None:
    assert not imported_by(f"import {module}") & HEAVY


def test_import_of_the_command_brings_no_numpy() -> None:
    assert "numpy" not in imported_by("import awatt.cli")


def test_import_prints_nothing_and_leaves_no_file(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import awatt, awatt.cli"], capture_output=True, timeout=300, check=True, cwd=tmp_path
    )
    assert (done.stdout, done.stderr) == (b"", b"")
    assert list(tmp_path.iterdir()) == []


def test_version_is_a_version() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+([a-z]+\d+)?", awatt.__version__)


def declared_packages() -> set[str]:
    """The import names of everything that pyproject.toml declares, extras other than dev too."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    groups = [project["dependencies"], *(v for k, v in project["optional-dependencies"].items() if k != "dev")]
    names = {re.split(r"[\[<>=!~ ;]", requirement)[0] for group in groups for requirement in group}
    return {name.replace("-", "_").lower() for name in names}


def imports_of(path: Path) -> set[str]:
    """The top-level names that a source file imports, anywhere in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found.add(str(node.module).partition(".")[0])
    return found


def test_command_fails_where_click_is_not_installed() -> None:
    """typer carries its own click: a package that nothing declares must not be imported."""
    allowed = declared_packages() | sys.stdlib_module_names | {"awatt"}
    sources = sorted((ROOT / "src" / "awatt").rglob("*.py"))
    assert sources
    assert {str(path): extra for path in sources if (extra := imports_of(path) - allowed)} == {}
