"""``awatt suggest-aspects``: what the sentences of a file talk about."""

from __future__ import annotations

import dataclasses
import json
from typing import Annotated

import typer

from awatt.cli.options import (
    AsJson,
    InputFormat,
    ModelToFit,
    ReviewsFile,
    SplitReviews,
    TextColumn,
    bad_rows_left_out,
    say,
    say_no_rows,
)

SHOWN_WORDS = 6


def suggest_aspects(
    source: ReviewsFile,
    count: Annotated[int, typer.Option("--count", min=1, help="Number of aspects to suggest.")] = 12,
    model: ModelToFit = "fast",
    text_column: TextColumn = "text",
    reviews: SplitReviews = False,
    input_format: InputFormat = None,
    as_json: AsJson = False,
) -> None:
    """Print what the sentences talk about. Lists groups of nouns that may be aspects, the most frequent first.

    Each has a name, the number of sentences with one of its words, and three typical sentences. Needs no examples.
    """
    from awatt.detector.new_aspects import suggest_aspects_of_file

    with bad_rows_left_out() as on_error:
        found, texts = suggest_aspects_of_file(source, count, model, text_column, input_format, reviews, on_error)
        if not texts:
            say_no_rows(source)
        elif not found:
            say("no noun is frequent enough to suggest an aspect. Check --text-column, or give more sentences.")
        typical = [[" ".join(texts[number].split()) for number in each.sentences] for each in found]
        if as_json:
            rows = [
                {**dataclasses.asdict(each), "sentences": shown} for each, shown in zip(found, typical, strict=True)
            ]
            typer.echo(json.dumps(rows, ensure_ascii=False, indent=1))
            return
        for each, shown in zip(found, typical, strict=True):
            typer.echo(f"{each.name}  {each.count}  ({', '.join(each.words[:SHOWN_WORDS])})")
            for sentence in shown:
                typer.echo(f"    {sentence}")
