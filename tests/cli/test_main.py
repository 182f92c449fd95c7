"""The command as a whole: help, version, exit codes, and one-line errors without a traceback."""

import errno
import os
import re
import signal
import subprocess
import time
import typing
from collections.abc import Callable, Collection, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import typer

import awatt
from awatt.aspect_model.train import DATASETS
from awatt.cli import app
from awatt.data.fewasp import SPLITS
from awatt.data.sampler import EpisodeShape
from awatt.detector.thresholds import MODES
from awatt.errors import AwattError
from awatt.reproduce.suites import SETTINGS
from awatt.research.settings import DEFAULTS
from awatt.thresholds.kinds import THRESHOLDS

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
        (("data", "check"), ["FILE", "--text-column", "--aspects-column"]),
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


def commands(command: Any, path: str = "awatt") -> Iterator[tuple[str, Any]]:
    """Every command and subcommand, hidden ones too."""
    yield path, command
    for name, child in getattr(command, "commands", {}).items():
        yield from commands(child, f"{path} {name}")


COMMANDS = dict(commands(typer.main.get_command(app)))
FORMATS = {"jsonl", "csv", "tsv", "parquet"}
#: options with a fixed set of values -> what their help must contain: the values, or where they are listed
CHOICES: dict[str, Collection[str]] = {
    "--mode": MODES,
    "--engine": {"local", "ray"},
    "--address": {"local", "auto", "HOST:PORT"},
    "--device": {"auto", "cpu", "cuda", "mps"},
    "--split": SPLITS,
    "--method": {"awatt models"},
    "--encoder": {"awatt encoders"},
    "awatt reproduce --encoder": {"bert=FOLDER", "distilbert=FOLDER"},
    "--format": {*FORMATS, "txt"},
    "--out-format": FORMATS,
    "--methods": {"an unknown name lists"},
    "--settings": {f"{n_way}x{n_shot}" for n_way, n_shot in SETTINGS},
    "--datasets": DATASETS,
    "awatt train --threshold": THRESHOLDS.keys(),
    "awatt evaluate --threshold": {"a number", *THRESHOLDS},
    "--threshold": {"balanced", "auto", "precise", "thorough", "a number from 0 to 1", "ASPECT=X"},
}
#: options whose value is free text: names, files and settings
FREE_TEXT = {
    *("--text-column", "--aspects", "--aspects-column", "--examples-text-column", "--prefix", "--out", "--set"),
    *("--seeds", "--host", "--allow-host"),
}


def options(command: Any) -> list[Any]:
    return [parameter for parameter in command.params if parameter.opts[0].startswith("--")]


def shown_help(command: Any, option: Any) -> str:
    """The help of an option as it is printed, with the default that typer adds."""
    record = option.get_help_record(typer.Context(command))
    return " ".join(record[1].split()) if record else ""


@pytest.mark.parametrize("path", COMMANDS)
def test_every_command_and_argument_has_help(path: str) -> None:
    command = COMMANDS[path]
    assert command.help
    assert [argument.name for argument in command.params if not argument.help] == []


@pytest.mark.parametrize("path", COMMANDS)
def test_the_help_of_every_option_lists_its_choices(path: str) -> None:
    command = COMMANDS[path]
    types = typing.get_type_hints(command.callback) if command.callback else {}
    for option in options(command):
        name, text = option.opts[0], shown_help(command, option)
        assert text, f"{path} {name} has no help"
        takes_text = {str, list[str]} & {types[option.name], *typing.get_args(types[option.name])}
        choices = CHOICES.get(f"{path} {name}", CHOICES.get(name, ()))
        assert not takes_text or choices or name in FREE_TEXT, f"add {name} to CHOICES or to FREE_TEXT"
        assert [choice for choice in choices if choice not in text] == [], f"{path} {name}: {text}"


@pytest.mark.parametrize("path", COMMANDS)
def test_the_help_of_every_option_shows_its_default(path: str) -> None:
    command = COMMANDS[path]
    for option in options(command):
        text = shown_help(command, option)
        if option.required:
            assert "[required]" in text, f"{path} {option.opts[0]}: {text}"
        elif not option.is_flag:  # a flag is off unless it is given
            # Without a value of its own, the help says in words what happens by default.
            default = re.escape(str(option.default)) if option.default not in (None, "") else r"\w[^\]]*"
            assert re.search(rf"\[default: {default}[\];]", text), f"{path} {option.opts[0]}: {text}"


def test_the_help_of_train_shows_the_defaults_of_the_library() -> None:
    command = COMMANDS["awatt train"]
    defaults = DEFAULTS | asdict(EpisodeShape())
    shown = {option.name: shown_help(command, option) for option in options(command)}
    for name in ("method", "encoder", "threshold", "seed", "n_way", "n_shot", "n_query"):
        assert f"[default: {defaults[name]}" in shown[name]


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
            "awatt: [Errno 28] No space left on device: 'out'",
        ),
        (PermissionError(errno.EACCES, "Permission denied", "out"), 1, "awatt: [Errno 13] Permission denied: 'out'"),
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
        out, err = process.communicate(timeout=30)
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
    assert process.wait(timeout=30) == 0


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
    code, out, err = run("serve", "--port", 0, "--project", tmp_path / "missing" / "x.sqlite")
    assert (code, out) == (2, "")
    assert err.endswith(f"x.sqlite: there is no folder '{tmp_path / 'missing'}'. Create it first.\n")
    assert not (tmp_path / "missing").exists()


def test_the_folder_of_the_default_project_is_created(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from awatt.server import run

    monkeypatch.setattr(run, "default_project", lambda: tmp_path / "data" / "awatt" / "project.sqlite")
    assert run.find_project(None) == tmp_path / "data" / "awatt" / "project.sqlite"
    assert (tmp_path / "data" / "awatt").is_dir()
    (tmp_path / "file").touch()
    monkeypatch.setattr(run, "default_project", lambda: tmp_path / "file" / "awatt" / "project.sqlite")
    with pytest.raises(AwattError, match="Name another file with --project"):
        run.find_project(None)
