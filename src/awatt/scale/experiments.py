"""A grid of experiments over a cluster: one run is one task with one core, with the result files of ``--jobs``."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from awatt.errors import AwattError, require
from awatt.reproduce.results import missing, result_path
from awatt.reproduce.runner import check_extras, run_one, write_result
from awatt.reproduce.suites import Run
from awatt.scale.connection import LOCAL, connected

Paths = tuple[str, str, str]  # data, results, work


def run_all(
    runs: Iterable[Run],
    data: Path,
    results: Path,
    work: Path,
    workers: int | None,
    overrides: tuple[str, ...],
    on_done: Callable[[Run, dict[str, Any]], None],
    address: str = LOCAL,
) -> None:
    """Every run that has no result yet. One that fails is tried once more; at the end those that failed are named.

    ``data`` and ``work`` must be reachable by all machines under the same path; results are written here as well.
    """
    todo = missing(results, runs)
    require("torch", "train")
    check_extras(todo)
    paths = (os.path.abspath(data), os.path.abspath(results), os.path.abspath(work))
    failed: dict[str, str] = {}
    with connected(address, workers) as ray:
        # The first failure of any kind, the run's own or its machine's, is tried again; the second one is final.
        task = ray.remote(num_cpus=1, max_retries=1, retry_exceptions=True)(_run)
        waiting: dict[Any, Run] = {}
        queue = list(reversed(todo))
        while queue or waiting:
            while queue and (workers is None or len(waiting) < workers):
                run = queue.pop()
                waiting[task.remote(run, paths, overrides)] = run
            (done, *_), _ = ray.wait(list(waiting))
            run = waiting.pop(done)
            try:
                result = ray.get(done)
            except ray.exceptions.RayError as error:
                failed[run.name] = str(error).strip().splitlines()[-1][:200]
                continue
            if not result_path(results, run).exists():  # it was written on another machine
                write_result(results, run, result)
            on_done(run, result)
    if failed:
        named = "; ".join(f"{name} ({reason})" for name, reason in failed.items())
        raise AwattError(f"{len(failed)} of {len(todo)} runs failed twice: {named}. Run the command again to go on.")


def _run(run: Run, paths: Paths, overrides: tuple[str, ...]) -> dict[str, Any]:
    data, results, work = map(Path, paths)
    return run_one(run, data, results, work, overrides)
