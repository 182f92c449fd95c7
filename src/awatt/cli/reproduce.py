"""``awatt reproduce``: the paper's tables, by command."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer


def reproduce(
    item: Annotated[str, typer.Argument(help="What to reproduce; --list names everything.")] = "",
    data: Annotated[Path | None, typer.Option(help="Folder that 'awatt data build' wrote.")] = None,
    out: Annotated[Path, typer.Option(help="Folder of results, one JSON a run.")] = Path("results"),
    seeds: Annotated[str, typer.Option(help="Seeds of the runs.")] = "5 10 15 20 25",
    methods: Annotated[str, typer.Option(help="Only these methods or variants, with commas between.")] = "",
    settings: Annotated[str, typer.Option(help="Only these settings, such as '5x5 10x5'.")] = "",
    datasets: Annotated[str, typer.Option(help="Only these datasets of an item with several, commas between.")] = "",
    jobs: Annotated[int, typer.Option(min=1, help="How many runs at a time, one core each.")] = 1,
    work: Annotated[Path, typer.Option(help="Where unfinished runs are kept.")] = Path("runs/reproduce"),
    quick: Annotated[bool, typer.Option("--quick", help="A few episodes each, to see it work.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be run, and stop.")] = False,
    list_items: Annotated[bool, typer.Option("--list", help="Name everything that can be reproduced.")] = False,
) -> None:
    """Run what a table of the paper needs; print it beside the published numbers and write it to OUT/ITEM.md.

    What is done is skipped; a run that was killed goes on where it was. --quick results go to a folder of their own.
    """
    from awatt.config import choose
    from awatt.errors import AwattError
    from awatt.reproduce.suites import ITEMS, Choice, Run

    if list_items or not item:
        for name, entry in ITEMS.items():
            typer.echo(f"{name:<20} {entry.title}")
        return
    choice = Choice(_seeds(seeds), _names(methods), _pairs(settings), _names(datasets))
    runs = choose(ITEMS, item, "item").runs(choice)
    results = out / "quick" if quick else out
    from awatt.reproduce.runner import missing, run_all

    todo = missing(results, runs)
    typer.echo(f"{len(runs) - len(todo)} of {len(runs)} runs are done, {len(todo)} to go.", err=True)
    if dry_run:
        for run in todo:
            typer.echo(run.name)
        return
    if todo:
        if data is None:
            raise AwattError("--data is needed: the folder that 'awatt data build' wrote.")
        overrides = ("training.episodes_an_epoch=20", "training.max_epochs=1") if quick else ()

        def on_done(run: Run, result: dict[str, Any]) -> None:
            test = result["test"]
            figures = f"AUC {test['auc']:.4f}  F1 {100 * test['macro_f1']:.2f}  {result['seconds']:.0f} s"
            typer.echo(f"{run.name:<60} {figures}", err=True)

        run_all(runs, data, results, work, jobs, overrides, on_done)
    from awatt.files import write_text
    from awatt.reproduce.tables import markdown, rows

    typer.echo(markdown(rows(runs, results)))
    # The file holds all that there is, whatever part was asked for now.
    entry = ITEMS[item]
    whole = markdown(rows(entry.runs(Choice()), results))
    write_text(results / f"{item}.md", f"# {entry.title}\n\n*Italics* are quoted from the paper.\n\n{whole}")


def _seeds(text: str) -> tuple[int, ...]:
    from awatt.errors import AwattError

    for seed in text.split():
        if not seed.isdigit():
            raise AwattError(f"--seeds needs whole numbers, found {seed!r}.")
    return tuple(map(int, text.split()))


def _names(text: str) -> tuple[str, ...]:
    return tuple(filter(None, (name.strip() for name in text.split(","))))


def _pairs(settings: str) -> tuple[tuple[int, int], ...]:
    from awatt.errors import AwattError

    pairs = []
    for setting in settings.split():
        n_way, cross, n_shot = setting.partition("x")
        if not (cross and n_way.isdigit() and n_shot.isdigit()):
            raise AwattError(f"--settings needs pairs such as 5x5, found {setting!r}.")
        pairs.append((int(n_way), int(n_shot)))
    return tuple(pairs)
