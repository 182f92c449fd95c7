"""The Ray engine on simulated nodes of this machine: driver memory and number of tasks as the input grows tenfold.

    python benchmarks/ray_nodes.py                  writes results/ray_nodes.json

The input is many small files and one large one. The nodes share the cores of this machine: the seconds say nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import secrets
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
RESULT = ROOT / "results" / "ray_nodes.json"
NODES, SMALL_FILES, SMALL_ROWS, LARGE_ROWS = 8, 1_000, 5, 20_000  # rows per file; files and large rows times ``scale``
MEMORY = 80 * 2**20  # bytes of object store per node


def write_input(folder: Path, scale: int) -> None:
    """Many small files and one large one."""
    line = '{{"text": "the soup of table {} was cold and the waiter friendly", "id": {}}}\n'
    small = "".join(line.format(number, number) for number in range(SMALL_ROWS))
    for number in range(SMALL_FILES * scale):
        (folder / f"small-{number:05d}.jsonl").write_text(small)
    with (folder / "large.jsonl").open("w") as stream:
        stream.writelines(line.format(number, number) for number in range(LARGE_ROWS * scale))


def measure(scale: int) -> dict[str, Any]:
    """Detect on simulated nodes, with this process as the driver."""
    os.environ |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}  # the latter: 127.0.0.1
    import ray
    from ray.cluster_utils import Cluster

    from awatt import AspectDetector
    from awatt.detector.bulk import BulkConfig
    from awatt.scale import detection

    tasks: list[int] = []
    run_tasks = detection.run_tasks

    def count(ray: Any, function: Any, calls: Any, *rest: Any, **options: Any) -> Any:
        tasks.append(len(calls))
        return run_tasks(ray, function, calls, *rest, **options)

    detection.run_tasks = count
    node = {"node_ip_address": "127.0.0.1", "num_cpus": 1, "object_store_memory": MEMORY}
    cluster = Cluster(initialize_head=True, head_node_args={**node, "include_dashboard": False})
    try:
        ray.init(address=cluster.address, log_to_driver=False, logging_level="error")
        for _ in range(NODES - 1):
            cluster.add_node(**node)
        detector = AspectDetector.from_examples(ROOT / "examples" / "aspects.jsonl")
        with tempfile.TemporaryDirectory() as folder:
            (source := Path(folder, "in")).mkdir()
            write_input(source, scale)
            before, begin = _memory(), time.monotonic()
            summary = detection.detect_files(detector, f"{source}/*.jsonl", f"{folder}/out", BulkConfig())
            written = list(Path(folder, "out").glob("part-*"))
            return {
                "nodes": len(ray.nodes()),
                "files": len(list(source.iterdir())),
                "parts": len(written),
                "rows": summary.rows,
                "bytes_read": sum(path.stat().st_size for path in source.iterdir()),
                "bytes_written": sum(path.stat().st_size for path in written),
                "tasks": sum(tasks),
                "driver_mb_before": before,
                "driver_mb_peak": _memory(),
                "seconds": round(time.monotonic() - begin),
            }
    finally:
        ray.shutdown()
        cluster.shutdown()


def _memory() -> int:
    """The highest resident memory of this process so far, in MB."""
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10)


def main() -> None:
    """Measure both sizes, each in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=int, help="Measure one size in this process.")
    scale = parser.parse_args().scale
    if scale:
        print(json.dumps(measure(scale)))
        return
    found = []
    for each in (1, 10):
        command = [sys.executable, __file__, "--scale", str(each)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        found.append(json.loads(done.stdout.splitlines()[-1]))
        print(json.dumps(found[-1]), flush=True)
    RESULT.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
