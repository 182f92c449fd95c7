"""The Ray engine compared with the local one on the same file: speed, CPU seconds, peak memory of driver and workers.

    python benchmarks/ray_engine.py --rows 200000

Each engine runs in a process of its own, as on the command line. CPU seconds include all of Ray's processes.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

EXAMPLES = Path(__file__).parents[1] / "examples" / "aspects.jsonl"
WORDS = ["the", "food", "was", "great", "service", "slow", "price", "high", "parking", "full", "waiter", "kind", "soup"]
TICK = os.sysconf("SC_CLK_TCK")


def write_rows(path: Path, rows: int) -> None:
    """Write distinct sentences of 6 to 20 words."""
    with path.open("w") as stream:
        for number in range(rows):
            words = (
                WORDS[(number * 31 + index * index * 17 + number // 7) % len(WORDS)] for index in range(6 + number % 15)
            )
            stream.write(json.dumps({"text": f"{' '.join(words)} {number}.", "id": number}) + "\n")


def processes(token: str) -> dict[int, tuple[str, float, int]]:
    """Name, CPU seconds and private memory (bytes) of each process that the run has started."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if token.encode() not in (folder / "environ").read_bytes():
                continue
            name = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            resident, shared = map(int, (folder / "statm").read_text().split()[1:3])
            found[int(folder.name)] = (name, (int(fields[11]) + int(fields[12])) / TICK, (resident - shared) * 4096)
        except (OSError, ValueError):
            continue
    return found


def measure(arguments: list[str]) -> dict[str, float]:
    """Run the command; returns seconds, CPU seconds and peak memory in MB."""
    token = f"bench-{time.monotonic_ns()}"
    seen: dict[int, tuple[str, float, int]] = {}
    peaks = {"driver": 0, "worker": 0}
    process = subprocess.Popen(
        [sys.executable, "-c", "from awatt.cli import main; main()", *arguments],
        env={**os.environ, "AWATT_BENCH": token},
        stdout=subprocess.PIPE,
    )
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(0.2):
            for pid, entry in processes(token).items():
                seen[pid] = entry
                kind = "driver" if pid == process.pid else "worker" if entry[0].startswith("ray::") else None
                if kind:
                    peaks[kind] = max(peaks[kind], entry[2])

    watcher = threading.Thread(target=watch)
    watcher.start()
    out, _ = process.communicate()
    ended.set()
    watcher.join()
    if process.returncode:
        raise SystemExit(process.returncode)
    cpu = sum(entry[1] for entry in seen.values())
    memory = {f"{kind}_mb": round(peak / 2**20) for kind, peak in peaks.items()}
    return {"seconds": json.loads(out)["seconds"], "cpu_seconds": round(cpu, 1), **memory}


def digest(folder: Path) -> str:
    """SHA-256 of all rows, in order."""
    paths = sorted(folder.glob("part-*")) if folder.is_dir() else [folder]
    return hashlib.sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=200_000)
    rows = parser.parse_args().rows
    folder = Path(tempfile.mkdtemp())
    try:
        write_rows(source := folder / "in.jsonl", rows)
        base = ["detect", str(source), "--examples", str(EXAMPLES), "--json"]
        digests = set()
        for name, more in {
            "local": [],
            "ray, 1 worker": ["--engine", "ray", "--workers", "1"],
            "ray, 2 workers": ["--engine", "ray", "--workers", "2"],
        }.items():
            out = folder / (f"{name}.jsonl" if name == "local" else name)
            found = measure([*base, "--out", str(out), *more])
            digests.add(digest(out))
            print(name, json.dumps({"rows": rows, **found, "rows_per_second": round(rows / found["seconds"])}))
        print("same bytes:", len(digests) == 1)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
