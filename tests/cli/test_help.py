"""The help of every command and option is complete, with its choices and its default."""

from __future__ import annotations

import re
import typing
from collections.abc import Collection, Iterator
from dataclasses import asdict
from typing import Any

import pytest
import typer

from awatt.cli import app
from awatt.data.fewasp import DATASETS, SPLITS
from awatt.data.sampler import EpisodeShape
from awatt.detector.thresholds import MODES
from awatt.reproduce.suites import SETTINGS
from awatt.research.settings import DEFAULTS
from awatt.thresholds.kinds import THRESHOLDS


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
    "--model": {"fast", "accurate", "folder"},
    "--encoder": {"awatt encoders"},
    "awatt train-detector --encoder": {"none", "student", "FILE", "FOLDER"},
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
    *("--seeds", "--host", "--allow-host", "--public-url", "--by", "--labels", "--title", "--learn-from"),
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
    if path != "awatt":  # its first sentence is not cut in the list of commands
        assert not command.get_short_help_str(59).endswith("...")
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
