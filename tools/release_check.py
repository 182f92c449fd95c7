"""What must hold before a release: files, version, build, metadata, a clean install, the README. Leaves dist/."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DIST = ROOT / "dist"
LARGE = 1_000_000  # bytes
WEIGHTS = tuple(f"awatt/aspect_model/weights/{name}/model.safetensors" for name in ("fast", "accurate"))
LARGE_FILES = {f"src/{path}" for path in WEIGHTS}
WHEEL_LIMIT = 16_000_000  # bytes; the weights of both models are 14
CORE_LIMIT = 190_000_000  # bytes of a new environment with the package, pip included
IN_WHEEL = ("awatt/py.typed", *WEIGHTS, "awatt/server/static/index.html")
FOREIGN_PATH = re.compile(rb"(?<![\w.:/-])/(?:home|root|work|Users)/[\w.][\w.-]*/")


class CheckError(Exception):
    """What does not hold, in one line."""


def run(*command: object, cwd: Path = ROOT) -> str:
    """What a command prints; a failure is an error with the end of its output."""
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(list(map(str, command)), cwd=cwd, env=clean, capture_output=True, text=True, check=False)
    if done.returncode:
        raise CheckError(f"{' '.join(map(str, command))} failed:\n{(done.stdout + done.stderr)[-2000:]}")
    return done.stdout


def version() -> str:
    """The version, from the one place where it is."""
    source = (ROOT / "src" / "awatt" / "__init__.py").read_text("utf-8")
    found = re.search(r'^__version__ = "(.+)"$', source, flags=re.MULTILINE)
    if not found:
        raise CheckError("src/awatt/__init__.py has no __version__")
    return found[1]


def check_files() -> str:
    """Nothing large and no path of somebody's machine is in the repository."""
    names = [name for name in run("git", "ls-files", "-z").split("\0") if name and (ROOT / name).is_file()]
    large = [name for name in names if (ROOT / name).stat().st_size > LARGE and name not in LARGE_FILES]
    if large:
        raise CheckError(f"larger than {LARGE:,} bytes: {', '.join(large)}")
    foreign = [
        f"{name}: {found[0].decode()}" for name in names if (found := FOREIGN_PATH.search((ROOT / name).read_bytes()))
    ]
    if foreign:
        raise CheckError(f"paths of one machine: {', '.join(foreign)}")
    return f"{len(names)} files"


def check_version() -> str:
    """The changelog and the citation know the version."""
    changelog, citation = ((ROOT / name).read_text("utf-8") for name in ("CHANGELOG.md", "CITATION.cff"))
    if not re.search(rf"^## \[({re.escape(version())}\]|Unreleased\])", changelog, flags=re.MULTILINE):
        raise CheckError(f"CHANGELOG.md has no section [{version()}] or [Unreleased]")
    if f"\nversion: {version()}\n" not in citation:
        raise CheckError(f"CITATION.cff does not have version {version()}")
    return version()


def build(python: Path) -> str:
    """A wheel and a source archive, with valid metadata and all files that are needed at run time."""
    shutil.rmtree(DIST, ignore_errors=True)
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "build", "twine")
    run(python, "-m", "build", "--outdir", DIST)
    run(python, "-m", "twine", "check", "--strict", *DIST.iterdir())
    (wheel,) = DIST.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    if missing := [name for name in IN_WHEEL if name not in names]:
        raise CheckError(f"{wheel.name} lacks {', '.join(missing)}")
    if extra := [name for name in names if not name.startswith("awatt")]:
        raise CheckError(f"{wheel.name} has {', '.join(extra[:5])}")
    if wheel.stat().st_size > WHEEL_LIMIT:
        raise CheckError(f"{wheel.name} has {wheel.stat().st_size:,} bytes, more than {WHEEL_LIMIT:,}")
    return f"{wheel.name}, {wheel.stat().st_size / 1e6:.1f} MB"


def check_install(python: Path) -> str:
    """The wheel in an environment of its own runs the demo and the README (what needs torch is skipped)."""
    (wheel,) = DIST.glob("*.whl")
    install = (python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    run(*install, wheel)
    size = sum(path.stat().st_size for path in python.parents[1].rglob("*") if path.is_file())
    if size > CORE_LIMIT:
        raise CheckError(f"the installed core has {size:,} bytes, more than {CORE_LIMIT:,}")
    run(python.with_name("awatt"), "demo", cwd=python.parent)
    run(*install, "pytest", "hypothesis")
    where = run(python, "-c", "import awatt; print(awatt.__file__)", cwd=python.parent)
    if "site-packages" not in where:
        raise CheckError(f"awatt was imported from {where.strip()}, not from the wheel")
    test = (python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/test_docs.py", "-k", "README")
    return f"{size / 1e6:.0f} MB; README: {run(*test).strip().splitlines()[-1]}"


def main() -> int:
    """Run all checks; the exit code."""
    with tempfile.TemporaryDirectory(prefix="awatt-release-") as folder:

        def environment(name: str) -> Path:
            run(sys.executable, "-m", "venv", Path(folder) / name)
            return Path(folder) / name / "bin" / "python"

        checks: dict[str, Callable[[], str]] = {
            "files": check_files,
            "version": check_version,
            "build": lambda: build(environment("build")),
            "install": lambda: check_install(environment("install")),
        }
        for name, check in checks.items():
            try:
                sys.stdout.write(f"{name}: {check()}\n")
                sys.stdout.flush()
            except CheckError as error:
                sys.stdout.write(f"{name}: FAILED: {error}\n")
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
