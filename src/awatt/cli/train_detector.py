"""``awatt bundle``: train the model that the package ships with."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from awatt.data.sampler import EpisodeShape


def bundle(
    data: Annotated[Path, typer.Option(help="Folder that 'awatt data build' wrote, with all three datasets.")],
    out: Annotated[Path, typer.Option(help="Folder for the model.")],
    set_items: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="A setting of the training, such as tasks=200."),
    ] = None,
    threads: Annotated[int, typer.Option(min=1, help="Cores to use.")] = 1,
) -> None:
    """Train the bundled model on the train categories and calibrate it on the validation categories.

    The static vectors come from AWATT_SHARED/weights/potion-base-8M.
    """
    from awatt.config import build, parse_overrides
    from awatt.errors import require

    require("torch", "train").set_num_threads(threads)
    from rich.console import Console
    from rich.progress import Progress

    from awatt.aspect_model.train import BundleConfig, train

    given = parse_overrides([f"bundle.{item}" for item in set_items or []]).get("bundle", {})
    config = build(BundleConfig, given, "bundle")
    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("learning", total=config.tasks)
        matcher = train(data, config, lambda done, loss: bar.update(task, completed=done))
    matcher.save(out)
    typer.echo(str(out))


def find_matcher(run: Path) -> Path | None:
    """The folder of a model that detects: 'bundled', or one that 'awatt bundle' wrote; None for a run's folder."""
    from awatt.aspect_model.model import BUNDLED

    if run == Path("bundled"):
        return BUNDLED
    return run if (run / "config.json").is_file() and not (run / "run.json").is_file() else None


def evaluate_matcher(
    folder: Path, data: Path, split: str, episodes: int, threshold: str | None, seed: int, shape: EpisodeShape
) -> dict[str, Any]:
    """Its measures on episodes of a split, at its own threshold or another."""
    from awatt.aspect_model.evaluation import judge, measure
    from awatt.aspect_model.model import Matcher
    from awatt.data.corpus import load_corpus

    matcher = Matcher.load(folder)
    cut = matcher.threshold if threshold is None else _probability(threshold)
    judged = judge(matcher, load_corpus(data, split), shape, episodes, seed)
    return {**measure(judged, cut), "threshold": cut}


def _probability(threshold: str) -> float:
    from awatt.errors import AwattError

    try:
        number = float(threshold)
    except ValueError:
        number = math.nan
    if not 0 <= number <= 1:
        needed = "for a model that detects a number from 0 to 1 is needed"
        raise AwattError(f"--threshold is '{threshold}', but {needed}.")
    return number
