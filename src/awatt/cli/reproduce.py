"""``awatt reproduce``: the paper's tables and figures, by command."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from awatt.cli.options import Address, Engine, is_ray

if TYPE_CHECKING:
    from awatt.reproduce.suites import Choice, Run

#: what is made from results alone
_SHOWN = {
    "tables": "Every table and figure that has results, again, without training; the README's table, too",
    "report": "The same, and one HTML file that holds all of it",
}


class ListsCommand(TyperCommand):
    """Words that follow the value of an option that holds a list belong to it: ``--seeds 5 10``, ``--seeds=5 10``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Such words are joined by commas; an option, or the name of an item, ends them."""
        from awatt.reproduce.suites import ITEMS

        names = ITEMS.keys() | _SHOWN.keys()
        joined: list[str] = []
        values = -1  # of the list that is being read; -1 outside one
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
        list[str] | None, typer.Argument(metavar="[ITEM]...", help="What to reproduce; --list names everything.")
    ] = None,
    data: Annotated[Path | None, typer.Option(help="Folder that 'awatt data build' wrote.")] = None,
    out: Annotated[Path, typer.Option("--out", "--from", help="Folder of results, one JSON a run.")] = Path("results"),
    seeds: Annotated[str, typer.Option(metavar="N ...", help="Seeds of the runs.")] = "5 10 15 20 25",
    methods: Annotated[str, typer.Option(metavar="NAME ...", help="Only these methods or variants.")] = "",
    settings: Annotated[str, typer.Option(metavar="NxK ...", help="Only these settings, such as 5x5 10x5.")] = "",
    datasets: Annotated[str, typer.Option(metavar="NAME ...", help="Only these of an item's datasets.")] = "",
    encoder: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=FOLDER", help="Weights for table-encoders: bert=FOLDER, distilbert=FOLDER."),
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, help="How many runs at a time, one core each.")] = 1,
    engine: Engine = "local",
    address: Address = "local",
    work: Annotated[Path, typer.Option(help="Where unfinished runs are kept.")] = Path("runs/reproduce"),
    quick: Annotated[bool, typer.Option("--quick", help="A few episodes each, to see it work.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be run and how long, and stop.")] = False,
    list_items: Annotated[bool, typer.Option("--list", help="Name everything that can be reproduced.")] = False,
) -> None:
    """Run what tables and figures of the paper need, and write them to OUT, ours beside the published numbers.

    What is done is skipped; a run that was killed goes on where it was. --quick results go to a folder of their own.
    'awatt reproduce tables --from OUT' writes all again from the results, 'report' one HTML file of them.
    """
    from awatt.config import choose
    from awatt.errors import AwattError
    from awatt.reproduce.suites import ITEMS, Choice

    if list_items or not items:
        for name, title in {**{name: item.title for name, item in ITEMS.items()}, **_SHOWN}.items():
            typer.echo(f"{name:<20} {title}")
        return
    results = out / "quick" if quick else out
    if _SHOWN.keys() & set(items):
        _show(items, results)
        return
    if encoder and "table-encoders" not in items:
        raise AwattError("--encoder is for table-encoders. Name that item, or leave the option out.")
    choice = Choice.parse(seeds, methods, settings, datasets, encoder or [])
    runs = [run for name in items for run in choose(ITEMS, name, "item").runs(choice)]
    overrides = ("training.episodes_an_epoch=20", "training.max_epochs=1") if quick else ()
    if _run(runs, data, results, work, jobs, overrides, dry_run, address if is_ray(engine) else None):
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
    """Run what is missing, here or on Ray, or with ``dry_run`` only say so. Whether there is something to see."""
    from awatt.cli.progress import GridProgress
    from awatt.reproduce.plan import in_words, make_plan
    from awatt.reproduce.results import missing

    todo = missing(results, runs)
    if runs:
        total = len(set(runs))
        typer.echo(f"{total - len(todo)} of {total} runs are done, {len(todo)} to go.", err=True)
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


def _publish(items: list[str], choice: Choice, data: Path | None, results: Path) -> None:
    """Print each table as far as it was asked for. The files hold all that there is, whatever part was asked for."""
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


def _show(items: list[str], results: Path) -> None:
    """'tables' and 'report' stand alone."""
    from awatt.errors import AwattError

    if len(items) > 1:
        raise AwattError(f"'tables' and 'report' stand alone, found: {' '.join(items)}. Run one after the other.")
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
        raise AwattError("--data is needed: the folder that 'awatt data build' wrote.")
    return data
