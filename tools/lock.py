"""Write locked.txt: every package of our environment, with the hashes of all its files on the index.

The versions are those of constraints.txt. `make locked` installs it; pip then refuses a file with another hash.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LOCKED = ROOT / "locked.txt"
INDEX = "https://pypi.org/simple"
EXTRAS = "dev,docs,ray"  # all of them: dev has the others
BUILD = ["hatchling", "editables"]  # what an editable install needs, so that pip fetches nothing unchecked for it
#: Not locked: the CPU build that our machines take has another file, and other hashes, than the one on the index.
NOT_LOCKED = {"awatt", "torch"}
FILE = re.compile(r'href="[^"#]*/(?P<file>[^"#/]+)#sha256=(?P<digest>[0-9a-f]{64})"')


def resolve() -> dict[str, str]:
    """The versions that pip would install into an empty environment, by name."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.json")
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed", "--report", report]
        subprocess.run([*pip, "--constraint", "constraints.txt", *BUILD, f".[{EXTRAS}]"], cwd=ROOT, check=True)
        found = [each["metadata"] for each in json.loads(report.read_text("utf-8"))["install"]]
    return {normal(each["name"]): each["version"] for each in found if normal(each["name"]) not in NOT_LOCKED}


def hashes(name: str, version: str) -> list[str]:
    """The hashes of all files of a version, for every platform."""
    with urllib.request.urlopen(f"{INDEX}/{name}/", timeout=60) as page:
        files = FILE.findall(page.read().decode("utf-8"))
    found = sorted({digest for file, digest in files if is_of(file, name, version)})
    if not found:
        raise SystemExit(f"{INDEX}/{name}/ has no file of version {version}")
    return found


def is_of(file: str, name: str, version: str) -> bool:
    """Whether a file's name is that of a wheel or a source archive of this version."""
    stem = file.removesuffix(".tar.gz").removesuffix(".zip")
    parts = stem.split("-")[:2] if file.endswith(".whl") else stem.rsplit("-", 1)
    return len(parts) == 2 and normal(parts[0]) == normal(name) and parts[1] == version


def normal(name: str) -> str:
    """The one spelling of a package's name."""
    return re.sub(r"[-_.]+", "-", name).lower()


def main() -> int:
    """Write the file."""
    lines = ["# Written by tools/lock.py: everything but torch, for Linux and Python 3.11.\n"]
    for name, version in sorted(resolve().items()):
        digests = [f"  --hash=sha256:{digest}" for digest in hashes(name, version)]
        lines.append(" \\\n".join([f"{name}=={version}", *digests]) + "\n")
    LOCKED.write_text("".join(lines), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
