"""``awatt train``, ``evaluate`` and ``bench``: train a method, measure it, and measure speed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from awatt.cli.options import AsJson, Data, Device, Threads
from awatt.errors import plural


def train(
    data: Data,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder for the run, which becomes the trained model.")],
    method: Annotated[
        str | None, typer.Option(help="Few-shot method; 'awatt models' lists them. [default: proto-awatt]")
    ] = None,
    encoder: Annotated[
        str | None, typer.Option(help="Sentence encoder; 'awatt encoders' lists them. [default: glove-cnn]")
    ] = None,
    threshold: Annotated[
        str | None,
        typer.Option(
            help="Threshold: static, policy, kernel-regression, mean-std, radius or acceptance. [default: static]"
        ),
    ] = None,
    n_way: Annotated[int | None, typer.Option(help="Aspects per episode. [default: 5]")] = None,
    n_shot: Annotated[int | None, typer.Option(help="Examples per aspect. [default: 5]")] = None,
    n_query: Annotated[int | None, typer.Option(help="Queries per aspect. [default: 5]")] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Random seed of the whole run. [default: 5]")] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="SECTION.FIELD=VALUE",
            help="Override a setting, such as model.e_m=25; may be repeated. [default: no overrides]",
        ),
    ] = None,
    config: Annotated[
        Path | None, typer.Option(help="TOML file with settings; options override it. [default: no file]")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue a run that was stopped.")] = False,
    device: Device = "auto",
    threads: Threads = 1,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print no progress.")] = False,
) -> None:
    """Train a method of the paper. Keeps the epoch that does best on the val split.

    --set knows the sections model, encoder, threshold, training and episode; an unknown name lists the valid ones.
    A run that was killed continues with --resume and ends with the same numbers.
    """
    from awatt.cli.progress import TrainingProgress
    from awatt.errors import require

    require("torch", "train").set_num_threads(threads)
    from awatt.research.runs import RunFolder
    from awatt.research.settings import resolve_run
    from awatt.research.training import train as run_training

    options = {"method": method, "encoder": encoder, "threshold": threshold, "seed": seed}
    episode = {"n_way": n_way, "n_shot": n_shot, "n_query": n_query}
    resolved = resolve_run(config, options, episode, settings or [])
    with TrainingProgress(resolved.training, quiet) as progress:
        try:
            run_training(resolved, data, out, resume, device, progress.on_step, progress.on_epoch)
        except KeyboardInterrupt:
            typer.echo(f"awatt: stopped. {RunFolder(out).describe_kept()} Continue with --resume.", err=True)
            raise
    typer.echo(str(out))


def evaluate(
    run: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            help="A run of 'awatt train', a model of 'awatt train-detector', a saved detector, fast or accurate.",
        ),
    ],
    data: Data,
    split: Annotated[str, typer.Option(metavar="SPLIT", help="Split to evaluate on: train, val or test.")] = "test",
    episodes: Annotated[int, typer.Option(min=1, help="Number of episodes.")] = 600,
    threshold: Annotated[
        str | None,
        typer.Option(
            metavar="X",
            help="Use another threshold: a number; for a run also static, kernel-regression, mean-std, radius, or "
            "its own policy or acceptance; calibrated kinds are recalibrated. [default: the model's own]",
        ),
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Random seed of the episodes. [default: the model's]")] = None,
    n_way: Annotated[int | None, typer.Option(help="Aspects per episode. [default: the model's]")] = None,
    n_shot: Annotated[int | None, typer.Option(help="Examples per aspect. [default: the model's]")] = None,
    n_query: Annotated[int | None, typer.Option(help="Queries per aspect. [default: the model's]")] = None,
    none_rate: Annotated[
        float, typer.Option(help="Share of off-topic queries, which mention none of the aspects.")
    ] = 0.0,
    as_json: AsJson = False,
    device: Device = "auto",
    threads: Threads = 1,
) -> None:
    """Measure a model over episodes of a split. Prints AUC, macro-F1 and argmax-F1 with 95 % confidence intervals.

    --none-rate adds the AUROC of off-topic against other queries, and the false aspects per 100 off-topic queries.
    Calibrated thresholds then see validation episodes with the same share of off-topic queries.
    """
    from awatt.detector.models import read_model
    from awatt.research.evaluation import evaluate as run_evaluation

    shape = {"n_way": n_way, "n_shot": n_shot, "n_query": n_query, "none_rate": none_rate}
    given = {name: value for name, value in shape.items() if value is not None}
    found = run_evaluation(read_model(run, device, threads), data, split, episodes, threshold, seed, **given)
    if as_json:
        typer.echo(json.dumps(found, indent=1))
        return
    for name in ("auc", "macro_f1", "argmax_f1", "none_auroc", "false_aspects_per_100", "ece"):
        if found.get(name) is not None:
            half_width = found.get(f"{name}_ci95")
            interval = "" if half_width is None else f" ± {half_width:.4f}"
            typer.echo(f"{name.replace('_', '-'):<10} {found[name]:.4f}{interval}")
    typer.echo(
        f"{plural(episodes, 'episode')} of {split}, {found['n_way']}-way {found['n_shot']}-shot, seed {found['seed']}, "
        f"threshold {found['threshold']}, {found['seconds']:.1f} s",
        err=True,
    )


def bench(
    data: Annotated[
        Path | None,
        typer.Option(help="Dataset folder. [default: FewAsp(single) in AWATT_SHARED, else the bundled sample]"),
    ] = None,
    as_json: AsJson = False,
    quick: Annotated[bool, typer.Option("--quick", help="Use few episodes, for rough numbers.")] = False,
    compare: Annotated[
        Path, typer.Option(metavar="FILE", help="Earlier results of --json; ratios that became worse are shown in red.")
    ] = Path("results/bench.json"),
) -> None:
    """Measure speed, relative to the theoretical minimum."""
    from awatt.errors import require

    require("torch", "train")
    from awatt.data.fewasp import read_json
    from awatt.reproduce.bench import bench as run_bench
    from awatt.reproduce.bench_report import regressions

    found = run_bench(data, quick, lambda part: typer.echo(f"measuring {part} ...", err=True))
    if as_json:
        typer.echo(json.dumps(found, indent=1))
        return
    _print_bench(found)
    if compare.is_file():
        worse = regressions(found, cast("dict[str, Any]", read_json(compare)))
        for line in worse:
            typer.secho(line, fg="red")
        if not worse:
            typer.echo(f"no ratio is more than 15 % worse than in {compare}")


def _print_bench(found: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    from awatt.reproduce.bench_report import LEFT_OUT, cell, table

    console = Console(width=80)
    for name, value in found.items():
        title = name.replace("_", " ")
        if isinstance(value, list):
            headings, *rows = table(value)
            if rows:
                shown = Table(*headings, title=title, padding=(0, 0))
                for row in rows:
                    shown.add_row(*row)
                console.print(shown)
            for row in value:
                if LEFT_OUT in row:
                    console.print(f"{title}, {row['encoder']}: {row[LEFT_OUT]}")
        elif isinstance(value, dict):
            console.print(
                f"{title}: " + ", ".join(f"{key} {cell(item)}" for key, item in value.items()).replace("_", " ")
            )
        else:
            console.print(f"{title}: {value}")
