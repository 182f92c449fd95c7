"""The benchmark's own files: ``{dataset}/{split}.json``, a dict from category to a list of ``[tokens, aspects]``."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from awatt.errors import AwattError, DataError
from awatt.files import file_advice, write_text

SPLITS = ("train", "val", "test")
#: dataset name -> instances per category (the paper's table of datasets)
DATASETS = {"FewAsp(single)": 200, "FewAsp(multi)": 400, "FewAsp": 630}


class Instance(NamedTuple):
    """A sentence listed under a category: its tokens, and every category of the split that it mentions."""

    tokens: tuple[str, ...]
    aspects: tuple[str, ...]


def read_json(path: Path) -> object:
    """The JSON value in ``path``; an error names the line."""
    try:
        return json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise AwattError(f"{path} does not exist. Check the path.") from None
    except OSError as error:
        raise DataError(f"cannot be read ({error.strerror}). {file_advice(error)}.", path) from error
    except UnicodeDecodeError as error:
        raise DataError(f"byte {error.start} is not UTF-8. Save the file as UTF-8.", path) from None
    except json.JSONDecodeError as error:
        raise DataError(
            f"not JSON at character {error.colno}: {error.msg}. Fix it, or download the file again.",
            path,
            error.lineno,
        ) from None
    except RecursionError:
        raise DataError("has values nested too deeply. Fix it, or download the file again.", path) from None


def read_fewasp(path: Path) -> dict[str, list[Instance]]:
    """The instances of each category of one split file, checked."""
    content = read_json(path)
    if not isinstance(content, dict) or not content:
        raise DataError(
            f"found {str(content)[:60]!r}, needs a dict from category to instances. "
            "Fix it, or download the file again.",
            path,
        )
    return {category: _read_category(path, category, rows) for category, rows in content.items()}


def _read_category(path: Path, category: str, rows: object) -> list[Instance]:
    if not isinstance(rows, list):
        raise DataError(f"needs a list of instances, found {str(rows)[:60]!r}.", path, column=category)
    instances = []
    for number, row in enumerate(rows):
        try:
            tokens, aspects = row
        except (TypeError, ValueError):
            tokens = aspects = None
        if not (_strings(tokens) and _strings(aspects)):
            raise DataError(
                f"instance {number} must be [tokens, aspects], two lists of strings; found {str(row)[:60]!r}.",
                path,
                column=category,
            )
        instances.append(Instance(tuple(tokens), tuple(aspects)))
    return instances


def _strings(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, str) for item in value)


def write_fewasp(path: Path, categories: Mapping[str, Sequence[Instance]]) -> None:
    """Write one split file in the benchmark's format."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, json.dumps(categories))
