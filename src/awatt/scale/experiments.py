"""A grid of experiments on a cluster: each run is a task with one core and leaves the same files as ``--jobs``."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

from awatt.errors import AwattError, require
from awatt.reproduce.results import missing, result_path
from awatt.reproduce.runner import check_extras, run_one, write_result
from awatt.reproduce.suites import Run
from awatt.scale.connection import LOCAL, connected, run_tasks

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
    """Do every run that has no result yet. A run that fails is retried once; the error lists those that fail twice.

    All machines must reach ``data`` and ``work`` under the same path. Results are also written on this machine.
    """
    todo = missing(results, runs)
    require("torch", "train")
    check_extras(todo)
    paths = (os.path.abspath(data), os.path.abspath(results), os.path.abspath(work))
    failed: dict[str, str] = {}
    calls = {run: (run, paths, overrides) for run in todo}
    # Any first failure, of the run itself or of its machine, is retried; the second one is final.
    options = {"max_retries": 1, "retry_exceptions": True}
    with connected(address, workers) as ray, closing(run_tasks(ray, _run, calls, workers, **options)) as finished:
        for run, reference in finished:
            try:
                result = ray.get(reference)
            except ray.exceptions.RayError as error:
                failed[run.name] = str(error).strip().splitlines()[-1][:200]
                continue
            if not result_path(results, run).exists():  # it was written on another machine
                write_result(results, run, result)
            on_done(run, result)
    if failed:
        named = "; ".join(f"{name} ({reason})" for name, reason in failed.items())
        raise AwattError(f"{len(failed)} of {len(todo)} runs failed twice: {named}. Run the command again to continue.")


def _run(run: Run, paths: Paths, overrides: tuple[str, ...]) -> dict[str, Any]:
    data, results, work = map(Path, paths)
    return run_one(run, data, results, work, overrides)
