"""``awatt score``."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from awatt.detector.examples import Examples

Run = Callable[..., Any]


def test_a_labelled_file_gives_measures_with_intervals(run: Run, examples: Path, tmp_path: Path) -> None:
    labelled = tmp_path / "labelled.csv"
    rows = ["A delicious pizza!,food", "What a rude waiter,staff", "a rude waiter,staff", "We left on Monday.,"]
    labelled.write_text("\n".join(["text,aspects", *rows]) + "\n")
    found = json.loads(run("score", labelled, "--examples", examples, "--json").out)
    assert found["n_sentences"] == 3  # the one that is an example does not count
    assert [each["name"] for each in found["aspects"]] == ["food", "staff"]
    food = found["aspects"][0]
    assert (food["mentioned"], food["right"], food["recall"]["value"]) == (1, 1, 1.0)
    assert food["recall"]["low"] < 0.3  # a single sentence shows little
    code, out, _ = run("score", labelled, "--examples", examples)
    assert code == 0
    assert out.splitlines()[0].split() == ["aspect", "mentioned", "found", "precision", "recall", "F1"]
    assert out.splitlines()[-1].startswith("Measured on 3 labelled sentences")


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (["Nice view,view"], "has the label 'view', which the detector does not know"),
        (["Nice view,view", "Loud,noise"], "has the labels 'noise', 'view', which the detector does not know"),
        (["a rude waiter,staff"], "every sentence of"),
        ([], "there is no labelled sentence"),
    ],
)
def test_a_file_that_measures_nothing_is_refused(
    run: Run, examples: Path, tmp_path: Path, rows: list[str], message: str
) -> None:
    labelled = tmp_path / "labelled.csv"
    labelled.write_text("\n".join(["text,aspects", *rows]) + "\n")
    code, _, err = run("score", labelled, "--examples", examples)
    assert (code, message in err, err.count("\n")) == (2, True, 1)


@pytest.mark.parametrize("header", ["text,aspect", "text,stars"])
def test_a_file_without_an_aspects_column_is_refused(run: Run, examples: Path, tmp_path: Path, header: str) -> None:
    labelled, other = tmp_path / "labelled.csv", header.partition(",")[2]
    labelled.write_text(f"{header}\nA delicious pizza!,food\nWhat a rude waiter,staff\n")
    code, out, err = run("score", labelled, "--examples", examples)
    assert (code, out) == (2, "")
    assert f"no row has a label in the column 'aspects'; the columns are: 'text', '{other}'. Rename" in err
    assert len(err.splitlines()) == 1


def test_the_examples_needed_the_text_column_of_the_labelled_file(run: Run, examples: Path, tmp_path: Path) -> None:
    (labelled := tmp_path / "labelled.csv").write_text("body,aspects\nA delicious pizza!,food\n")
    given = ("score", labelled, "--examples", examples, "--text-column", "body")
    code, _, err = run(*given)
    assert (code, err.endswith("holds the text with --examples-text-column.\n")) == (2, True)
    assert run(*given, "--examples-text-column", "text").code == 0
    examples.write_text(examples.read_text().replace("text,", "body,"))
    assert run(*given).code == 0


def test_a_file_of_off_topic_sentences_alone_is_measured(run: Run, examples: Path, tmp_path: Path) -> None:
    labelled = tmp_path / "labelled.csv"
    labelled.write_text("text,aspects\nWe left on Monday.,\n")
    assert json.loads(run("score", labelled, "--examples", examples, "--json").out)["n_sentences"] == 1


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_what_was_detected_counted_as_labels_in_exported_results(
    run: Run, examples: Path, tmp_path: Path, suffix: str
) -> None:
    rows = [
        {"text": "A delicious pizza!", "aspects": "food", "by_person": True},
        {"text": "We left on Monday.", "aspects": "", "by_person": True},
        {"text": "The waiter smiled.", "aspects": "staff", "by_person": False},
        {"text": "A cold pizza.", "aspects": "food", "by_person": False},
    ]
    results = tmp_path / f"results.{suffix}"
    if suffix == "csv":
        results.write_text("\n".join([",".join(rows[0]), *(",".join(map(str, row.values())) for row in rows)]) + "\n")
    else:
        lists = [{**row, "aspects": [name for name in [row["aspects"]] if name]} for row in rows]
        results.write_text("".join(json.dumps(row) + "\n" for row in lists))
    assert json.loads(run("score", results, "--examples", examples, "--json").out)["n_sentences"] == 2
    assert Examples.read(results).texts == ("A delicious pizza!", "We left on Monday.")
    assert Examples.read(results).aspects == ("food",)


def test_rows_that_were_only_detected_are_named_where_nothing_else_is_left(
    run: Run, examples: Path, tmp_path: Path
) -> None:
    (results := tmp_path / "results.csv").write_text("text,aspects,by_person\nA cold pizza.,food,false\n")
    said = "Rows with 'by_person' false were detected, not labelled."
    assert said in run("score", results, "--examples", examples).err
    assert said in run("explain", "A cold pizza.", "--examples", results).err
    results.write_text("text,aspects,by_person\nA cold pizza.,food,Ann\nA warm soup.,food,1.0\n")  # labels
    assert Examples.read(results).texts == ("A cold pizza.", "A warm soup.")


def test_an_example_in_capitals_was_measured_as_if_it_had_not_been_learned(
    run: Run, examples: Path, tmp_path: Path
) -> None:
    labelled = tmp_path / "labelled.csv"
    labelled.write_text("text,aspects\nA RUDE  WAITER,staff\nNice pizza.,food\n")
    assert json.loads(run("score", labelled, "--examples", examples, "--json").out)["n_sentences"] == 1
