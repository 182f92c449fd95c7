"""Errors the user can fix. The command line prints the message as one line and exits with code 2."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType
from typing import Self


class AwattError(Exception):
    """The message says what was found, what is needed and what to do next."""


class DataError(AwattError):
    """An error in a file; the message begins with the file, the line and the column."""

    def __init__(self, message: str, file: str | Path, line: int | None = None, column: str | None = None) -> None:
        place = str(file)
        if line is not None:
            place += f", line {line}"
        if column is not None:
            place += f", column '{column}'"
        super().__init__(f"{place}: {message}")
        self.message, self.file, self.line, self.column = message, str(file), line, column

    def __reduce__(self) -> tuple[type[Self], tuple[str, str, int | None, str | None]]:
        """So that it can come from another process."""
        return type(self), (self.message, self.file, self.line, self.column)


class MissingExtraError(AwattError, ImportError):
    """An optional package is needed and not installed."""


def require(module: str, extra: str) -> ModuleType:
    """Import ``module``, or raise an error with the ``pip install`` command for the extra that contains it."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        top = module.partition(".")[0]
        if error.name is None or error.name.partition(".")[0] != top:
            raise
        raise MissingExtraError(
            f"this needs the package '{top}', which is not installed. Run: pip install 'awatt[{extra}]'"
        ) from None


def plural(count: int, noun: str, several: str = "") -> str:
    """A count with its noun, for messages: ``1 row``, ``2 rows``; ``several`` is an irregular plural."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {several or noun + 's'}"
