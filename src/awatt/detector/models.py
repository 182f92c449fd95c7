"""The models a detector can use: its own, or any run of ``awatt train``. Both offer the same few things."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer

from awatt.arrays import Sentences
from awatt.aspect_model.model import BUNDLED, AspectModel
from awatt.data.corpus import Corpus
from awatt.data.episode import PredictedEpisodes, Prediction
from awatt.data.sampler import EpisodeShape
from awatt.errors import AwattError, require
from awatt.folders import CONFIG, RUN, WEIGHTS, open_folder

BUNDLED_NAME = "bundled"


class Model(Protocol):
    """What a detector and an evaluation need. ``Fitted``, what examples taught, is the model's own kind of thing."""

    tokenizer: Tokenizer

    @property
    def kind(self) -> str:
        """The kind of its folder."""

    @property
    def probabilistic(self) -> bool:
        """Whether scores are probabilities; else they are the paper's ranking, which sums to 1 over the aspects."""

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
        """The share of each token in the decision (n_tokens, n_aspects); None if a method has no attention."""

    def mean_vectors(self, sentences: Sentences) -> npt.NDArray[np.float32]:
        """A unit vector per sentence. (n_sentences, dim)"""

    def pack(self, fitted: Any) -> dict[str, npt.NDArray[Any]]:
        """What was learned, as named arrays."""

    def unpack(self, arrays: Mapping[str, npt.NDArray[Any]]) -> Any:
        """The inverse of ``pack``."""

    def files(self) -> dict[str, bytes]:
        """The model's files, for a folder."""

    def config(self) -> dict[str, Any]:
        """What its folder says besides the files."""

    @property
    def trained_with(self) -> tuple[EpisodeShape, int]:
        """The episodes and the seed that an evaluation takes by default."""

    @property
    def threshold_name(self) -> str:
        """What it decides with."""

    def use_threshold(self, wanted: str, data: Path, shape: EpisodeShape, seed: int) -> str:
        """Decide with another threshold; gives its name."""

    def predict_episodes(
        self, corpus: Corpus, shape: EpisodeShape, episodes: int, seed: int
    ) -> Iterator[PredictedEpisodes]:
        """Episodes 0 to ``episodes - 1`` of the corpus, in batches."""


def load_model(path: str | Path | None = None) -> Model:
    """The model in a folder, read once per process and again if its files change; the bundled one by default."""
    folder = BUNDLED if path is None or str(path) == BUNDLED_NAME else Path(path)
    return _load(folder, *(_changed(folder / name) for name in (CONFIG, WEIGHTS)))


def _changed(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0  # reading says what is wrong


@lru_cache(maxsize=4)
def _load(path: Path, *changed: int) -> Model:
    return read_model(path)


def read_model(path: str | Path, device: str = "cpu", threads: int | None = None) -> Model:
    """The model in a folder of any kind, or ``"bundled"``, read anew; ``device`` and ``threads`` are those of a run."""
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
        raise AwattError(f"the device is '{device}', but the detector's own model runs on the cpu. Leave it out.")
    return AspectModel.from_folder(folder)
