"""``awatt data``: build, describe and check datasets."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from awatt.cli.options import InputFormat
from awatt.errors import plural

app = typer.Typer(
    help="Build, describe and check datasets.", no_args_is_help=True, add_completion=False, rich_markup_mode=None
)


@app.command()
def build(
    yelp: Annotated[Path, typer.Argument(metavar="YELP_DIR", help="Folder with the .txt files of Yelp_aspect.")],
    out: Annotated[Path, typer.Option(help="Folder to write the three datasets to.")],
    fewasp: Annotated[
        Path | None,
        typer.Option(
            help="Folder with official FewAsp files, which are used unchanged. [default: rebuild every split]"
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Random seed of the rebuilt splits.")] = 5,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace datasets that exist in the folder.")] = False,
) -> None:
    """Build FewAsp(single), FewAsp(multi) and FewAsp.

    They are built as the paper describes. A split with no official file is rebuilt from Yelp_aspect, without the
    sentences of the official val and test files. provenance.json in each dataset's folder records which splits are
    official and which are rebuilt.
    """
    from awatt.data.yelp_aspect import build as build_datasets

    provenance = build_datasets(yelp, fewasp, out, seed, overwrite)
    for dataset, splits in provenance.items():
        for split, entry in splits.items():
            assert isinstance(entry, dict)
            typer.echo(f"{dataset:<15} {split:<6} {entry['source']:<9} {entry['instances']:>7,} instances", err=True)
    typer.echo(str(out))


@app.command()
def stats(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Dataset folder, with train, val and test files.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
    episodes: Annotated[int, typer.Option(min=1, help="Episodes to sample per split.")] = 10_000,
    n_way: Annotated[int, typer.Option(min=1, help="Aspects per episode.")] = 5,
    n_shot: Annotated[int, typer.Option(min=1, help="Examples per aspect.")] = 5,
    n_query: Annotated[int, typer.Option(min=1, help="Queries per aspect.")] = 5,
    seed: Annotated[int, typer.Option(min=0, help="Random seed of the episodes.")] = 5,
) -> None:
    """Describe a dataset. Prints aspects, instances, sentence lengths, multi-aspect sentences and sampled episodes."""
    from awatt.data.sampler import EpisodeShape
    from awatt.data.stats import dataset_stats

    found = dataset_stats(folder, episodes, EpisodeShape(n_way, n_shot, n_query), seed)
    if as_json:
        typer.echo(json.dumps(found, indent=1))
        return
    from rich.console import Console
    from rich.table import Table

    splits = found["splits"]
    assert isinstance(splits, dict)
    table = Table("", *splits, title=str(folder))
    for name in dict.fromkeys(name for split in splits.values() for name in split):
        form = ".2%" if name.endswith("share") else ",.10g"
        shown = (format(split[name], form) if name in split else "unknown" for split in splits.values())
        table.add_row(name.replace("_", " "), *shown)
    Console().print(table)


@app.command()
def check(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="JSONL, CSV, TSV, Parquet or plain text, optionally .gz; or .json; - is stdin."
        ),
    ],
    text_column: Annotated[str, typer.Option(help="Column with the sentence.")] = "text",
    aspects_column: Annotated[
        str | None, typer.Option(help="Column with the aspects, which must have some. [default: aspects, if any]")
    ] = None,
    input_format: InputFormat = None,
) -> None:
    """List the rows of a file that cannot be read.

    Reads the whole file, and counts the sentences per aspect, too.

    The exit code is 3 if some rows cannot be read. A .json file holds examples, {aspect: [sentences]}.
    """
    from awatt.detector.examples import Examples
    from awatt.errors import AwattError, DataError
    from awatt.records.reader import read_records

    errors: list[DataError] = []
    if input_format is None and file.name.lower().endswith(".json"):
        pairs = iter(Examples.read(file).pairs())
    else:
        column = aspects_column or "aspects"
        batches = read_records(
            file, text_column=text_column, aspects_column=column, format=input_format, on_error=errors.append
        )
        pairs = ((record.text, record.aspects) for batch in batches for record in batch)
    aspects: Counter[str] = Counter()
    rows = empty = none = 0
    for text, mentioned in pairs:
        rows += 1
        empty += not text.strip()
        none += not mentioned
        aspects.update(mentioned)
    for error in errors:
        typer.echo(f"awatt: {error}", err=True)
    typer.echo(
        f"{plural(rows, 'row')} read, {len(errors):,} unreadable, {empty:,} with empty text, {none:,} without an aspect"
    )
    for aspect, count in aspects.most_common():
        typer.echo(f"{count:>8,}  {aspect}")
    if aspects_column is not None and not aspects:
        raise AwattError(f"{file}: no row has aspects in the column '{aspects_column}'. Check --aspects-column.")
    if errors:
        raise typer.Exit(3)
