"""The ``awatt`` command: parse, call, print. Data goes to stdout or ``--out``, everything else to stderr.

Exit codes: 0 success, 1 system error (disk, memory), 2 usage error or bad input, 3 some rows left out, 130 interrupted.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache
from importlib import import_module
from io import TextIOWrapper
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from awatt.cli.options import say
from awatt.errors import AwattError
from awatt.files import describe_error

#: name -> module, and its function or app
_COMMANDS = {
    "detect": "detect.detect",
    "explain": "explain.explain",
    "report": "report.report",
    "score": "score.score",
    "suggest": "suggest.suggest",
    "suggest-aspects": "suggest_aspects.suggest_aspects",
    "save": "save.save",
    "demo": "demo.demo",
    "serve": "serve.serve",
    "train": "research.train",
    "evaluate": "research.evaluate",
    "models": "registry.models",
    "encoders": "registry.encoders",
    "bench": "research.bench",
    "train-detector": "train_detector.train_detector",
    "reproduce": "reproduce.app",
    "data": "data.app",
}
_STYLE: Any = {"add_completion": False, "pretty_exceptions_enable": False, "rich_markup_mode": None}


@cache
def _build(name: str) -> Any:
    module, attribute = _COMMANDS[name].split(".")
    found = getattr(import_module(f"awatt.cli.{module}"), attribute)
    if not isinstance(found, typer.Typer):
        alone = typer.Typer(**_STYLE)
        alone.command(name)(found)
        found = alone
    command = typer.main.get_command(found)
    command.name = name
    return command


class _Commands(Mapping[str, Any]):
    """Imports and builds a command when it is asked for: a call needs one of them, the list in ``--help`` all."""

    def __getitem__(self, name: str) -> Any:
        return _build(name)

    def __iter__(self) -> Iterator[str]:
        return iter(_COMMANDS)

    def __len__(self) -> int:
        return len(_COMMANDS)


class _Group(TyperGroup):
    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = _Commands()  # type: ignore[assignment]


app = typer.Typer(
    cls=_Group,
    help="Find aspects in review sentences from a few examples of each.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["--help", "-h"]},  # of all commands
    **_STYLE,
)

# Newer versions of typer bundle click's exceptions, older ones import them: this finds UsageError in both.
_UsageError: Any = typer.BadParameter.__base__


def _version(wanted: bool) -> None:
    if wanted:
        from awatt import __version__

        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Find aspects in review sentences from a few examples of each."""


def _is_disk_error(error: BaseException | None) -> bool:
    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EIO)


def _discard_output() -> None:
    """Discard what stdout still buffers and cannot write, so that the interpreter does not retry and fail at exit."""
    with suppress(OSError, ValueError):
        sys.stdout.flush()
        return
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _prepare_streams() -> None:
    """Replace standard streams that were closed from the start with the null device.

    What the encoding of stdout does not have is written as an escape, such as \\u20ac.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115 (open until exit)
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def main() -> None:
    """Run the command. Errors that the user can fix are one line, never a traceback."""
    # numpy's matrix products are small here: starting a second thread costs more than it saves.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    _prepare_streams()
    try:
        code = app(standalone_mode=False)
        sys.stdout.flush()  # a full disk raises here, not at interpreter exit
    except _UsageError as error:
        error.show()
        code = error.exit_code
    except (KeyboardInterrupt, typer.Abort):
        code = 130
    except AwattError as error:
        say(str(error))
        code = 1 if _is_disk_error(error.__cause__) else 2
        _discard_output()
    except (BrokenPipeError, SystemExit) as end:  # stdout's reader is gone; typer turns this into an exit
        if isinstance(end, SystemExit) and not isinstance(end.__context__, BrokenPipeError):
            raise
        code = 0
        _discard_output()
    except OSError as error:
        say(describe_error(error))
        code = 1 if _is_disk_error(error) else 2
        _discard_output()
    except UnicodeEncodeError as error:
        place = error.object[max(0, error.start - 10) : error.end]
        say(f"{place!r} is not valid text. Check the options and the names of files.")
        code = 2
        _discard_output()
    except MemoryError:
        say("out of memory.")
        code = 1
        _discard_output()
    if code == 130:
        say("interrupted.")
    sys.exit(code if isinstance(code, int) else 0)
