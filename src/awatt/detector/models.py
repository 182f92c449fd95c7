"""The models a detector can use: its own, or any run of ``awatt train``. Both implement ``Model``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol, Self

import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer

from awatt.arrays import Sentences
from awatt.aspect_model.model import ACCURATE, BUNDLED, AspectModel
from awatt.data.episode import Prediction
from awatt.detector.trial import try_model
from awatt.errors import AwattError, require
from awatt.folders import CONFIG, RUN, WEIGHTS, open_folder
from awatt.research.evaluation import EpisodeModel

FAST = "fast"
#: The models of the package by name.
NAMES: Mapping[str | Path, Path] = {FAST: BUNDLED, "accurate": ACCURATE}


class Model(EpisodeModel, Protocol):
    """The interface that a detector and an evaluation need. What ``fit`` returns is private to each model."""

    tokenizer: Tokenizer

    @property
    def max_length(self) -> int:
        """The number of tokens of a text that it reads."""

    @property
    def kind(self) -> str:
        """The kind of its folder, see ``awatt.folders``."""

    @property
    def probabilistic(self) -> bool:
        """Whether scores are probabilities, or the paper's ranking, which sums to 1 over the aspects."""

    @property
    def learns_from_reviews(self) -> bool:
        """Whether ``fit`` looks at unlabelled sentences of the file."""

    @property
    def decides_per_sentence(self) -> bool:
        """Whether the threshold varies per sentence instead of being one number per aspect."""

    def tokenize(self, texts: Sequence[str]) -> Sentences:
        """Token ids of the texts."""

    def knows_name(self, name: str) -> bool:
        """Whether an aspect of this name can be detected without examples."""

    def fit(
        self,
        examples: Sentences,
        labels: npt.NDArray[np.bool_],
        names: Sequence[str] | None = None,
        reviews: Sentences | None = None,
    ) -> Any:
        """What examples and unlabelled reviews teach; labels (n_examples, n_aspects).

        Every aspect has an example, or a name that the model knows.
        """

    def predict(self, fitted: Any, sentences: Sentences, mode: str = "auto") -> Prediction:
        """Scores and the model's own decisions, (n_sentences, n_aspects) each."""

    def thresholds(self, fitted: Any, mode: str = "auto", aim: str = "balanced") -> npt.NDArray[np.float64]:
        """The score from which each aspect counts as found; NaN if decided for each sentence anew. (n_aspects,)"""

    def default_threshold(self, n_aspects: int) -> float:
        """One number for all aspects before anything was learned; the paper's static one if it has none."""

    def word_weights(self, fitted: Any, sentences: Sentences) -> npt.NDArray[np.floating] | None:
        """Attention weight of each token (n_tokens, n_aspects); None if a method has no attention."""

    def mean_vectors(self, sentences: Sentences) -> npt.NDArray[np.float32]:
        """One unit vector per sentence. (n_sentences, dim)"""

    def pack(self, fitted: Any) -> dict[str, npt.NDArray[Any]]:
        """The result of ``fit`` as named arrays."""

    def unpack(self, arrays: Mapping[str, npt.NDArray[Any]]) -> Any:
        """The inverse of ``pack``."""

    def files(self) -> dict[str, bytes]:
        """The files of its folder: name -> content."""

    def config(self) -> dict[str, Any]:
        """The settings for ``config.json``."""


class KeptModel:
    """The model of a detector, and the name by which it was loaded. Copies share it; a pickle leaves it out."""

    def __init__(self, name: str | Path | None = None, model: Model | None = None) -> None:
        self.name, self.model = name, model

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __reduce__(self) -> tuple[type[KeptModel], tuple[()]]:
        return KeptModel, ()


def model_folder(model: str | Path | None) -> Path:
    """The folder of a model: "fast" (also if None), "accurate", or a folder. For one with such a name give ./fast."""
    named = FAST if model is None else model
    return NAMES.get(named) or Path(named)


def same_model(one: str | Path | None, other: str | Path | None) -> bool:
    """Whether two names mean the same model."""
    if one == other:
        return True
    first, second = map(model_folder, (one, other))
    return first == second or first.resolve() == second.resolve()


def load_model(model: str | Path | None = FAST) -> Model:
    """Load a model of the package by its name, or the one in a folder. Cached; a folder's until its files change."""
    folder = model_folder(model)
    files = () if folder in NAMES.values() else (CONFIG, WEIGHTS)
    return _load(folder, *(_modified_at(folder / name) for name in files))


def _modified_at(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0  # reading it will report the error


@lru_cache(maxsize=4)
def _load(path: Path, *modified_at: int) -> Model:
    return read_model(path)


def read_model(model: str | Path, device: str = "cpu", threads: int | None = None) -> Model:
    """As `load_model`, uncached; ``device`` and ``threads`` apply to runs only."""
    folder = open_folder(model_folder(model)).model()
    if folder.kind == RUN:
        torch = require("torch", "train")
        if threads is not None:
            torch.set_num_threads(threads)
        from awatt.research.run_model import RunModel
        from awatt.research.training import pick_device

        run = RunModel.from_folder(folder)
        run.system.to(pick_device(device))
        try_model(run, folder.path)
        return run
    if device not in ("auto", "cpu"):
        raise AwattError(
            f"the device is '{device}', but the detector's own model runs on the CPU only. Leave out --device."
        )
    found = AspectModel.from_folder(folder)
    if folder.path not in NAMES.values():
        try_model(found, folder.path)
    return found
