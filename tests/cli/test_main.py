"""The command as a whole: help, version, exit codes, and one-line errors without a traceback."""

import errno
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import awatt
from awatt.errors import AwattError

Run = Callable[..., Any]


def test_version_is_printed(run: Run) -> None:
    assert run("--version") == (0, f"{awatt.__version__}\n", "")


def test_the_installed_command_prints_its_version(run_script: Run) -> None:
    assert run_script("--version") == (0, f"{awatt.__version__}\n", "")


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ((), ["detect", "explain", "report", "data", "demo", "--version"]),
        (("data",), ["build", "stats", "check"]),
        (("data", "build"), ["YELP_DIR", "--fewasp", "--out", "--seed"]),
        (("data", "stats"), ["DIR", "--json", "--episodes", "--n-way", "--n-shot", "--n-query", "--seed"]),
        (("data", "check"), ["FILE", "--text-column", "--aspects-column", "--format"]),
        (("demo",), ["--n-shot", "--seed"]),
        (
            ("detect",),
            [
                *("FILE", "--examples", "--model", "--out", "--text-column", "--threshold", "--mode", "--reviews"),
                *("--words", "--prefix", "--format", "--resume", "--overwrite", "--json", "--quiet"),
            ],
        ),
        (("explain",), ["TEXT", "--examples", "--model", "--threshold", "--json"]),
        (("report",), ["--examples", "--model", "--threshold", "--json"]),
    ],
)
def test_help_lists_every_command_and_option(run: Run, command: tuple[str, ...], words: list[str]) -> None:
    code, out, err = run(*command, "--help")
    assert (code, err) == (0, "")
    assert [word for word in words if word not in out] == []


@pytest.mark.parametrize("command", [(), ("detect",), ("data", "stats")])
def test_a_short_option_for_help_was_refused(run: Run, command: tuple[str, ...]) -> None:
    assert run(*command, "-h") == run(*command, "--help")
    assert run(*command, "-h").code == 0


@pytest.mark.parametrize(
    ("command", "option"),
    [
        (("explain", "Late", "--text-column", "foo"), "--text-column"),
        (("explain", "Late", "--aspects-column", "foo"), "--aspects-column"),
        (("save", "folder", "--text-column", "foo"), "--text-column"),
        (("report", "--examples-text-column", "foo"), "--examples-text-column"),
        (("score", "x.csv", "--examples-text-column", "foo"), "--examples-text-column"),
        (("detect", "x.csv", "--aspects-column", "foo"), "--aspects-column"),
        (("suggest", "x.csv", "--examples-text-column", "text"), "--examples-text-column"),
    ],
)
def test_a_column_of_a_file_that_is_not_given_was_ignored(run: Run, command: tuple[str, ...], option: str) -> None:
    code, out, err = run(*command, "--aspects", "speed")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(f"awatt: {option} needs --examples FILE")
    assert err.endswith(f"Add it, or leave out {option}.\n")


@pytest.mark.parametrize(
    ("command", "inputs"),
    [
        (("explain", "-", "--examples", "-"), "TEXT and --examples"),
        (("suggest", "-", "--examples", "-"), "FILE and --examples"),
        (("score", "-", "--examples", "-"), "FILE and --examples"),
        (("report", "-", "--html", "x.html", "--examples", "-"), "FILE and --examples"),
        (("report", "x.csv", "--html", "x.html", "--examples", "-", "--labels", "-"), "--examples and --labels"),
    ],
)
def test_stdin_was_read_twice(run: Run, command: tuple[str, ...], inputs: str) -> None:
    message = f"awatt: {inputs} are both stdin, which can be read once. Name a file for one of them.\n"
    assert run(*command) == (2, "", message)


@pytest.mark.parametrize("command", [(), ("data",)])
def test_calling_without_a_command_shows_the_help_and_is_a_usage_error(run: Run, command: tuple[str, ...]) -> None:
    code, out, err = run(*command)
    assert code == 2
    assert "Commands" in out + err


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (("--nope",), "--nope"),
        (("nope",), "nope"),
        (("data", "nope"), "nope"),
        (("data", "build"), "YELP_DIR"),
        (("data", "build", "somewhere"), "--out"),
        (("data", "stats", "somewhere", "--episodes", "0"), "--episodes"),
        (("data", "stats", "somewhere", "--seed", "-1"), "--seed"),
        (("data", "stats", "somewhere", "--n-way", "many"), "--n-way"),
        (("data", "check", "a", "b"), "b"),
    ],
)
def test_usage_errors_ended_in_a_traceback(run: Run, arguments: tuple[str, ...], word: str) -> None:
    """typer's own exceptions are not click's."""
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith("Usage: ")
    assert word in err.splitlines()[-1]
    assert "Traceback" not in err


def test_a_usage_error_of_the_installed_command(run_script: Run) -> None:
    code, out, err = run_script("data", "stats", "--nope")
    assert (code, out) == (2, "")
    assert err.startswith("Usage: awatt data stats")
    assert "Traceback" not in err


@pytest.fixture
def raising(monkeypatch: pytest.MonkeyPatch, run: Run) -> Run:
    """Run a command that raises an error."""

    def call(error: BaseException) -> Any:
        def fail(*_: object) -> None:
            raise error

        monkeypatch.setattr("awatt.data.yelp_aspect.build", fail)
        return run("data", "build", "yelp", "--out", "out")

    return call


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (AwattError("too little. Add more."), 2, "awatt: too little. Add more."),
        (AwattError("a name\nof two\r\nlines"), 2, "awatt: a name of two lines"),
        (
            OSError(errno.ENOSPC, "No space left on device", "out"),
            1,
            "awatt: out: No space left on device. Free some space.",
        ),
        (
            PermissionError(errno.EACCES, "Permission denied", "out"),
            2,
            "awatt: out: Permission denied. Check the permissions.",
        ),
        (IsADirectoryError(errno.EISDIR, "Is a directory", "out"), 2, "awatt: out: Is a directory. Check the path."),
        (OSError("strange"), 2, "awatt: strange"),
        (MemoryError(), 1, "awatt: out of memory."),
        (KeyboardInterrupt(), 130, "awatt: interrupted."),
    ],
)
def test_an_error_is_one_line_with_its_exit_code(raising: Run, error: BaseException, code: int, line: str) -> None:
    assert raising(error) == (code, "", f"{line}\n")


def test_a_bug_in_the_program_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    from awatt.cli import main

    def fail(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("awatt.data.yelp_aspect.build", fail)
    monkeypatch.setattr("sys.argv", ["awatt", "data", "build", "yelp", "--out", "out"])
    with pytest.raises(ZeroDivisionError):
        main()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_an_interrupt_ends_the_installed_command_with_130(script: Path, tmp_path: Path) -> None:
    pipe = tmp_path / "yelp" / "hotel.txt"
    pipe.parent.mkdir()
    os.mkfifo(pipe)
    command = [script, "data", "build", pipe.parent, "--out", tmp_path / "out"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        writer = _open_when_read(pipe)
        process.send_signal(signal.SIGINT)  # the command is waiting for our first line
        out, err = process.communicate(timeout=300)
        os.close(writer)
    finally:
        process.kill()
        process.wait()
    assert (process.returncode, out, err) == (130, "", "awatt: interrupted.\n")


def _open_when_read(pipe: Path) -> int:
    """Open a named pipe for writing as soon as the other side reads it."""
    for _ in range(300):
        try:
            return os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
            time.sleep(0.05)
    raise TimeoutError(f"nobody reads {pipe}")


def test_a_closed_stdout_gives_no_traceback(script: Path) -> None:
    process = subprocess.Popen([script, "demo"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == ""
    process.stderr.close()
    assert process.wait(timeout=300) == 0


def test_the_demo_detects_in_the_sample(run: Run) -> None:
    code, out, err = run("demo", "--n-shot", 2)
    assert code == 0
    assert [domain for domain in ("restaurant: 6 aspects", "hotel: 6", "laptop: 5") if domain not in out] == []
    assert "sentences exactly as a person labelled them" in out
    assert err.endswith("s in total, including loading the model.\n")
    assert run("demo", "--n-shot", 2).out == out
    assert run("demo", "--n-shot", 2, "--seed", 6).out != out


def test_a_demo_with_too_many_examples_is_an_error(run: Run) -> None:
    code, out, err = run("demo", "--n-shot", 1000)
    assert (code, out) == (2, "")
    assert err.startswith("awatt: aspect '")
    assert err.endswith("but --n-shot 1000 needs at least 1001. Lower it.\n")


def test_the_folder_of_a_given_project_is_not_created(run: Run, tmp_path: Path) -> None:
    pytest.importorskip("fastapi")
    code, out, err = run("serve", "--port", 0, "--project", tmp_path / "missing" / "x.sqlite")
    assert (code, out) == (2, "")
    assert err.endswith(f"x.sqlite: there is no folder '{tmp_path / 'missing'}'. Create it first.\n")
    assert not (tmp_path / "missing").exists()


def test_the_aspects_of_a_saved_detector_were_missing_in_the_workbench(run: Run, tmp_path: Path) -> None:
    pytest.importorskip("fastapi")
    assert run("save", tmp_path / "saved", "--aspects", "food").code == 0
    code, _, err = run("serve", "--port", 0, "--project", tmp_path / "x.sqlite", "--model", tmp_path / "saved")
    assert (code, err.count("\n")) == (2, 1)
    assert "saved is a saved detector, but --model takes a model without aspects here." in err
    assert not (tmp_path / "x.sqlite").exists()


def test_the_folder_of_the_default_project_is_created(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("fastapi")
    from awatt.server import run

    monkeypatch.setattr(run, "default_project", lambda: tmp_path / "data" / "awatt" / "project.sqlite")
    assert run.find_project(None) == tmp_path / "data" / "awatt" / "project.sqlite"
    assert (tmp_path / "data" / "awatt").is_dir()
    (tmp_path / "file").touch()
    monkeypatch.setattr(run, "default_project", lambda: tmp_path / "file" / "awatt" / "project.sqlite")
    with pytest.raises(AwattError, match="Name another file with --project"):
        run.find_project(None)


def test_an_interrupt_during_the_imports_is_one_line() -> None:
    code = """
import os, signal, sys
from importlib.abc import MetaPathFinder

class Interrupt(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == "awatt.cli":
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupt())
from awatt.__main__ import main
main()
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "awatt: interrupted.\n")


@pytest.mark.parametrize(
    ("arguments", "code", "shown"),
    [
        (["explain", "日本 soup", "--aspects", "soup"], 0, r"\u65e5\u672c"),
        (["detect", "in.csv", "--aspects", "soup", "--prefix", "a\udcff", "--out", "o.jsonl"], 2, "is not valid text"),
        (["report", "in.csv", "--aspects", "soup", "--title", "a\udcff", "--html", "o.html"], 2, "is not valid text"),
    ],
)
def test_what_cannot_be_encoded_was_a_traceback(arguments: list[str], code: int, shown: str, tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("text\nThe soup was cold.\n")
    ended = subprocess.run(
        [sys.executable, "-m", "awatt", *map(os.fsencode, arguments)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONIOENCODING": "cp1252"},
        capture_output=True,
        timeout=300,
        check=False,
    )
    assert ended.returncode == code
    assert shown.encode() in ended.stdout + ended.stderr
    assert b"Traceback" not in ended.stderr


def test_the_package_is_a_command_too() -> None:
    ended = subprocess.run([sys.executable, "-m", "awatt", "--version"], capture_output=True, timeout=300, check=False)
    assert ended.returncode == 0
