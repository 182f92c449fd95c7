"""Faults that a person can mend. The command line prints the message as one line and exits with 2."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType


class AwattError(Exception):
    """The message says what was found, what is needed and what to do next."""


class DataError(AwattError):
    """A fault in a file, with its place."""

    def __init__(self, message: str, file: str | Path, line: int | None = None, column: str | None = None) -> None:
        place = str(file)
        if line is not None:
            place += f", line {line}"
        if column is not None:
            place += f", column '{column}'"
        super().__init__(f"{place}: {message}")
        self.file, self.line, self.column = str(file), line, column


class MissingExtraError(AwattError, ImportError):
    """A part was used whose optional packages are not installed."""


def require(module: str, extra: str) -> ModuleType:
    """Import ``module``, or say which ``pip install`` line brings it."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        top = module.partition(".")[0]
        if error.name is None or error.name.partition(".")[0] != top:
            raise
        raise MissingExtraError(
            f"this needs the package '{top}', which is not installed. Run: pip install 'awatt[{extra}]'"
        ) from None
