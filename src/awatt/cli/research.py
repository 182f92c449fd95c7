"""``awatt train``, ``evaluate`` and ``bench``: a method on a benchmark, and its speed."""

from __future__ import annotations

import json
import math
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from awatt.cli.train_detector import evaluate_matcher, find_matcher

if TYPE_CHECKING:
    from awatt.research.runs import RunConfig

Data = Annotated[Path, typer.Option(help="A dataset's folder, with train, val and test files.")]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda, mps.")]
Threads = Annotated[int, typer.Option(min=1, help="CPU threads. Only transformers gain from more than one.")]

_DEFAULTS = {"method": "proto-awatt", "encoder": "glove-cnn", "threshold": "static", "seed": 5}


def train(
    data: Data,
    out: Annotated[Path, typer.Option(help="The run's folder; afterwards it is the trained model.")],
    method: Annotated[str | None, typer.Option(help="See 'awatt models'. [default: proto-awatt]")] = None,
    encoder: Annotated[str | None, typer.Option(help="See 'awatt encoders'. [default: glove-cnn]")] = None,
    threshold: Annotated[
        str | None,
        typer.Option(help="static, policy, kernel-regression, mean-std, radius, acceptance. [default: static]"),
    ] = None,
    n_way: Annotated[int | None, typer.Option(help="Aspects an episode. [default: 5]")] = None,
    n_shot: Annotated[int | None, typer.Option(help="Examples an aspect. [default: 5]")] = None,
    n_query: Annotated[int | None, typer.Option(help="Queries an aspect. [default: 5]")] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Seed of everything random. [default: 5]")] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="SECTION.FIELD=VALUE", help="For example model.e_m=25.")
    ] = None,
    config: Annotated[Path | None, typer.Option(help="TOML file with the same names; options go before it.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a run that was stopped.")] = False,
    device: Device = "auto",
    threads: Threads = 1,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress.")] = False,
) -> None:
    """Train a method on the train split and keep the epoch that does best on the val split.

    The settings that --set knows stand in the sections model, encoder, threshold, training and episode; a wrong name
    lists the right ones. A run that was killed goes on with --resume and ends with the same numbers.
    """
    from awatt.cli.progress import TrainingProgress
    from awatt.errors import require

    require("torch", "train").set_num_threads(threads)
    from awatt.research.runs import RunFolder
    from awatt.research.training import train as run_training

    options: dict[str, Any] = {"method": method, "encoder": encoder, "threshold": threshold, "seed": seed}
    episode = {"n_way": n_way, "n_shot": n_shot, "n_query": n_query}
    resolved = _resolve(config, options, episode, settings or [])
    with TrainingProgress(resolved.training, quiet) as progress:
        try:
            run_training(resolved, data, out, resume, device, progress.on_step, progress.on_epoch)
        except KeyboardInterrupt:
            typer.echo(f"awatt: stopped. {RunFolder(out).say_what_is_kept()} --resume goes on.", err=True)
            raise
    typer.echo(str(out))


def _resolve(config: Path | None, options: dict[str, Any], episode: dict[str, Any], items: list[str]) -> RunConfig:
    """Defaults, then the file, then the options, then --set."""
    from awatt.config import build, parse_overrides, read_toml
    from awatt.data.sampler import EpisodeShape
    from awatt.errors import AwattError
    from awatt.research.runs import RunConfig, TrainingConfig
    from awatt.research.system import SystemConfig

    content = read_toml(config) if config else {}
    sections = {"model", "encoder", "threshold", "training", "episode"}
    named = {"encoder_settings": "encoder", "threshold_settings": "threshold"}
    given: dict[str, dict[str, Any]] = {section: {} for section in sections}
    chosen: dict[str, Any] = dict(_DEFAULTS)
    for name, value in content.items():
        section = named.get(name, name)
        if isinstance(value, dict) and section in sections:
            given[section] |= value
        elif name in _DEFAULTS:
            wanted = type(_DEFAULTS[name])
            if type(value) is not wanted:
                raise AwattError(f"{config}: setting '{name}' is {value!r}, needs {wanted.__name__}.")
            chosen[name] = value
        else:
            valid = [*_DEFAULTS, "[model]", "[encoder_settings]", "[threshold_settings]", "[training]", "[episode]"]
            raise AwattError(f"{config}: there is no setting '{name}'. Valid here: {', '.join(valid)}.")
    chosen |= {name: value for name, value in options.items() if value is not None}
    given["episode"] |= {name: value for name, value in episode.items() if value is not None}
    for section, values in parse_overrides(items).items():
        if section not in sections:
            raise AwattError(f"there is no section '{section}' for --set. Valid: {', '.join(sorted(sections))}.")
        given[section] |= values
    shape = build(EpisodeShape, given["episode"], "episode")
    system = SystemConfig.from_mapping({**chosen, "n_way": shape.n_way, "settings": given})
    return RunConfig(system, shape, build(TrainingConfig, given["training"], "training"), chosen["seed"])


def evaluate(
    run: Annotated[
        Path, typer.Argument(metavar="RUN", help="A folder that 'awatt train' or 'awatt bundle' wrote, or: bundled.")
    ],
    data: Data,
    split: Annotated[str, typer.Option(help="train, val or test.")] = "test",
    episodes: Annotated[int, typer.Option(min=1, help="How many episodes.")] = 600,
    threshold: Annotated[
        str | None,
        typer.Option(
            help="Another one than the run's: a number, static, kernel-regression, mean-std, radius; "
            "or the run's own, calibrated anew for these episodes."
        ),
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Seed of the episodes. [default: the run's]")] = None,
    n_way: Annotated[int | None, typer.Option(help="Aspects an episode. [default: the run's]")] = None,
    n_shot: Annotated[int | None, typer.Option(help="Examples an aspect. [default: the run's]")] = None,
    n_query: Annotated[int | None, typer.Option(help="Queries an aspect. [default: the run's]")] = None,
    none_rate: Annotated[float, typer.Option(help="Share of queries that mention none of the aspects.")] = 0.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    device: Device = "auto",
    threads: Threads = 1,
) -> None:
    """AUC, macro-F1 and argmax-F1 with their 95 % intervals over episodes of a split.

    With --none-rate also the AUROC of queries without any aspect against the others, and the number of aspects that
    100 of them are given. Thresholds that are calibrated see validation episodes with the same none rate.
    """
    from awatt.config import build
    from awatt.data.sampler import EpisodeShape
    from awatt.errors import AwattError, require

    start = time.perf_counter()
    given = {"n_way": n_way, "n_shot": n_shot, "n_query": n_query, "none_rate": none_rate}
    given = {name: value for name, value in given.items() if value is not None}
    matcher = find_matcher(run)
    if matcher:
        if device not in ("auto", "cpu"):
            raise AwattError(f"--device is '{device}', but a model that detects runs on the cpu. Leave it out.")
        seed = 5 if seed is None else seed
        shape = build(EpisodeShape, given, "episode")
        found = evaluate_matcher(matcher, data, split, episodes, threshold, seed, shape)
        threshold = str(found.pop("threshold"))
    else:
        require("torch", "train").set_num_threads(threads)
        from awatt.data.corpus import load_corpus
        from awatt.research.evaluation import measure, replace_threshold, score_episodes
        from awatt.research.runs import RunFolder
        from awatt.research.system import System
        from awatt.research.training import pick_device

        system = System.load(run).to(pick_device(device))
        asked = RunFolder(run).read_description()
        shape = build(EpisodeShape, asked["episode"] | given, "episode")
        seed = asked["seed"] if seed is None else seed
        if threshold is not None:
            replace_threshold(system, threshold, data, shape, seed)
        found = measure(system, score_episodes(system, load_corpus(data, split), shape, episodes, seed))
        threshold = threshold or system.config.threshold
    result = {
        # One episode has no interval, and JSON no NaN.
        **{name: None if math.isnan(value) else value for name, value in found.items()},
        "episodes": episodes,
        "threshold": threshold,
        "split": split,
        "seed": seed,
        "n_way": shape.n_way,
        "n_shot": shape.n_shot,
        "n_query": shape.n_query,
        "none_rate": none_rate,
        "seconds": round(time.perf_counter() - start, 3),
    }
    if as_json:
        typer.echo(json.dumps(result, indent=1))
        return
    for name in ("auc", "macro_f1", "argmax_f1", "none_auroc", "false_aspects_per_100"):
        if name in found:
            interval = f" ± {found[f'{name}_ci95']:.4f}" if f"{name}_ci95" in found else ""
            typer.echo(f"{name.replace('_', '-'):<10} {found[name]:.4f}{interval}")
    if "ece" in found:
        typer.echo(f"{'ece':<10} {found['ece']:.4f}")
    typer.echo(
        f"{episodes} episodes of {split}, {shape.n_way}-way {shape.n_shot}-shot, seed {seed}, "
        f"threshold {result['threshold']}, {result['seconds']:.1f} s",
        err=True,
    )


def bench(
    data: Annotated[
        Path | None, typer.Option(help="A dataset's folder. [default: FewAsp(single) in AWATT_SHARED, or the sample]")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="A few episodes each: rough numbers.")] = False,
) -> None:
    """Speed on this machine, as ratios to the least that the work needs."""
    from awatt.errors import require

    require("torch", "train")
    from awatt.reproduce.bench import bench as run_bench

    found = run_bench(data, quick, lambda part: typer.echo(f"measuring {part} ...", err=True))
    if as_json:
        typer.echo(json.dumps(found, indent=1))
        return
    from rich.console import Console
    from rich.table import Table

    console = Console()
    for name, value in found.items():
        if isinstance(value, list):
            columns = list(dict.fromkeys(column for row in value for column in row))
            table = Table(*(column.replace("_", " ") for column in columns), title=name)
            for row in value:
                table.add_row(*(_cell(row.get(column, "")) for column in columns))
            console.print(table)
        else:
            parts = value.items() if isinstance(value, dict) else [("", value)]
            shown = ", ".join(f"{key} {_cell(item)}".strip() for key, item in parts)
            console.print(f"{name}: {shown}".replace("_", " "))


def _cell(value: object) -> str:
    if not isinstance(value, float):
        return str(value)
    return f"{value:.3g}" if value < 100 else f"{value:,.0f}"
