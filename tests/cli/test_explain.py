"""``awatt explain`` and ``awatt report``."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from awatt import AspectDetector

Run = Callable[..., Any]


@pytest.fixture
def examples(tmp_path: Path) -> Path:
    path = tmp_path / "aspects.csv"
    rows = ["the pizza was delicious,food", "delicious pizza,food", "a rude waiter,staff", "the waiter was rude,staff"]
    path.write_text("\n".join(["text,aspects", *rows, "no parking,parking"]) + "\n")
    return path


def test_the_deciding_words_and_all_scores_are_printed(run: Run, examples: Path) -> None:
    code, out, err = run("explain", "The pizza was delicious.", "--examples", examples)
    lines = out.splitlines()
    assert code == 0
    assert ": food]" in lines[0]
    assert lines[2].split()[0] == "food"
    assert {line.split()[0] for line in lines[2:]} == {"food", "staff", "parking"}
    assert err == "awatt: only 1 example of parking, which is weak. Aim for about 5.\n"


def test_a_review_is_explained_sentence_by_sentence(run: Run, examples: Path) -> None:
    text = "The pizza was delicious. The waiter was rude!"
    out = run("explain", text, "--examples", examples, "--json", "--reviews").out
    found = json.loads(out)
    assert [part["text"] for part in found["sentences"]] == ["The pizza was delicious.", "The waiter was rude!"]
    assert found["aspects"] == ["food", "staff"]
    for aspect, words in found["words"].items():
        assert aspect in found["aspects"]
        assert all(found["text"][word["start"] : word["end"]] == word["text"] for word in words)


def test_the_text_can_come_from_stdin(run: Run, examples: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO("Délicieux pizza\n".encode()), "utf-8"))
    assert json.loads(run("explain", "-", "--examples", examples, "--json").out)["text"] == "Délicieux pizza"
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"\xff"), "utf-8"))
    assert run("explain", "-", "--examples", examples).err == "awatt: stdin is not UTF-8 (byte 1). Convert it first.\n"


@pytest.mark.parametrize("text", ["", " ", "😀", "x" * 100_000])
def test_any_text_can_be_explained(run: Run, examples: Path, text: str) -> None:
    code, out, _ = run("explain", text, "--examples", examples, "--threshold", 0.999)
    assert code == 0
    assert "none" in out


def test_the_report(run: Run, examples: Path) -> None:
    code, out, err = run("report", "--examples", examples)
    assert (code, err) == (0, "")
    assert "weak: 1 example" in out
    assert "The quality cannot be estimated yet" in out
    report = json.loads(run("report", "--examples", examples, "--json").out)
    assert [aspect["name"] for aspect in report["aspects"]] == ["food", "staff", "parking"]


def test_invalid_examples_are_a_one_line_error(run: Run, examples: Path) -> None:
    assert run("report", "--examples", "nope.csv").err == "awatt: nope.csv: there is no such file. Check the path.\n"
    examples.write_text("text,aspects\n,food\n")
    assert run("report", "--examples", examples).err.startswith(f"awatt: {examples}, line 2, column 'text': found ''")
    examples.write_text("sentence,aspects\nx,food\n")
    code, _, err = run("report", "--examples", examples)
    assert code == 2
    assert "column 'text': no such column; the columns are: 'sentence', 'aspects'" in err
    done = run("report", "--examples", examples, "--text-column", "sentence")
    assert (done.code, "cannot be estimated yet" in done.out) == (0, True)  # one example is too few


def test_labels_were_read_with_the_columns_of_the_examples(
    run: Run, examples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (reviews := tmp_path / "reviews.csv").write_text("body\nWarm pizza.\nBye.\n")
    (labels := tmp_path / "labels.csv").write_text("body,aspects\nWarm pizza.,food\n")
    given = ("report", reviews, "--text-column", "body", "--html", tmp_path / "x.html", "--examples", examples)
    assert json.loads(run(*given, "--json", "--labels", labels).out)["quality"]["n_sentences"] == 1
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(labels.read_bytes()), "utf-8"))
    code, _, err = run(*given, "--overwrite", "--labels", "-")
    assert (code, "Save it as a file that ends in .csv" in err, "--format" in err) == (2, True, False)
    err = run(*given, "--overwrite", "--labels", examples).err
    assert err.endswith("holds the text with --text-column; its name must be the same in FILE.\n")
    err = run(*given, "--overwrite", "--examples-text-column", "body").err
    assert err.endswith("holds the text with --examples-text-column.\n")


@pytest.mark.parametrize("name", ["-", "page.pdf", "page"])
def test_a_page_was_written_to_a_file_of_any_name(
    run: Run, examples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = run("report", examples, "--examples", examples, "--html", name)
    assert (code, out, Path(name).exists()) == (2, "", False)
    assert err == f"awatt: --html is '{name}', but the page is a file whose name ends in .html. Name such a file.\n"


def test_an_error_named_the_temporary_file_of_a_page(
    run: Run, examples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path, *_: object) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "write_bytes", refuse)
    code, _, err = run("report", examples, "--examples", examples, "--html", tmp_path / "page.html")
    assert (code, err) == (2, f"awatt: {tmp_path / 'page.html'}: Permission denied. Check the permissions.\n")


def test_explain_shows_what_detect_finds(run: Run, examples: Path, tmp_path: Path) -> None:
    text = "The pizza was delicious. The waiter was rude!"
    (tmp_path / "one.txt").write_text(f"{text}\n")
    options = ("--examples", examples, "--threshold", "0.3")
    for split in ((), ("--reviews",)):
        explained = run("explain", text, *options, *split, "--json")
        found = json.loads(run("detect", tmp_path / "one.txt", *options, *split, "--quiet").out)
        assert json.loads(explained.out)["scores"] == found["scores"]
        assert ("2 sentences, read as one. Add --reviews" in explained.err) == (not split)


def test_an_aspect_that_is_never_found_is_not_said_to_be_found_by_name(run: Run, tmp_path: Path) -> None:
    detector = AspectDetector.from_examples({"food": ["Tasty soup.", "Cold pasta."]})
    detector.add_aspect("価格", []).add_aspect("staff", []).save_pretrained(tmp_path / "saved")
    err = run("explain", "Tasty soup.", "--model", tmp_path / "saved").err
    assert "awatt: no example of 価格: never found. Add some.\n" in err
    assert "awatt: no example of staff: found by name alone. Add some.\n" in err


def test_rounding_moved_a_score_across_its_threshold(run: Run, examples: Path) -> None:
    given = ("explain", "The pizza was cold.", "--examples", examples)
    score = json.loads(run(*given, "--json").out)["scores"]["food"]
    lines = run(*given, "--threshold", score + 0.0002).out.splitlines()
    shown, sign, cut = next(line for line in lines[2:] if line.startswith("food ")).split()[-3:]
    assert (sign, float(shown) < float(cut)) == ("<", True)  # not 0.38 < 0.38


def test_the_help_says_that_the_file_of_detect_makes_a_difference(run: Run) -> None:
    for command in ("explain", "score", "report", "save"):
        shown = " ".join(run(command, "--help").out.replace("│", " ").split())
        assert "alone" in shown, command
        assert "'awatt detect'" in shown, command
