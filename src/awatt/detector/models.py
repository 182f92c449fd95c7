"""The models a detector can use: its own, or any run of ``awatt train``. Both implement ``Model``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer

from awatt.arrays import Sentences
from awatt.aspect_model.model import BUNDLED, AspectModel
from awatt.data.episode import Prediction
from awatt.errors import AwattError, require
from awatt.folders import CONFIG, RUN, WEIGHTS, open_folder
from awatt.research.evaluation import EpisodeModel

BUNDLED_NAME = "bundled"


class Model(EpisodeModel, Protocol):
    """The interface that a detector and an evaluation need. What ``fit`` returns is private to each model."""

    tokenizer: Tokenizer

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
        """Whether its threshold is another one for each sentence, rather than a number per aspect."""

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


def load_model(path: str | Path | None = None) -> Model:
    """Load the model in a folder, by default the bundled one. Cached until its files change."""
    folder = BUNDLED if path is None or str(path) == BUNDLED_NAME else Path(path)
    return _load(folder, *(_modified_at(folder / name) for name in (CONFIG, WEIGHTS)))


def _modified_at(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0  # reading it will report the error


@lru_cache(maxsize=4)
def _load(path: Path, *modified_at: int) -> Model:
    return read_model(path)


def read_model(path: str | Path, device: str = "cpu", threads: int | None = None) -> Model:
    """Read the model in any folder, or ``"bundled"``, uncached; ``device`` and ``threads`` apply to runs only."""
    folder = open_folder(BUNDLED if str(path) == BUNDLED_NAME else Path(path)).model()
    if folder.kind == RUN:
        torch = require("torch", "train")
        if threads is not None:
            torch.set_num_threads(threads)
        from awatt.research.run_model import RunModel
        from awatt.research.training import pick_device

        model = RunModel.from_folder(folder)
        model.system.to(pick_device(device))
        return model
    if device not in ("auto", "cpu"):
        raise AwattError(
            f"the device is '{device}', but the detector's own model runs on the CPU only. Leave out --device."
        )
    return AspectModel.from_folder(folder)
