"""Run the tests on the lowest versions that pyproject.toml declares, in environments of their own under .venv-lowest.

python tools/test_lowest.py core             the core, with this Python
python tools/test_lowest.py all              the core with every Python that is here, and every extra with this one
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PYTHONS = ("3.11", "3.12", "3.13")
THIS = ".".join(map(str, sys.version_info[:2]))
BOUND = re.compile(r"(?P<name>[\w.-]+)(?:\[[\w,-]+\])?>=(?P<version>[\w.]+)(?P<marker>;.*)?")

#: extras tried together -> the tests that show that they work, and the packages that only these tests need
GROUPS: dict[tuple[str, ...], tuple[list[str], list[str]]] = {
    ("frames", "parquet"): (["tests/detector/test_frames.py", "tests/records"], ["pandas", "polars"]),
    ("serve", "parquet"): (["tests/server"], ["httpx", "httpx2"]),
    ("train", "transformers", "plots"): (
        [
            *("tests/research", "tests/encoders", "tests/models/test_proto_awatt.py", "tests/detector/test_runs.py"),
            *("tests/reproduce", "tests/test_metrics.py", "tests/detector/test_sklearn_contract.py"),
        ],
        [],
    ),
    ("ray",): (["tests/scale"], []),
}
TEST_TOOLS = ["hypothesis", "pytest", "pytest-xdist"]
#: Not tried at its lower bound: only the builds for all GPUs are that old, several gigabytes each.
NOT_LOWEST = {"torch"}


def lowest(extras: tuple[str, ...]) -> list[str]:
    """The lowest version of every dependency of the core and of these extras, as constraints."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    wanted, todo = list(project["dependencies"]), list(extras)
    while todo:
        for line in project["optional-dependencies"][todo.pop()]:
            own = re.fullmatch(r"awatt\[(.*)\]", line)
            todo += own[1].split(",") if own else []
            wanted.append(line)
    bounds = [found for line in wanted if (found := BOUND.fullmatch(line)) and found["name"] not in NOT_LOWEST]
    return [f"{found['name']}=={found['version']}{found['marker'] or ''}" for found in bounds]


def tested_versions() -> dict[str, str]:
    """The versions that the development environment has: ``name==version`` by name."""
    lines = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    return {line.partition("==")[0].lower(): line for line in lines}


def run(python: str, extras: tuple[str, ...], tests: list[str], also: list[str]) -> bool:
    """Install into a new environment and run the tests; whether they passed."""
    name = "-".join([python, *extras]) if extras else f"{python}-core"
    folder, tested = ROOT / ".venv-lowest" / name, tested_versions()
    shutil.rmtree(folder, ignore_errors=True)
    say(f"{name}: {' '.join(lowest(extras))}")
    subprocess.run([sys.executable if python == THIS else f"python{python}", "-m", "venv", folder], check=True)
    constraints = folder / "lowest.txt"
    more = [tested[each] for each in NOT_LOWEST]
    constraints.write_text("\n".join([*lowest(extras), *more]) + "\n", "utf-8")
    tools = [*(tested[each] for each in TEST_TOOLS), *also]
    package = f".[{','.join(extras)}]" if extras else "."
    install = [folder / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*install, "--constraint", constraints, "--editable", package, *tools], cwd=ROOT, check=True)
    pytest = [
        folder / "bin" / "python",
        "-m",
        "pytest",
        "-q",
        "-n",
        "2",
        "--dist",
        "loadgroup",
        "-p",
        "no:cacheprovider",
    ]
    return subprocess.run([*pytest, *tests], cwd=ROOT, check=False).returncode == 0


def is_here(python: str) -> bool:
    """Whether this version of Python can be started."""
    found = shutil.which(f"python{python}")
    return bool(found) and not subprocess.run([found, "-c", ""], capture_output=True, check=False).returncode


def say(text: str) -> None:
    """Print at once, before what the commands print."""
    sys.stdout.write(f"\n== {text}\n")
    sys.stdout.flush()


def main(wanted: list[str]) -> int:
    """Run what is wanted: ``core``, ``all``, or the names of extras; the exit code."""
    everything = "all" in wanted
    passed: dict[str, bool] = {}
    for python in PYTHONS:
        if (everything and is_here(python)) or ({"core", "all"} & set(wanted) and python == THIS):
            passed[f"core, Python {python}"] = run(python, (), [], [])
    for extras, (tests, also) in GROUPS.items():
        if everything or set(extras) & set(wanted):
            passed[", ".join(extras)] = run(THIS, extras, tests, also)
    for name, ok in passed.items():
        say(f"{'passed' if ok else 'FAILED'}: {name}")
    return 0 if passed and all(passed.values()) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
