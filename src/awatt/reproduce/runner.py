"""Run what a table needs: skip finished runs, resume interrupted ones, and write one small JSON file per run."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor, as_completed
from dataclasses import asdict
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

from awatt import __version__
from awatt.data.corpus import hash_splits, load_corpus
from awatt.data.sampler import EpisodeShape
from awatt.detector.models import FAST, read_model
from awatt.errors import AwattError, require
from awatt.files import interrupts_blocked, write_text
from awatt.reproduce.results import load_result, missing, result_path
from awatt.reproduce.suites import BUNDLED, TEST_EPISODES, Run, figures_of
from awatt.research.evaluation import measure

if TYPE_CHECKING:
    from awatt.research.runs import RunConfig


def run_one(run: Run, data: Path, results: Path, work: Path, overrides: tuple[str, ...] = ()) -> dict[str, Any]:
    """Train, test and write the result. The bundled model is only tested."""
    start = time.perf_counter()
    result = _test_bundled(run, data) if run.method == BUNDLED else _train_and_test(run, data, work, overrides)
    result["seconds"] = round(result.get("seconds", 0.0) + time.perf_counter() - start, 1)
    write_result(results, run, result)
    shutil.rmtree(work / run.name, ignore_errors=True)
    return result


def _train_and_test(run: Run, data: Path, work: Path, overrides: tuple[str, ...]) -> dict[str, Any]:
    """An interrupted run keeps its work folder, with the model, and continues from there the next time.

    ``seconds`` of the result is the time of the epochs that were finished before.
    """
    require("torch", "train").set_num_threads(1)
    from awatt.reproduce.figure_data import MEASURES
    from awatt.research.runs import OtherSettingsError
    from awatt.research.scoring import measure_system, score_episodes
    from awatt.research.training import train

    config = resolve(run, overrides)
    folder, dataset, shape = work / run.name, data / run.dataset, config.shape
    new: list[dict[str, Any]] = []
    try:
        system = train(config, dataset, folder, resume=True, device="cpu", on_epoch=new.append)
    except OtherSettingsError as error:
        raise AwattError(f"{error.found} Delete that folder, or choose another --work.") from None
    tested = measure_system(
        system, score_episodes(system, load_corpus(dataset, "test"), shape, TEST_EPISODES, run.seed)
    )
    epochs = [json.loads(line) for line in (folder / "log.jsonl").read_text("utf-8").splitlines()]
    best = [epoch for epoch in epochs if epoch["best"]][-1]
    result: dict[str, Any] = {
        "variant": run.variant,
        "test": {**tested, "episodes": TEST_EPISODES},
        "validation": {name.removeprefix("val_"): value for name, value in best.items() if name.startswith("val_")},
        "epochs": len(epochs),
        "best_epoch": best["epoch"],
        "run": json.loads((folder / "run.json").read_text("utf-8")),
    }
    if figures := figures_of(run):
        result["figures"] = {name: MEASURES[name](system, dataset, shape, run.seed) for name in figures}
    earlier = epochs[: len(epochs) - len(new)]
    result["seconds"] = sum(epoch["train_seconds"] + epoch["validation_seconds"] for epoch in earlier)
    return result


def resolve(run: Run, overrides: tuple[str, ...] = ()) -> RunConfig:
    """Every setting of a run."""
    from awatt.research.settings import resolve_run

    options = {"method": run.method, "encoder": run.encoder_kind, "threshold": run.threshold, "seed": run.seed}
    return resolve_run(None, options, {"n_way": run.n_way, "n_shot": run.n_shot}, [*run.settings, *overrides])


def outdated(runs: Iterable[Run], data: Path | None, results: Path, overrides: tuple[str, ...] = ()) -> dict[Run, str]:
    """Finished runs whose result has other settings than a new run would have, or another dataset: what differs first.

    A setting that is not in the result, because it did not exist yet, does not count.
    """
    found: dict[Run, str] = {}
    hashes: dict[str, dict[str, str]] = {}
    for run in runs:
        result = None if run.method == BUNDLED else load_result(results, run)
        if result is None:
            continue
        wanted = resolve(run, overrides).describe()
        if data is not None and (data / run.dataset).is_dir():
            if run.dataset not in hashes:
                hashes[run.dataset] = hash_splits(data / run.dataset)
            wanted["sha256"] = hashes[run.dataset]
        difference = next(_differences(result["run"], json.loads(json.dumps(wanted))), None)
        if difference is not None:
            found[run] = difference
    return found


def _differences(found: Mapping[str, Any], wanted: Mapping[str, Any], section: str = "") -> Iterator[str]:
    for name in filter(found.__contains__, wanted):
        place = f"{section}{name}"
        if isinstance(found[name], dict):
            yield from _differences(found[name], wanted[name], "" if name == "settings" else f"{place}.")
        elif found[name] != wanted[name]:
            is_data = section == "sha256."
            yield f"another {name} split" if is_data else f"{place} is {found[name]}, now {wanted[name]}"


def _test_bundled(run: Run, data: Path) -> dict[str, Any]:
    shape, dataset = EpisodeShape(run.n_way, run.n_shot), data / run.dataset
    model = read_model(FAST)
    tested = measure(model.predict_episodes(load_corpus(dataset, "test"), shape, TEST_EPISODES, run.seed))
    described: dict[str, Any] = {"method": run.method, "encoder": "bundled", "threshold": model.threshold_name}
    described |= {"episode": asdict(shape), "seed": run.seed, "data": run.dataset, "awatt": __version__}
    described["labels"] = "examples carry all their labels"
    return {"variant": run.variant, "test": {**tested, "episodes": TEST_EPISODES}, "run": described}


def write_result(results: Path, run: Run, result: dict[str, Any]) -> None:
    """Write a run's result to its JSON file."""
    target = result_path(results, run)
    target.parent.mkdir(parents=True, exist_ok=True)
    write_text(target, json.dumps(result, indent=1) + "\n")


def check_extras(runs: Iterable[Run]) -> None:
    """Check optional packages that the runs need besides torch: before hours of training, not after."""
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
    """Do every run that has no result yet, ``jobs`` at a time, each on one core.

    An interrupt ends all of them at once; unfinished runs continue the next time. With several jobs, a run that
    raises an error does not stop the others.
    """
    todo = missing(results, runs)
    check_extras(todo)
    if jobs == 1:
        for run in todo:
            on_done(run, run_one(run, data, results, work, overrides))
        return
    context = get_context("spawn")
    parent_end, worker_end = context.Pipe()
    with parent_end, worker_end, ProcessPoolExecutor(jobs, context, _exit_with_parent, (worker_end,)) as pool:
        try:
            with interrupts_blocked():
                futures = {pool.submit(run_one, run, data, results, work, overrides): run for run in todo}
            for future in as_completed(futures):
                if future.exception() is None:
                    on_done(futures[future], future.result())
        except BaseException:
            parent_end.close()
            pool.shutdown(cancel_futures=True)
            raise
        try:
            for future in futures:
                future.result()  # raises the error of a failed run
        except BrokenExecutor:
            lost = "a process ended before its run was done, and the others with it"
            raise AwattError(f"{lost}. Is there enough memory? Run the command again to continue.") from None


def _exit_with_parent(connection: Connection) -> None:
    """End this worker as soon as its parent closes the connection or dies.

    A worker left behind would write to the same folders as the next start.
    """

    def wait() -> None:
        connection.poll(None)
        os._exit(1)

    Thread(target=wait, daemon=True).start()
