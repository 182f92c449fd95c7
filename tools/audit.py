"""Look for known vulnerabilities of the packages in constraints.txt, with pip-audit in an environment of its own.

Exit code 1 if there are any. Where pip-audit cannot be installed, or its database does not answer or does not know our
packages, nothing is claimed: it says "skipped" and why.
"""

from __future__ import annotations

import json
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PLACE = ROOT / ".venv" / "audit"


def audit() -> tuple[int, str]:
    """The exit code and what was found, in lines."""
    program, report = PLACE / "bin" / "pip-audit", PLACE / "found.json"
    if not program.exists():
        venv.create(PLACE, with_pip=True)
        pip = [PLACE / "bin" / "python", "-m", "pip", "install", "--quiet", "--retries", "0", "--timeout", "15"]
        if subprocess.run([*pip, "pip-audit"], capture_output=True, check=False).returncode:
            return 0, "skipped: pip-audit cannot be installed from here"
    report.unlink(missing_ok=True)
    options = ["--disable-pip", "--no-deps", "--requirement", "constraints.txt", "--format", "json", "--output", report]
    subprocess.run([program, *options], cwd=ROOT, capture_output=True, check=False)
    try:
        return summary(json.loads(report.read_text("utf-8"))["dependencies"])
    except (OSError, ValueError):
        return 0, "skipped: the database of vulnerabilities does not answer"


def summary(packages: list[dict[str, Any]]) -> tuple[int, str]:
    """The exit code and what to print for what pip-audit found."""
    unknown = [each["name"] for each in packages if "skip_reason" in each]
    known = len(packages) - len(unknown)
    if not known:
        return 0, f"skipped: the database knows none of the {len(packages)} packages"
    holes = [(each, hole) for each in packages for hole in each.get("vulns", [])]
    lines = [
        f"{each['name']} {each['version']}: {hole['id']}, fixed in {', '.join(hole['fix_versions']) or 'none yet'}"
        for each, hole in holes
    ]
    rest = f"; not in the database: {', '.join(unknown)}" if unknown else ""
    return int(bool(holes)), "\n".join([*lines, f"{len(holes)} known vulnerabilities in {known} packages{rest}"])


if __name__ == "__main__":
    code, text = audit()
    sys.stdout.write(f"audit: {text}\n")
    sys.exit(code)
