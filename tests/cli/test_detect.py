"""``awatt detect``: formats, options, errors, and interrupted runs."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from awatt import AspectDetector
from awatt.cli.drawing import count_chart
from awatt.detector import bulk, columns
from awatt.records import reader
from awatt.records.formats import import_pyarrow
from awatt.records.reader import read_records
from awatt.records.writer import RecordWriter

Run = Callable[..., Any]
EXAMPLES = [
    ("the pizza was delicious", ["food"]),
    ("tasty soup, delicious pizza", ["food"]),
    ("the waiter was rude", ["staff"]),
    ("a rude waitress", ["staff"]),
    ("the parking lot was full", ["parking"]),
]
TEXTS = ["The pizza was delicious!", "the parking lot was full", "", "😀", 'the "waiter", was\nrude', "zxqv"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory of the command, with examples and reviews."""
    monkeypatch.chdir(tmp_path)
    with RecordWriter("aspects.jsonl") as writer:
        writer.write([{"text": text, "aspects": aspects} for text, aspects in EXAMPLES])
    with RecordWriter("reviews.csv") as writer:
        writer.write([{"id": number, "text": text, "stars": 5} for number, text in enumerate(TEXTS)])
    return tmp_path


def read_rows(path: str) -> list[dict[str, Any]]:
    return [{"text": r.text, "aspects": list(r.aspects), **r.fields} for batch in read_records(path) for r in batch]


def test_csv_to_jsonl(run: Run) -> None:
    code, out, err = run("detect", "reviews.csv", "--examples", "aspects.jsonl", "--out", "found.jsonl")
    assert (code, out) == (0, "")
    assert err.startswith("6 sentences in ")
    assert "none " in err
    rows = read_rows("found.jsonl")
    found = AspectDetector.from_examples("aspects.jsonl").detect_many(TEXTS)
    assert [row["text"] for row in rows] == TEXTS
    assert [row["id"] for row in rows] == list("012345")
    assert [row["aspects"] for row in rows] == [each.aspects for each in found]
    assert [row["scores"] for row in rows] == [each.scores for each in found]
    assert "words" not in rows[0]
    assert rows[1]["aspects"] == ["parking"]


@pytest.mark.parametrize("suffix", ["csv", "tsv", "parquet", "csv.gz", "parquet.gz", "jsonl.gz"])
def test_every_output_format_holds_the_same_results(run: Run, suffix: str) -> None:
    run("detect", "reviews.csv", "--examples", "aspects.jsonl", "--out", "found.jsonl", "--words")
    assert run("detect", "reviews.csv", "--examples", "aspects.jsonl", "--out", f"found.{suffix}", "--words").code == 0
    for row, wanted in zip(read_rows(f"found.{suffix}"), read_rows("found.jsonl"), strict=True):
        assert (row["text"], row["aspects"]) == (wanted["text"], wanted["aspects"])
        if suffix != "jsonl.gz":
            scores = {name[len("score_") :]: float(value) for name, value in row.items() if name.startswith("score_")}
            assert scores == wanted["scores"]
            assert json.loads(row["words"]) == wanted["words"]


@pytest.mark.parametrize("suffix", ["jsonl", "jsonl.gz", "tsv", "parquet", "txt"])
def test_every_input_format_is_read(run: Run, suffix: str) -> None:
    rows = [{"text": text} for text in TEXTS if text and "\n" not in text]
    with RecordWriter(f"in.{suffix}") as writer:
        writer.write(rows)
    assert run("detect", f"in.{suffix}", "--examples", "aspects.jsonl", "--out", "found.jsonl").code == 0
    assert [row["text"] for row in read_rows("found.jsonl")] == [row["text"] for row in rows]


def test_words_have_offsets_into_the_text(run: Run) -> None:
    run("detect", "reviews.csv", "--examples", "aspects.jsonl", "--out", "found.jsonl", "--words", "--threshold", 0)
    for row in read_rows("found.jsonl"):
        assert bool(row["words"]) == bool(row["text"])
        assert all(row["text"][word["start"] : word["end"]] == word["word"] for word in row["words"])


def test_whole_reviews(run: Run) -> None:
    text = "The pizza was delicious! The parking lot was full."
    with RecordWriter("in.jsonl") as writer:
        writer.write([{"text": text}, {"text": ""}])
    code, _, err = run(
        "detect", "in.jsonl", "--examples", "aspects.jsonl", "--out", "found.jsonl", "--reviews", "--words"
    )
    assert code == 0
    assert err.startswith("2 reviews in ")
    first, second = read_rows("found.jsonl")
    assert first["aspects"] == ["food", "parking"]
    assert [text[part["start"] : part["end"]] for part in first["sentences"]] == [text[:24], text[25:]]
    assert all(text[word["start"] : word["end"]] == word["word"] for word in first["words"])
    assert second["aspects"] == []


def test_stdin_to_stdout(script: Path) -> None:
    command = [script, "detect", "-", "--format", "txt", "--examples", "aspects.jsonl", "--quiet"]
    done = subprocess.run(command, input="the parking lot was full\n😀\n", capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(row["text"], row["aspects"]) for row in rows] == [("the parking lot was full", ["parking"]), ("😀", [])]


def test_csv_on_stdout(run: Run) -> None:
    rows = list(
        csv.DictReader(
            run("detect", "reviews.csv", "--examples", "aspects.jsonl", "--out-format", "csv").out.splitlines()
        )
    )
    assert rows[1]["aspects"] == "parking"


def test_the_summary_as_json(run: Run) -> None:
    arguments = ("detect", "reviews.csv", "--examples", "aspects.jsonl", "--json")
    code, out, err = run(*arguments, "--out", "found.jsonl")
    summary = json.loads(out)
    assert (code, err) == (0, "")
    assert (summary["rows"], summary["failed"], list(summary["aspects"])) == (6, 0, ["food", "staff", "parking"])
    assert summary["none"] == sum(not row["aspects"] for row in read_rows("found.jsonl"))
    code, out, err = run(*arguments)
    assert len(out.splitlines()) == 6
    assert json.loads(err)["rows"] == 6


def test_bad_rows_are_listed_and_left_out(run: Run) -> None:
    lines = ["id,text", "1,the pizza", "2", '3,"the waiter"', *(f"{n},a,b" for n in range(30))]
    Path("bad.csv").write_text("\n".join(lines) + "\n")
    code, _, err = run("detect", "bad.csv", "--examples", "aspects.jsonl", "--out", "found.jsonl")
    assert code == 3
    assert [row["id"] for row in read_rows("found.jsonl")] == ["1", "3"]
    assert "awatt: bad.csv, line 3: found 1 cell, but the header names 2 columns" in err
    assert "awatt: and 11 more rows that cannot be read" in err
    assert "2 sentences in " in err
    assert "31 rows left out" in err


@pytest.mark.parametrize("cell", ["null", "NaN", "3", '["a"]'])
def test_a_row_without_text(run: Run, cell: str) -> None:
    Path("in.jsonl").write_text(f'{{"text": {cell}}}\n{{"text": "fine"}}\n')
    code, out, err = run("detect", "in.jsonl", "--examples", "aspects.jsonl")
    assert code == 3
    assert json.loads(out)["text"] == "fine"
    assert "in.jsonl, line 1, column 'text': found" in err


@pytest.mark.parametrize("name", ["found.jsonl", "found.parquet"])
def test_nothing_is_overwritten_without_overwrite(run: Run, name: str) -> None:
    arguments = ("detect", "reviews.csv", "--examples", "aspects.jsonl", "--quiet", "--out")
    Path(name).write_text("precious")
    code, _, err = run(*arguments, name)
    assert code == 2
    assert err == f"awatt: {name}: the file already exists. Use --overwrite to replace it, or another name.\n"
    assert Path(name).read_text() == "precious"
    assert run(*arguments, name, "--overwrite").code == 0
    assert len(read_rows(name)) == 6


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nope.csv",), "nope.csv: there is no such file"),
        (("reviews.csv", "--text-column", "body"), "column 'body': no such column; the columns are: 'id', 'text'"),
        (
            ("aspects.jsonl",),
            "the input already has a column 'aspects'. Rename the new ones, for example with --prefix found_.",
        ),
        (("reviews.csv", "--out", "a.txt"), "plain text cannot hold aspects"),
        (("reviews.csv", "--out", "reviews.csv", "--overwrite"), "this file is an input"),
        (("reviews.csv", "--out", "./aspects.jsonl", "--overwrite"), "./aspects.jsonl: this file is an input"),
        (("reviews.csv", "--out", "no/a.jsonl"), "there is no folder"),
        (("reviews.csv", "--by", "text"), "--by is 'text', which is the column with the text."),
        (("reviews.csv", "--out", "a.xlsx"), "For Excel, write a .csv file with --out-format excel."),
        (("-", "--out", "a.jsonl", "--resume"), "--resume does not work from '-' to 'a.jsonl'"),
        (("reviews.csv", "--resume"), "--resume does not work from"),
        (("reviews.csv", "--out", "a.parquet", "--resume"), "--resume does not work from"),
        (("reviews.csv", "--threshold", "much"), "--threshold is 'much'"),
        (
            ("reviews.csv", "--threshold", "food=much"),
            "--threshold is 'food=much', but after '=' one of these is needed",
        ),
        (("reviews.csv", "--examples-text-column", "body"), "holds the text with --examples-text-column."),
        (("reviews.csv", "--text-column", "body"), "holds the text with --text-column."),
        (("reviews.csv", "--threshold", "7"), "from 0 to 1"),
        (("reviews.csv", "--threshold", "fod=0.5"), "'fod', which is not an aspect"),
        (
            ("reviews.csv", "--threshold", "0.5", "--threshold", "food=0.5"),
            "each needs the form ASPECT=X, such as food=0.6 or food=precise; found '0.5'",
        ),
        (("reviews.csv", "--mode", "best"), "there is no mode 'best'"),
        (("-", "--examples", "-"), "FILE and --examples are both stdin"),
        (("reviews.csv", "--model", "m"), "m/config.json does not exist"),
    ],
)
def test_an_error_is_one_line(run: Run, arguments: tuple[str, ...], message: str) -> None:
    before = sorted(os.listdir())
    examples = () if "--examples" in arguments else ("--examples", "aspects.jsonl")
    code, _, err = run("detect", *arguments, *examples, "--quiet")
    assert code == 2
    assert len(err.splitlines()) == 1
    assert message in err
    assert sorted(os.listdir()) == before


def test_a_folder_as_examples_is_an_error(run: Run) -> None:
    for name in ("folder.json", "folder.jsonl"):
        Path(name).mkdir()
        code, out, err = run("detect", "reviews.csv", "--examples", name)
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert err.startswith(f"awatt: {name}: ")
        assert "Errno" not in err


@pytest.mark.parametrize("name", ["found.jsonl", "found.parquet"])
def test_a_folder_without_write_permission_is_an_error(run: Run, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    def refuse(path: object, *_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("awatt.records.writer.open", refuse, raising=False)
    monkeypatch.setattr(Path, "open", refuse)
    code, _, err = run("detect", "reviews.csv", "--examples", "aspects.jsonl", "--out", name)
    assert code == 2
    assert err.endswith(
        f"{name}: cannot be written (Permission denied). Check the permissions, or choose another place.\n"
    )


def test_a_file_with_semicolons_was_reported_as_having_one_column(run: Run) -> None:
    Path("excel.csv").write_text("Review Text;Stars\ngood;5\n", "utf-8-sig")
    code, _, err = run("detect", "excel.csv", "--examples", "aspects.jsonl", "--text-column", "Review Text")
    assert code == 2
    assert "The cells seem to be separated by ';'. Save the file with commas, or with tabs as .tsv." in err


def test_prefix_avoids_existing_columns(run: Run) -> None:
    code, out, _ = run("detect", "aspects.jsonl", "--examples", "aspects.jsonl", "--prefix", "found_", "--quiet")
    row = json.loads(out.splitlines()[0])
    assert code == 0
    assert list(row) == ["text", "aspects", "found_aspects", "found_scores"]


def test_examples_and_a_saved_detector_give_the_same(run: Run) -> None:
    AspectDetector.from_examples("aspects.jsonl").save_pretrained("saved")
    wanted = run("detect", "reviews.csv", "--examples", "aspects.jsonl", "--quiet").out
    assert run("detect", "reviews.csv", "--model", "saved", "--quiet").out == wanted
    both = run("detect", "reviews.csv", "--model", "saved", "--examples", "aspects.jsonl")
    assert both.err.startswith("awatt: saved is a saved detector, which already has its examples.")
    neither = run("detect", "reviews.csv").err
    wanted = "Give --examples FILE (sentences with their aspects), --aspects NAMES (battery,screen), or --model FOLDER"
    wanted += " (a saved detector)."
    assert neither == f"awatt: {wanted}\n"


def test_thresholds_by_aspect(run: Run) -> None:
    out = run("detect", "reviews.csv", "--examples", "aspects.jsonl", "--threshold", "food=0", "--quiet").out
    rows = [json.loads(line) for line in out.splitlines()]
    assert all(("food" in row["aspects"]) == bool(row["text"]) for row in rows)


# -- interrupted and resumed runs


@pytest.fixture
def many(folder: Path) -> Path:
    """A file with more rows than a batch."""
    with RecordWriter("many.csv") as writer:
        writer.write([{"id": number, "text": f"{TEXTS[number % 2]} {number}"} for number in range(20_000)])
    return Path("many.csv")


#: the command, in a process that sends itself a signal as soon as some rows count: no race to be won
STOPPED = """
import os, sys
from awatt.cli import main
from awatt.records import resumable

resumable.COMMIT_INTERVAL = 0.0
commit = resumable.ResumableWriter._commit

def commit_and_stop(self):
    commit(self)
    if self.rows:
        os.kill(os.getpid(), int(number))

number, *arguments = sys.argv[1:]
resumable.ResumableWriter._commit = commit_and_stop
sys.argv = ["awatt", *arguments]
main()
"""


def stopped_by(number: signal.Signals, command: list[str]) -> subprocess.CompletedProcess[str]:
    """Run the command and stop it with this signal after its first rows."""
    line = [sys.executable, "-c", STOPPED, str(int(number)), *command]
    return subprocess.run(line, capture_output=True, text=True, timeout=300, check=False)


def test_kill_and_resume_neither_lose_nor_repeat_rows(many: Path, run: Run) -> None:
    command = ["detect", str(many), "--examples", "aspects.jsonl", "--out", "found.jsonl"]
    assert stopped_by(signal.SIGKILL, command).returncode == -signal.SIGKILL
    assert 0 < json.loads(Path("found.jsonl.part.json").read_text())["rows"] < 20_000
    assert not Path("found.jsonl").exists()
    with Path("found.jsonl.part").open("ab") as stream:
        stream.write(b'{"text": "torn')
    code, _, err = run(*command, "--resume")
    assert code == 0
    assert err.startswith("20,000 sentences")
    assert [int(row["id"]) for row in read_rows("found.jsonl")] == list(range(20_000))
    assert sorted(path for path in os.listdir() if path.startswith("found")) == ["found.jsonl"]


def test_several_processes_write_the_same_bytes_also_after_a_kill(many: Path, run: Run) -> None:
    command = ["detect", str(many), "--examples", "aspects.jsonl", "--words", "--quiet", "--out"]
    assert run(*command, "one.jsonl").code == 0
    assert stopped_by(signal.SIGKILL, [*command, "two.jsonl", "--jobs", "2"]).returncode == -signal.SIGKILL
    assert 0 < json.loads(Path("two.jsonl.part.json").read_text())["rows"] < 20_000
    assert run(*command, "two.jsonl", "--jobs", "2", "--resume").code == 0
    assert Path("two.jsonl").read_bytes() == Path("one.jsonl").read_bytes()
    for jobs in "12":
        assert run(*command, f"{jobs}.csv", "--jobs", jobs).code == 0
    assert Path("1.csv").read_bytes() == Path("2.csv").read_bytes()


@pytest.mark.parametrize("out", ["x.jsonl", "x.csv"])
def test_bytes_in_a_column_of_parquet_are_one_line(run: Run, out: str) -> None:
    pyarrow = import_pyarrow()
    pyarrow.parquet.write_table(pyarrow.table({"text": ["Good food."], "image": [b"\x89PNG"]}), "bytes.parquet")
    code, _, err = run("detect", "bytes.parquet", "--aspects", "food", "--out", out)
    assert (code, err.count("\n")) == (2, 1)
    assert "which this format cannot store. Write .parquet." in err


@pytest.mark.parametrize("out", ["x.jsonl", "x.csv"])
def test_a_column_that_is_not_written_may_have_any_name(run: Run, out: str) -> None:
    taken = "scores" if out == "x.csv" else "score_food"
    Path("in.csv").write_text(f"text,words,sentences,{taken}\nGood food.,2,1,7\n")
    assert run("detect", "in.csv", "--aspects", "food", "--out", out).code == 0
    again = run("detect", "in.csv", "--aspects", "food", "--words", "--out", f"2{out}")
    assert "already has a column 'words'" in again.err


def test_an_error_of_a_worker_is_one_line(run: Run) -> None:
    with RecordWriter("taken.jsonl") as writer:
        writer.write([{"text": "Good food.", "scores": 1}])
    code, _, err = run("detect", "taken.jsonl", "--aspects", "food", "--out", "x.jsonl", "--jobs", "2")
    assert (code, err.count("\n")) == (2, 1)
    assert "already has a column 'scores'" in err


def test_jobs_are_for_this_machine(run: Run) -> None:
    code, _, err = run("detect", "reviews.csv", "--aspects", "food", "--engine", "ray", "--jobs", "2")
    assert code == 2
    assert "With --engine ray give --workers." in err


@pytest.mark.parametrize(("option", "value"), [("--workers", "8"), ("--address", "nowhere:1")])
def test_an_option_of_the_ray_engine_is_not_ignored_without_it(run: Run, option: str, value: str) -> None:
    code, out, err = run("detect", "reviews.csv", "--aspects", "food", option, value)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert f"{option} needs --engine ray. Add it, or" in err


@pytest.mark.parametrize("given", [("--reviews",), ("--format", "csv"), ("--overwrite",), ("--title", "T")], ids=str)
def test_an_option_of_the_report_page_is_not_ignored_without_it(run: Run, given: tuple[str, ...]) -> None:
    code, out, err = run("report", "--aspects", "food", *given)
    assert (code, out, err) == (2, "", f"awatt: {given[0]} needs --html OUT.\n")


@pytest.mark.parametrize(("share", "noticed"), [(0, False), (1, False), (5, True)])
def test_rows_of_several_sentences_are_noticed(run: Run, share: int, noticed: bool) -> None:
    rows = ["The pizza was cold. Our waiter smiled!"] * share + ["It was 9 p.m. or so, e.g. late."] * (20 - share)
    Path("in.txt").write_text("\n".join(rows))
    for option in ((), ("--reviews",)):
        err = run("detect", "in.txt", "--examples", "aspects.jsonl", "--out", "-", *option).err
        assert ("several sentences in about 5 of 20 rows, each read as one. Add --reviews" in err) == (
            noticed and not option
        )


def test_an_input_that_changed_in_place_is_not_resumed(many: Path, run: Run) -> None:
    command = ["detect", str(many), "--aspects", "food,price", "--threshold", "0.5", "--out", "found.jsonl"]
    assert stopped_by(signal.SIGKILL, command).returncode == -signal.SIGKILL
    before, content = many.stat(), many.read_bytes()
    many.write_bytes(content.replace(b" 3\n", b" 8\n", 1))
    os.utime(many, ns=(before.st_atime_ns, before.st_mtime_ns))
    code, _, err = run(*command, "--resume")
    assert (code, err.count("\n")) == (2, 1)
    assert "changed since the run was started" in err or "another set of examples" in err
    many.write_bytes(content)
    os.utime(many, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert run(*command, "--resume")[0] == 0
    assert [int(row["id"]) for row in read_rows("found.jsonl")] == list(range(20_000))


def test_resume_keeps_a_finished_file_without_overwrite(run: Run) -> None:
    command = ("detect", "reviews.csv", "--examples", "aspects.jsonl", "--out", "found.jsonl", "--quiet", "--resume")
    assert run(*command) == (0, "", "")
    before = Path("found.jsonl").read_text()
    Path("reviews.csv").write_text("text\nanother one\n")
    code, out, err = run(*command)
    assert (code, out, err.count("\n")) == (0, "", 1)
    assert (
        "already complete, left unchanged; its input, examples and settings were not compared. Use --overwrite" in err
    )
    assert Path("found.jsonl").read_text() == before
    assert run(*command, "--overwrite") == (0, "", "")
    assert [row["text"] for row in read_rows("found.jsonl")] == ["another one"]


def test_an_interrupt_exits_with_130_and_can_be_resumed(many: Path, run: Run) -> None:
    command = ["detect", str(many), "--examples", "aspects.jsonl", "--out", "found.csv", "--quiet"]
    stopped = stopped_by(signal.SIGINT, command)
    assert (stopped.returncode, stopped.stderr) == (130, "awatt: interrupted.\n")
    assert run(*command, "--resume").code == 0
    assert [int(row["id"]) for row in read_rows("found.csv")] == list(range(20_000))


def test_a_changed_input_or_option_is_not_resumed(many: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    command = ("detect", many, "--examples", "aspects.jsonl", "--out", "found.jsonl", "--quiet")
    detect, made = columns.TableMaker.detect, []

    def interrupt(*arguments: Any) -> Any:
        made.append(1)
        if len(made) > 4:
            raise KeyboardInterrupt
        return detect(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr("awatt.records.resumable.COMMIT_INTERVAL", 0.0)
        patch.setattr(columns.TableMaker, "detect", interrupt)
        assert run(*command).code == 130
    assert json.loads(Path("found.jsonl.part.json").read_text())["rows"] == 4096
    columns_given = ("--text-column", "id", "--examples-text-column", "text")
    for option, given in (("--reviews", ["--reviews"]), ("--text-column", columns_given), ("--words", ["--words"])):
        code, _, err = run(*command, *given, "--resume")
        assert (code, f"started with another setting of {option}. Use the same again" in err) == (2, True)
    many.write_text(many.read_text() + "20000,more\n")
    code, _, err = run(*command, "--resume")
    assert code == 2
    assert "started with another input file" in err


def test_a_closed_pipe_ends_the_command_quietly(script: Path, many: Path) -> None:
    command = [script, "detect", many, "--examples", "aspects.jsonl"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.readline()
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait(timeout=300) == 0


HEADER = ["text", "id", "stars", "aspects", "score_food", "score_staff", "score_parking", "words"]


@pytest.mark.parametrize("made", ["csv", "tsv", "parquet", "csv.gz", "parquet.gz"])
@pytest.mark.parametrize("given", ["csv", "parquet"])
def test_an_empty_table_has_all_columns(run: Run, given: str, made: str) -> None:
    with RecordWriter(f"none.{given}") as writer:
        writer.write_header({"id": 1, "text": "", "stars": 5})
    command = ("--examples", "aspects.jsonl", "--words", "--quiet", "--out")
    assert run("detect", f"none.{given}", *command, f"none-out.{made}") == (0, "", "")
    seen: list[str] = []
    assert list(reader.read_rows(f"none-out.{made}", on_columns=seen.extend)) == []
    assert seen == HEADER
    run("detect", "reviews.csv", *command, f"found.{made}")
    some: list[str] = []
    assert list(reader.read_rows(f"found.{made}", on_columns=some.extend))
    assert some == HEADER
    if made == "parquet" and given == "csv":
        pyarrow = import_pyarrow()
        assert pyarrow.parquet.read_schema("none-out.parquet") == pyarrow.parquet.read_schema("found.parquet")


def test_an_input_without_rows(run: Run) -> None:
    Path("bad.csv").write_text("id,text\n1\n")
    assert run("detect", "bad.csv", "--examples", "aspects.jsonl", "--reviews", "--out", "bad.tsv").code == 3
    header = "text\tid\taspects\tscore_food\tscore_staff\tscore_parking\tsentences\n"
    assert Path("bad.tsv").read_text() == header
    assert run("detect", "bad.csv", "--examples", "aspects.jsonl", "--quiet").out == ""
    Path("none.txt").touch()
    done = run("detect", "none.txt", "--examples", "aspects.jsonl", "--out-format", "csv", "--quiet")
    assert done == (0, "text,aspects,score_food,score_staff,score_parking\n", "")
    Path("taken.csv").write_text("text,aspects\n")
    done = run("detect", "taken.csv", "--examples", "aspects.jsonl", "--out", "found.csv")
    assert "the input already has a column 'aspects'" in done.err
    assert not list(Path().glob("found*"))


@pytest.mark.skipif(os.name == "nt", reason="needs a shell that closes streams")
@pytest.mark.parametrize(
    ("command", "closed", "out"),
    [
        (("detect", "reviews.csv", "--quiet"), ">&-", 0),
        (("detect", "reviews.csv"), "2>&-", 6),
        (("detect", "-", "--quiet"), "<&-", 0),
        (("explain", "-"), "<&-", 5),
        (("detect", "-"), "<&- >&- 2>&-", 0),
    ],
)
def test_a_closed_stream_behaves_like_an_empty_one(
    script: Path, command: tuple[str, ...], closed: str, out: int
) -> None:
    line = ["sh", "-c", f'exec "$0" "$@" {closed}', script, *command, "--examples", "aspects.jsonl"]
    done = subprocess.run(line, capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, len(done.stdout.splitlines())) == (0, out)
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("command", [("detect", "reviews.csv"), ("explain", "the pizza"), ("report",), ("demo",)])
def test_a_full_disk_is_one_line_and_exit_code_1(script: Path, command: tuple[str, ...]) -> None:
    examples = () if command == ("demo",) else ("--examples", "aspects.jsonl")
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [script, *command, *examples], stdout=full, stderr=subprocess.PIPE, text=True, timeout=300
        )
    assert done.returncode == 1
    assert "No space left on device" in done.stderr
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


def test_a_truncated_gzip_file_keeps_the_finished_rows(run: Run, many: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("awatt.records.resumable.COMMIT_INTERVAL", 0.0)
    whole = gzip.compress(many.read_bytes(), mtime=0)
    Path("cut.csv.gz").write_bytes(whole[: len(whole) // 2])
    code, _, err = run("detect", "cut.csv.gz", "--examples", "aspects.jsonl", "--out", "found.jsonl", "--quiet")
    assert code == 2
    assert "the gzip data is cut short" in err
    assert not Path("found.jsonl").exists()
    assert Path("found.jsonl.part").stat().st_size > 0


def test_parquet_keeps_the_types_of_its_columns(run: Run) -> None:
    with RecordWriter("in.parquet") as writer:
        writer.write([{"text": "the pizza", "stars": 5, "helpful": True}])
    run("detect", "in.parquet", "--examples", "aspects.jsonl", "--out", "found.parquet", "--quiet")
    row = import_pyarrow().parquet.read_table("found.parquet").to_pylist()[0]
    assert (row["stars"], row["helpful"], type(row["score_food"])) == (5, True, float)


@pytest.mark.parametrize("suffix", ["csv", "csv.gz", "jsonl", "parquet"])
def test_the_number_of_rows_is_estimated(suffix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("awatt.detector.bulk.SAMPLE_BYTES", 100_000)
    with RecordWriter(f"in.{suffix}") as writer:
        writer.write([{"text": f"{random.Random(number).random()} {number}"} for number in range(20_000)])
    estimate = bulk.estimate_rows(f"in.{suffix}")
    assert estimate is not None
    assert 16_000 < estimate < 24_000
    assert bulk.estimate_rows("-") is None


def test_a_csv_file_needed_pyarrow() -> None:
    """170 MB, for Parquet alone: neither the command nor what it calls imports it, or anything else that is heavy."""
    code = """
import sys
from awatt.cli import main
sys.argv = ["awatt", "detect", "reviews.csv", "--examples", "aspects.jsonl", "--out", sys.argv[1]]
try:
    main()
finally:
    print(*{"pyarrow", "narwhals", "pandas", "torch", "scipy", "sklearn", "fastapi"} & set(sys.modules))
"""
    for out in ("found.jsonl", "found.csv"):
        done = subprocess.run(
            [sys.executable, "-c", code, out], capture_output=True, text=True, timeout=300, check=True
        )
        assert done.stdout.split() == []
        assert len(read_rows(out)) == 6


@pytest.mark.parametrize(
    ("source", "out"), [("in.parquet", "found.csv"), ("reviews.csv", "found.parquet")], ids=["read", "written"]
)
def test_without_pyarrow_a_table_of_that_kind_names_the_extra(
    run: Run, monkeypatch: pytest.MonkeyPatch, source: str, out: str
) -> None:
    Path("in.parquet").touch()
    before = sorted(Path().iterdir())
    for name in [name for name in sys.modules if name.partition(".")[0] == "pyarrow"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    code, _, err = run("detect", source, "--examples", "aspects.jsonl", "--out", out)
    assert code == 2
    assert err.endswith("needs the package 'pyarrow', which is not installed. Run: pip install 'awatt[parquet]'\n")
    assert sorted(Path().iterdir()) == before


def test_shares_are_compared_by_columns(run: Run, tmp_path: Path) -> None:
    rows = [
        f'{1 + n % 2},{n},2024-0{1 + n % 3}-02,"{"The soup was cold." if n % 2 else "We left."}"' for n in range(12)
    ]
    (tmp_path / "in.csv").write_text("\n".join(["stars,id,day,text", *rows]))
    (tmp_path / "ex.jsonl").write_text('{"text": "The soup was cold.", "aspects": ["food"]}\n' * 2)
    given = ("detect", tmp_path / "in.csv", "--examples", tmp_path / "ex.jsonl", "--out", tmp_path / "out.csv")
    code, _, err = run(*given, "--by", "nothing")
    assert (code, err) == (
        2,
        "awatt: there is no column 'nothing' to compare by. The columns are: 'stars', 'id', 'day'. "
        "Upper and lower case count.\n",
    )
    code, _, err = run(*given, "--by", "stars", "--by", "id", "--overwrite")
    assert code == 0
    assert "food by stars\n  1         6    0.0% (0.0% to 39.0%)\n  2         6  100.0% (61.0% to 100.0%)\n" in err
    assert "the column 'id' has a different value in every row, so it is not compared." in err
    made = json.loads(run(*given, "--by", "stars", "--by", "day", "--json", "--overwrite").out)["by"]
    assert [(each["column"], each["kind"], each["counts"]) for each in made] == [
        ("stars", "groups", [6, 6]),
        ("day", "time", [4, 4, 4]),
    ]
    sparse = [{"text": "We left.", **({} if n == 1024 else {"stars": n % 2})} for n in range(2048)]
    (tmp_path / "in.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in sparse))
    made = json.loads(run("detect", tmp_path / "in.jsonl", *given[2:], "--by", "stars", "--json", "--overwrite").out)
    assert made["by"][0]["counts"] == [1023, 1024]
    code, _, err = run(*given, "--by", "city", "--overwrite")
    assert (code, "there is no column 'city'" in err) == (2, True)
    assert run(*given, "--by", "stars", "--resume").code == 2


def test_a_column_that_the_first_rows_lack_can_be_compared_by(run: Run, tmp_path: Path) -> None:
    late = [{"text": "We left.", **({"stars": n % 2} if n >= 1024 else {})} for n in range(1034)]
    (tmp_path / "in.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in late))
    given = ("detect", tmp_path / "in.jsonl", "--aspects", "food", "--out", tmp_path / "out.jsonl")
    made = json.loads(run(*given, "--by", "stars", "--json").out)
    assert made["by"][0]["counts"] == [5, 5]
    code, _, err = run(*given, "--by", "stars", "--by", "city", "--overwrite")
    assert (code, "there is no column 'city' to compare by" in err) == (2, True)
    assert len((tmp_path / "out.jsonl").read_text().splitlines()) == 1034  # what was found is not lost


def test_a_csv_for_excel_is_marked_and_evaluates_nothing(run: Run, tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text('note,text\n=1+1,"Käse, bitte."\n')
    given = ("detect", tmp_path / "in.csv", "--aspects", "food", "--out", tmp_path / "out.csv", "--out-format", "excel")
    assert run(*given).code == 0
    content = (tmp_path / "out.csv").read_bytes()
    assert content.startswith(b"\xef\xbb\xbftext,note,aspects,")
    assert '"Käse, bitte.",\'=1+1,'.encode() in content
    assert content.count(b"\xef\xbb\xbf") == 1
    code, _, err = run("detect", tmp_path / "in.csv", "--format", "excel", "--aspects", "food")
    assert (code, "'excel' is not supported" in err) == (2, True)  # it is read as csv


def test_an_aspect_named_none_has_a_row_of_its_own_in_the_summary() -> None:
    names = [line[:9].strip() for line in count_chart({"food": 2, "none": 1}, 3, 6)]
    assert names == ["food", "none", "no aspect"]
    assert count_chart({"food": 2}, 3, 5)[-1].startswith("none")


def test_examples_from_a_pipe_that_is_not_json_need_a_file(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"text,aspects\nTasty soup.,food\n"), "utf-8"))
    code, _, err = run("detect", "reviews.csv", "--examples", "-", "--quiet")
    assert code == 2
    assert err.endswith("is not a JSON object. Save it as a file that ends in .csv if that is its format.\n")
