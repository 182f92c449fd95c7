"""What the files of a model must hold, before any of it is used: the bundled model is the pattern."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors.numpy import load_file
from tokenizers import Tokenizer

from awatt.aspect_model.vectors import Table
from awatt.errors import DataError
from awatt.folders import TOKENIZER, WEIGHTS, Folder

Arrays = Mapping[str, npt.NDArray[Any]]
_ADVICE = "Copy the folder again, or train it again with 'awatt train-detector'."


@cache
def _pattern(bundled: Path) -> dict[str, tuple[np.dtype[Any], tuple[int, ...]]]:
    return {name: (array.dtype, array.shape) for name, array in load_file(bundled / WEIGHTS).items()}


def check_tensors(folder: Folder, tensors: Arrays, bundled: Sequence[Path]) -> None:
    """Raise for a tensor of another type or number of dimensions than a bundled one, or with NaN in it.

    Sizes may differ from the bundled model's, except for 1 and 0, with which numpy would compute something else.
    """
    folder.check_arrays(WEIGHTS, tensors)
    if folder.path in bundled:
        return
    for name, (dtype, shape) in chain.from_iterable(_pattern(path).items() for path in bundled):
        if name in tensors:  # a missing one is found when they are put together
            found = tensors[name]
            sizes = zip(found.shape, shape, strict=False)
            if (
                found.dtype != dtype
                or found.ndim != len(shape)
                or any(size != wanted and (wanted == 1 or size == 0) for size, wanted in sizes)
            ):
                needed = f"but needs {dtype} like {list(shape)}"
                raise DataError(
                    f"has {found.dtype} {list(found.shape)} for '{name}', {needed}. {_ADVICE}", folder.path / WEIGHTS
                )


def check_tokens(folder: Folder, tokenizer: Tokenizer, table: Table) -> None:
    """Raise if the tokenizer knows a token that has no vector."""
    highest = max(tokenizer.get_vocab().values(), default=-1)
    if not 0 <= highest < len(table.table):
        found = f"has tokens up to {highest}, but there are vectors for {len(table.table)}"
        raise DataError(f"{found}. {_ADVICE}", folder.path / TOKENIZER)


def check_sentences(
    folder: Folder, file: str, ids: npt.NDArray[np.integer], lengths: npt.NDArray[np.integer], n_tokens: int
) -> None:
    """Raise for token ids that have no vector, and for lengths that do not add up."""
    if not (
        ids.ndim == lengths.ndim == 1
        and ids.dtype.kind == lengths.dtype.kind == "i"
        and len(lengths)
        and lengths.min() >= 1
        and lengths.sum() == len(ids)
        and ids.min() >= 0
        and ids.max() < n_tokens
    ):
        raise DataError(f"has token ids that do not make up sentences. {_ADVICE}", folder.path / file)
