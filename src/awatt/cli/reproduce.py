"""``awatt reproduce``: the paper's tables and figures."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from awatt.cli.options import Address, Engine, is_ray

if TYPE_CHECKING:
    from awatt.reproduce.suites import Choice, Run

#: items made from existing results, without training
_FROM_RESULTS = {
    "tables": "Every table and figure that has results, and the README's table, without training",
    "report": "The same, plus one HTML file with all of them",
}


class ListOptionsCommand(TyperCommand):
    """Accepts several words after a list option: ``--seeds 5 10``, ``--seeds=5 10``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Join such words with commas; the next option or item name ends the list."""
        from awatt.reproduce.suites import ITEMS

        names = ITEMS.keys() | _FROM_RESULTS.keys()
        joined: list[str] = []
        values = -1  # values read for the current list; -1 outside a list
        for word in args:
            if values > 0 and not word.startswith("-") and word not in names:
                joined[-1] += f",{word}"
                continue
            joined.append(word)
            option, equals, _ = word.partition("=")
            begins = option in ("--seeds", "--methods", "--settings", "--datasets")
            values = int(bool(equals)) if begins else 1 if values == 0 else -1
        return super().parse_args(ctx, joined)


def reproduce(
    items: Annotated[
        list[str] | None, typer.Argument(metavar="[ITEM]...", help="What to reproduce; --list shows all items.")
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(help="Folder that 'awatt data build' wrote. [default: none; needed only if results are missing]"),
    ] = None,
    out: Annotated[Path, typer.Option("--out", "--from", help="Folder of results, one JSON file per run.")] = Path(
        "results"
    ),
    seeds: Annotated[str, typer.Option(metavar="N ...", help="Random seeds; each gives one run.")] = "5 10 15 20 25",
    methods: Annotated[
        str,
        typer.Option(
            metavar="NAME ...", help="Only these methods or variants; an unknown name lists an item's. [default: all]"
        ),
    ] = "",
    settings: Annotated[
        str,
        typer.Option(metavar="NxK ...", help="Only these N-way K-shot settings: 5x5 5x10 10x5 10x10. [default: all]"),
    ] = "",
    datasets: Annotated[
        str,
        typer.Option(metavar="NAME ...", help="Only these: FewAsp(single), FewAsp(multi), FewAsp. [default: all]"),
    ] = "",
    encoder: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=FOLDER",
            help="Weights for table-encoders: bert=FOLDER, distilbert=FOLDER. [default: quoted numbers only]",
        ),
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Runs at a time, one core each.")] = 1,
    engine: Engine = "local",
    address: Address = "local",
    work: Annotated[Path, typer.Option(help="Folder for unfinished runs.")] = Path("runs/reproduce"),
    quick: Annotated[
        bool, typer.Option("--quick", help="Train on a few episodes only, to try the command out.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the missing runs and their estimated time, and stop.")
    ] = False,
    list_items: Annotated[bool, typer.Option("--list", help="List everything that can be reproduced.")] = False,
) -> None:
    """Run and write the paper's tables and figures.

    Runs what they need, and writes them to OUT with our numbers beside the published ones.

    Finished runs are skipped; a run that was killed continues where it stopped. Results of --quick go to a subfolder.
    'awatt reproduce tables --from OUT' rewrites everything from existing results; 'report' adds one HTML file.
    """
    from awatt.config import choose
    from awatt.errors import AwattError
    from awatt.reproduce.suites import ITEMS, Choice

    if list_items or not items:
        for name, title in {**{name: item.title for name, item in ITEMS.items()}, **_FROM_RESULTS}.items():
            typer.echo(f"{name:<20} {title}")
        return
    cluster = address if is_ray(engine, address) else None
    results, work = (out / "quick", work / "quick") if quick else (out, work)
    if _FROM_RESULTS.keys() & set(items):
        _rewrite(items, results, dry_run)
        return
    if encoder and "table-encoders" not in items:
        raise AwattError("--encoder is for table-encoders. Name that item, or leave the option out.")
    choice = Choice.parse(seeds, methods, settings, datasets, encoder or [])
    runs = [run for name in items for run in choose(ITEMS, name, "item").runs(choice)]
    overrides = ("training.episodes_per_epoch=20", "training.max_epochs=1") if quick else ()
    if _run(runs, data, results, work, jobs, overrides, dry_run, cluster):
        _publish(items, choice, data, results)


def _run(
    runs: list[Run],
    data: Path | None,
    results: Path,
    work: Path,
    jobs: int,
    overrides: tuple[str, ...],
    dry_run: bool,
    cluster: str | None,
) -> bool:
    """Run what is missing, locally or on Ray, or only list it (``dry_run``). Returns whether to publish the items."""
    from awatt.cli.progress import GridProgress
    from awatt.errors import plural
    from awatt.reproduce.plan import in_words, make_plan
    from awatt.reproduce.results import missing

    todo = missing(results, runs)
    if runs:
        total = len(set(runs))
        typer.echo(f"{total - len(todo)} of {plural(total, 'run')} done, {len(todo)} to go.", err=True)
        _warn_of_outdated(set(runs).difference(todo), data, results, overrides)
    plan = make_plan(todo, results)
    if dry_run:
        for run, seconds in plan.seconds.items():
            typer.echo(f"{run.name:<60} {in_words(seconds):>10}")
        typer.echo(f"About {in_words(sum(plan.seconds.values()) / jobs)} with --jobs {jobs}: {plan}.", err=True)
        return False
    if todo:
        with GridProgress(plan.seconds, jobs) as progress:
            if cluster is not None:
                from awatt.scale import experiments

                experiments.run_all(runs, _needed(data), results, work, jobs, overrides, progress.on_done, cluster)
                return True
            from awatt.reproduce.runner import run_all

            run_all(runs, _needed(data), results, work, jobs, overrides, progress.on_done)
    return True


def _warn_of_outdated(done: set[Run], data: Path | None, results: Path, overrides: tuple[str, ...]) -> None:
    """Say which results would come out differently today; without torch, which knows the settings, say nothing."""
    from importlib.util import find_spec

    from awatt.errors import plural

    if not done or find_spec("torch") is None:
        return
    from awatt.reproduce.runner import outdated

    if found := outdated(sorted(done, key=lambda run: run.name), data, results, overrides):
        run, difference = next(iter(found.items()))
        made = f"{plural(len(found), 'result')} made with other settings or data, such as {run.name} ({difference})"
        typer.echo(f"Warning: {made}. Delete what should be run again.", err=True)


def _publish(items: list[str], choice: Choice, data: Path | None, results: Path) -> None:
    """Print the requested part of each table; the files always hold every result."""
    from awatt.reproduce.formats import markdown
    from awatt.reproduce.publish import publish_item
    from awatt.reproduce.statistics import measure_statistics, statistics_path
    from awatt.reproduce.suites import TABLES
    from awatt.reproduce.tables import table

    for name in items:
        if name == "table-statistics" and not statistics_path(results).exists():
            measure_statistics(_needed(data), results)
        if name in TABLES:
            typer.echo(markdown(table(name, results, choice)))
        for path in publish_item(name, results):
            typer.echo(str(path), err=True)


def _rewrite(items: list[str], results: Path, dry_run: bool) -> None:
    """Make 'tables' or 'report' from existing results."""
    from awatt.errors import AwattError

    if len(items) > 1:
        raise AwattError(
            f"'tables' and 'report' cannot be combined with other items, found: {' '.join(items)}. Run them separately."
        )
    if dry_run:
        raise AwattError(f"--dry-run is for items that need runs; '{items[0]}' only writes files. Leave it out.")
    if items[0] == "report":
        from awatt.reproduce.report import write_report

        typer.echo(str(write_report(results)))
        return
    from awatt.reproduce.publish import publish

    for path in publish(results):
        typer.echo(str(path))


def _needed(data: Path | None) -> Path:
    from awatt.errors import AwattError

    if data is None:
        raise AwattError("results are missing. Give --data FOLDER, the folder that 'awatt data build' wrote.")
    return data


app = typer.Typer(add_completion=False, rich_markup_mode=None)
app.command("reproduce", cls=ListOptionsCommand)(reproduce)
