"""The tools of the repository: generated references, stored outputs, lowest versions, what must not be released."""

from __future__ import annotations

import re
import tomllib
from itertools import chain
from pathlib import Path

import pytest

from audit import summary
from docs_hooks import command_reference, on_page_markdown, rest_reference
from lock import LOCKED, NOT_LOCKED, is_of, normal
from pages import refresh, steps
from release_check import FOREIGN_PATH
from test_lowest import BOUND, GROUPS, lowest
from test_lowest import tested_versions as versions_in_use

ROOT = Path(__file__).parents[1]


def test_the_reference_has_every_command_and_no_hidden_one() -> None:
    text = command_reference()
    commands = set(re.findall(r"^## (.*)", text, re.MULTILINE))
    assert {"awatt detect", "awatt data build", "awatt train-detector"} <= commands
    assert "awatt bundle" not in text
    assert "| `--text-column NAME` | Column with the text. | `text` |" in text


def test_the_reference_has_every_endpoint_and_its_shapes() -> None:
    pytest.importorskip("fastapi")
    text = rest_reference()
    assert "| `POST /v1/detect` |" in text
    shapes = set(re.findall(r"^### (\w+)", text, re.MULTILINE))
    assert "Detection" in shapes
    assert {name.lower() for name in shapes} >= set(re.findall(r"\]\(#(\w+)\)", text))


def test_a_file_of_the_repository_is_named_and_not_linked() -> None:
    made = on_page_markdown("See [the log](../../results/LOG.md) and [files](../reference/files.md).", None)
    assert made == "See the log (`results/LOG.md` in the repository) and [files](../reference/files.md)."


def test_every_page_is_in_the_navigation() -> None:
    named = set(re.findall(r"[\w/-]+\.md", (ROOT / "mkdocs.yml").read_text("utf-8")))
    assert named == {str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md")}


def test_outputs_are_stored_where_a_page_shows_one() -> None:
    page = "```python\nx = 2\nprint(x)\n```\n\n```python\nprint(x + 1)\n```\n\n```text\nold\n```\n\n"
    page += "```console\n$ echo a \\\n  b\nold\n$ echo silent\n```\n"
    made = refresh(page)
    assert "```text\n3\n```" in made
    assert "$ echo a \\\n  b\na b\n$ echo silent\n```" in made
    assert [step.shown for step in steps(made)] == ["", "3\n", "a b\n", ""]


def test_the_lowest_versions_of_an_extra_include_those_of_the_extras_in_it() -> None:
    found = lowest(("ray",))
    assert any(line.startswith("pyarrow==") for line in found)
    assert any(line.startswith("numpy==") and "python_version" in line for line in found)
    assert not any(line.startswith("torch==") for line in lowest(("train",)))
    assert {extra for group in GROUPS for extra in group} >= {"parquet", "frames", "serve", "train", "plots", "ray"}


@pytest.mark.parametrize("folder", [b"home", b"Users", b"root", b"work"])
def test_a_path_of_one_machine_is_found(folder: bytes) -> None:
    assert FOREIGN_PATH.search(b"open('/" + folder + b"/ann/data.csv')")
    assert FOREIGN_PATH.search(b"see /" + folder + b"/.cache/")


@pytest.mark.parametrize("text", [b"https://example.org/home/ann/", b"./work/x/", b"/models/my-detector"])
def test_other_paths_are_not_foreign(text: bytes) -> None:
    assert not FOREIGN_PATH.search(text)


def test_the_lock_has_every_dependency_with_hashes_and_the_versions_of_the_constraints() -> None:
    packages = LOCKED.read_text("utf-8").replace("\\\n", "").splitlines()[1:]
    locked = {}
    for line in packages:
        name, version, digests = re.fullmatch(r"(\S+)==(\S+)((?:\s+--hash=sha256:[0-9a-f]{64})+)", line).groups()  # type: ignore[union-attr]
        assert digests
        locked[name] = version
    tested = {normal(name): line.partition("==")[2] for name, line in versions_in_use().items()}
    assert {name: version for name, version in locked.items() if tested.get(name, version) != version} == {}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    wanted = [*project["dependencies"], *chain.from_iterable(project["optional-dependencies"].values())]
    names = {normal(found["name"]) for line in wanted if (found := BOUND.fullmatch(line))}
    assert names - NOT_LOCKED <= locked.keys()


@pytest.mark.parametrize(
    ("file", "is_it"),
    [
        ("ray-2.60.0-cp311-cp311-manylinux2014_x86_64.whl", True),
        ("ray-2.60.0.tar.gz", True),
        ("ray-2.60.0rc1.tar.gz", False),
        ("ray_data-2.60.0-py3-none-any.whl", False),
        ("ray-2.60.0-1-py3-none-any.whl", True),
    ],
)
def test_the_files_of_a_version_are_told_by_their_names(file: str, is_it: bool) -> None:
    assert is_of(file, "Ray", "2.60.0") is is_it


def test_an_audit_claims_nothing_about_packages_that_its_database_does_not_know() -> None:
    unknown = {"name": "awatt", "skip_reason": "not found"}
    fine = {"name": "rich", "version": "15.0.0", "vulns": []}
    hole = {"id": "PYSEC-1", "fix_versions": ["3.1.7"]}
    assert summary([unknown]) == (0, "skipped: the database knows none of the 1 packages")
    assert summary([unknown, fine]) == (0, "0 known vulnerabilities in 1 packages; not in the database: awatt")
    code, text = summary([fine, {"name": "jinja2", "version": "3.1.6", "vulns": [hole]}])
    assert (code, text.splitlines()[0]) == (1, "jinja2 3.1.6: PYSEC-1, fixed in 3.1.7")
