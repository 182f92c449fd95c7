"""``awatt suggest`` and ``awatt save``."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from awatt.aspect_model.model import AspectModel

Run = Callable[..., Any]


def test_sentences_to_label_next_are_printed(run: Run, examples: Path, tmp_path: Path) -> None:
    reviews = tmp_path / "reviews.csv"
    reviews.write_text("body\nA rude waiter. The bill was wrong!\nThe cook shouted at us.\nWarm bread.\n")
    options = ("--examples", examples, "--text-column", "body", "--reviews", "--count", 3)
    found = json.loads(run("suggest", reviews, *options, "--json").out)
    assert len(found) == len({each["text"] for each in found}) == 3
    assert {each["text"] for each in found} <= {
        "A rude waiter.",
        "The bill was wrong!",
        "The cook shouted at us.",
        "Warm bread.",
    }
    code, out, err = run("suggest", reviews, *options)
    assert (code, err) == (0, "")
    assert [line.split()[0] for line in out.splitlines()] == [each["aspect"] for each in found]
    assert [line.rpartition("  ")[2] for line in out.splitlines()] == [each["text"] for each in found]


def test_a_saved_detector_finds_the_same(run: Run, examples: Path, tmp_path: Path) -> None:
    folder = tmp_path / "detector"
    code, out, err = run("save", folder, "--examples", examples, "--threshold", 0.4)
    assert (code, out) == (0, "")
    assert f"--model {folder}" in err
    text = "The pizza was delicious, the waiter rude."
    given = ("--examples", examples, "--threshold", 0.4, "--json")
    assert run("explain", text, "--model", folder, "--json").out == run("explain", text, *given).out
    assert (folder / "examples.jsonl").exists()
    code, _, err = run("save", folder, "--examples", examples)
    assert (code, err.count("\n")) == (2, 1)  # nothing is replaced unless asked
    assert run("save", folder, "--examples", examples, "--overwrite", "--without-examples").code == 0
    assert not (folder / "examples.jsonl").exists()


@pytest.mark.parametrize("split", [(), ("--reviews",)])
def test_learning_from_the_file_gives_the_scores_of_detect(
    run: Run, examples: Path, tmp_path: Path, split: tuple[str, ...]
) -> None:
    folder, reviews, found = tmp_path / "detector", tmp_path / "reviews.csv", tmp_path / "found.jsonl"
    texts = [f"The {word} was good. We left." for word in ("pizza", "waiter", "room", "beach", "train", "sun")]
    texts += [f"A {word} on the table." for word in ("lamp", "cat", "book", "menu", "phone", "knife")]
    reviews.write_text("\n".join(["body", *texts]) + "\n")
    columns = ("--text-column", "body", "--examples-text-column", "text")
    learned = ("--examples", examples, "--learn-from", reviews, *columns)
    assert run("detect", reviews, "--examples", examples, *columns, *split, "--out", found).code == 0
    first = json.loads(found.read_text().splitlines()[0])
    explained = json.loads(run("explain", texts[0], *learned, *split, "--json").out)
    assert (explained["aspects"], explained["scores"]) == (first["aspects"], first["scores"])
    alone = json.loads(run("explain", texts[0], "--examples", examples, *split, "--json").out)
    assert alone["scores"] != first["scores"]
    assert run("save", folder, *learned, *split).code == 0
    before = found.read_bytes()
    again = ("--text-column", "body", *split, "--out", found, "--overwrite")
    assert run("detect", reviews, "--model", folder, *again).code == 0
    assert found.read_bytes() == before


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (("--learn-from", "none.csv"), "none.csv: there is no such file"),
        (("--learn-from", "empty.csv"), "empty.csv has no sentences to learn from"),
        (("--learn-from", "-", "--examples", "-"), "both stdin"),
        (("--reviews",), "--reviews needs --learn-from"),
    ],
)
def test_a_file_that_cannot_be_learned_from_is_said(
    run: Run, examples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: tuple[str, ...], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("empty.csv").write_text("text\n")
    code, out, err = run("save", "detector", "--examples", examples, *asked)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert said in err
    assert not Path("detector").exists()


def test_a_file_with_too_few_sentences_to_learn_from_was_not_mentioned(
    run: Run, examples: Path, tmp_path: Path
) -> None:
    (few := tmp_path / "few.csv").write_text("text\n" + "".join(f"Room {n} was fine.\n" for n in range(9)))
    with few.open("a") as file:
        file.write("Room 8 was fine.\n")
    code, out, err = run("save", tmp_path / "saved", "--examples", examples, "--learn-from", few)
    assert (code, out) == (0, "")
    has = f"awatt: {few} has only 9 different sentences, but at least 10 are needed: nothing is learned from it."
    assert err.startswith(has)
    with few.open("a") as file:
        file.write("Room 9 was fine.\n")
    assert "only" not in run("explain", "A room.", "--examples", examples, "--learn-from", few).err


@pytest.mark.parametrize(
    "command",
    [("suggest",), ("suggest-aspects",), ("score",), ("report", "--html", "page.html"), ("detect", "--prefix", "x_")],
)
def test_a_row_that_cannot_be_read_ended_other_commands_than_detect(
    run: Run, examples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [f'{{"text": "The pizza {number} was hot.", "aspects": ["food"]}}' for number in range(12)]
    Path("reviews.jsonl").write_text("\n".join([rows[0], "oops", *rows[1:], *["{"] * 25]))
    given = () if command == ("suggest-aspects",) else ("--examples", examples)
    code, out, err = run(command[0], "reviews.jsonl", *command[1:], *given)
    assert code == 3
    lines = [line for line in err.splitlines() if line.startswith("awatt: ")]
    assert lines[0].startswith("awatt: reviews.jsonl, line 2: invalid JSON at character 1")
    assert (len(lines), lines[20]) == (21, "awatt: and 6 more rows that cannot be read")
    assert out or Path("page.html").exists()


def test_unreadable_rows_were_not_mentioned_when_learning_from_a_file(run: Run, examples: Path, tmp_path: Path) -> None:
    (reviews := tmp_path / "reviews.csv").write_text(
        "id,text\n1\n" + "".join(f"2,Room {n}.\n" for n in range(20)) + "3\n"
    )
    code, _, err = run("explain", "A rude waiter", "--examples", examples, "--learn-from", reviews)
    assert (code, err.count("\n")) == (0, 1)
    first = f"awatt: nothing is learned from 2 rows that cannot be read. The first: {reviews}, line 2: found 1 cell, "
    assert err.startswith(first)


def test_a_model_that_learns_from_examples_alone_refuses_a_file(
    run: Run, examples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(AspectModel, "learns_from_reviews", False)
    code, _, err = run("save", tmp_path / "detector", "--examples", examples, "--learn-from", examples)
    assert (code, err.count("\n"), "--learn-from does not work" in err) == (2, 1, True)


def test_a_threshold_for_one_aspect_reset_the_saved_others(run: Run, examples: Path, tmp_path: Path) -> None:
    saved, changed = tmp_path / "saved", tmp_path / "changed"
    run("save", saved, "--examples", examples, "--threshold", 0.7)
    assert run("save", changed, "--model", saved, "--threshold", "food=0.9").code == 0
    assert json.loads((changed / "config.json").read_text())["threshold"] == {"food": 0.9, "staff": 0.7}


def test_aspects_that_a_file_talks_about_are_printed(run: Run, tmp_path: Path) -> None:
    reviews = tmp_path / "reviews.csv"
    rows = [
        "The battery is bad. The screen is dim.",
        "A new battery is dear.",
        "My battery was fine. The screen was big.",
    ]
    reviews.write_text("\n".join(["body", *rows]) + "\n")
    options = ("--text-column", "body", "--reviews")
    found = json.loads(run("suggest-aspects", reviews, *options, "--json").out)
    assert [(each["name"], each["count"]) for each in found] == [("battery", 3), ("screen", 2)]
    assert set(found[1]["sentences"]) == {"The screen is dim.", "The screen was big."}
    code, out, err = run("suggest-aspects", reviews, *options, "--count", 1)
    assert (code, err) == (0, "")
    assert out.splitlines()[0] == "battery  3  (battery)"
    assert len(out.splitlines()) == 4
    reviews.write_text("body\n5\n4\n")  # the wrong column, say
    code, out, err = run("suggest-aspects", reviews, *options)
    assert (code, out) == (0, "")
    assert err.startswith("awatt: no noun is frequent enough to suggest an aspect.")


@pytest.mark.parametrize("command", ["suggest", "suggest-aspects"])
def test_a_file_without_rows_is_said(run: Run, examples: Path, tmp_path: Path, command: str) -> None:
    (tmp_path / "empty.csv").write_text("text\n")
    given = ("--examples", examples) if command == "suggest" else ()
    code, out, err = run(command, tmp_path / "empty.csv", *given)
    assert (code, out) == (0, "")
    assert err == f"awatt: {tmp_path / 'empty.csv'} has no rows, so there is nothing to suggest.\n"
