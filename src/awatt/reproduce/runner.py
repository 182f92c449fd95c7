"""Running what a table needs: what is done is skipped, what was killed is resumed, one small JSON a run."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Thread
from typing import Any

from awatt.config import build, parse_overrides
from awatt.data.corpus import load_corpus
from awatt.data.sampler import EpisodeShape
from awatt.errors import require
from awatt.files import write_text
from awatt.reproduce.results import missing, result_path
from awatt.reproduce.suites import TEST_EPISODES, Run, figures_of


def run_one(run: Run, data: Path, results: Path, work: Path, overrides: tuple[str, ...] = ()) -> dict[str, Any]:
    """Train, test and write the result. The work folder, with the model, is left only if the run was stopped."""
    require("torch", "train").set_num_threads(1)
    from awatt.evaluation import measure, score_episodes
    from awatt.reproduce.figure_data import MEASURES
    from awatt.runs import RunConfig, TrainingConfig
    from awatt.system import SystemConfig
    from awatt.training import train

    start = time.perf_counter()
    settings = parse_overrides([*run.settings, *overrides])
    shape = EpisodeShape(run.n_way, run.n_shot)
    names = {"method": run.method, "encoder": run.encoder_kind, "threshold": run.threshold, "n_way": run.n_way}
    system_config = SystemConfig.from_mapping({**names, "settings": settings})
    config = RunConfig(system_config, shape, build(TrainingConfig, settings.get("training", {}), "training"), run.seed)
    folder, dataset = work / run.name, data / run.dataset
    system = train(config, dataset, folder, resume=True, device="cpu")
    tested = measure(system, score_episodes(system, load_corpus(dataset, "test"), shape, TEST_EPISODES, run.seed))
    epochs = [json.loads(line) for line in (folder / "log.jsonl").read_text("utf-8").splitlines()]
    best = [epoch for epoch in epochs if epoch["best"]][-1]
    result = {
        "variant": run.variant,
        "test": {**tested, "episodes": TEST_EPISODES},
        "validation": {name.removeprefix("val_"): value for name, value in best.items() if name.startswith("val_")},
        "epochs": len(epochs),
        "best_epoch": best["epoch"],
        "seconds": round(time.perf_counter() - start, 1),
        "run": json.loads((folder / "run.json").read_text("utf-8")),
    }
    if figures := figures_of(run):
        result["figures"] = {name: MEASURES[name](system, dataset, shape, run.seed) for name in figures}
    write_result(results, run, result)
    shutil.rmtree(folder)
    return result


def write_result(results: Path, run: Run, result: dict[str, Any]) -> None:
    """One small JSON a run."""
    target = result_path(results, run)
    target.parent.mkdir(parents=True, exist_ok=True)
    write_text(target, json.dumps(result, indent=1) + "\n")


def check_extras(runs: Iterable[Run]) -> None:
    """What the runs need besides torch, asked for before hours of training, not after."""
    if any(figures_of(run) for run in runs):
        require("sklearn", "plots")


def run_all(
    runs: Iterable[Run],
    data: Path,
    results: Path,
    work: Path,
    jobs: int,
    overrides: tuple[str, ...],
    on_done: Callable[[Run, dict[str, Any]], None],
) -> None:
    """Every run that has no result yet, ``jobs`` at a time, each on one core.

    An interrupt ends all of them at once, and what was under way goes on the next time. With several jobs, a run that
    fails does not stop the others.
    """
    todo = missing(results, runs)
    check_extras(todo)
    if jobs == 1:
        for run in todo:
            on_done(run, run_one(run, data, results, work, overrides))
        return
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    with ours, theirs, ProcessPoolExecutor(jobs, context, _end_with, (theirs,)) as pool:
        try:
            with _interrupts_held():
                futures = {pool.submit(run_one, run, data, results, work, overrides): run for run in todo}
            for future in as_completed(futures):
                if future.exception() is None:
                    on_done(futures[future], future.result())
        except BaseException:
            ours.close()
            pool.shutdown(cancel_futures=True)
            raise
        for future in futures:
            future.result()  # raises what a run has raised


def _end_with(parent: Connection) -> None:
    """A worker ends as soon as the other side is closed, by a grid that stops or by its death.

    Left behind, it would write to the same folders as the next grid.
    """

    def wait() -> None:
        parent.poll(None)
        os._exit(1)

    Thread(target=wait, daemon=True).start()


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Ctrl-C waits for the end of the block. A process that is started within never hears it: we are who ends it."""
    if sys.platform == "win32":
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
