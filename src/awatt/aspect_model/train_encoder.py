"""What ``awatt train-detector --encoder`` names: where token vectors in context come from."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load

from awatt.arrays import Sentences
from awatt.aspect_model.context import Context
from awatt.aspect_model.model import ACCURATE, AspectModel
from awatt.aspect_model.student.encoder import Student, StudentEncoder, read_student
from awatt.aspect_model.vectors import TokenVectors
from awatt.errors import AwattError, DataError

if TYPE_CHECKING:
    from awatt.aspect_model.transformer import TransformerContext

NONE, STUDENT = "none", "student"


class ChosenEncoder(NamedTuple):
    """At most one of the two."""

    student: Student | None = None
    transformer: TransformerContext | None = None

    def context(self, vectors: TokenVectors) -> Context | None:
        """Gives the vectors; None for static ones alone."""
        return self.transformer if self.student is None else StudentEncoder(self.student, vectors.stored)


def read_encoder(name: str, vectors: TokenVectors, sample: Sentences) -> ChosenEncoder:
    """ "none", "student" (that of the accurate model), a distilled student's file, or a BERT-like encoder's folder.

    The principal directions of an encoder's vectors are those of the sample.
    """
    if name == NONE:
        return ChosenEncoder()
    if name != STUDENT and Path(name).suffix != ".safetensors":
        from awatt.aspect_model.transformer import TransformerContext

        found = TransformerContext.create(name, vectors.tokenizer, sample, vectors.max_length)
        return ChosenEncoder(transformer=found)
    package = AspectModel.load(ACCURATE).weights
    if name == STUDENT and not np.array_equal(package.vectors.table, vectors.stored.table):
        advice = "Leave out --vectors, or distil a student from them: python benchmarks/student.py distill"
        raise AwattError(f"the student of the accurate model reads the package's static vectors, not others. {advice}")
    student = package.student if name == STUDENT else _read_file(Path(name))
    n_tokens, needed = 0 if student is None else len(student.extra), len(vectors.stored.table)
    if n_tokens != needed:
        advice = "Distil one from these vectors: python benchmarks/student.py distill"
        raise AwattError(f"the student '{name}' knows {n_tokens} tokens, but there are {needed}. {advice}")
    return ChosenEncoder(student)


def _read_file(path: Path) -> Student:
    try:
        return read_student(load(path.read_bytes()))
    except OSError as error:
        raise DataError(f"cannot be read ({error.strerror}). Check the path after --encoder.", path) from None
    except (SafetensorError, KeyError, ValueError) as error:
        needed = "a file of 'python benchmarks/student.py distill' is needed"
        raise DataError(f"is not a student ({error}); {needed}.", path) from None
