"""Static token vectors from any model2vec folder, distilled from a sentence encoder and as fast as GloVe."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import torch
from safetensors import SafetensorError
from safetensors.numpy import load_file
from tokenizers import Tokenizer
from torch import Tensor, nn

from awatt.arrays import Sentences
from awatt.config import check_at_least
from awatt.encoders.base import Encoder, look_up
from awatt.encoders.convolution import Convolution
from awatt.encoders.pretrained import blend, plain_tokenizer, read_tokenizer
from awatt.errors import AwattError, DataError
from awatt.files import shared_folder


@dataclass(frozen=True)
class StaticConfig:
    """Chosen on the validation aspects of FewAsp(single), 5-way 5-shot: a frozen table and a linear map."""

    #: a model2vec folder; the default is potion-base-8M, see ``default_folder``
    folder: str = ""
    frozen: bool = True  # training the table gains nothing (AUC 0.988 for both) and takes longer
    #: output size of the linear map; 0: no map (AUC 0.984). 128 is faster (0.983)
    hidden: int = 256
    #: words in the window of the map; with 3 it is a convolution (AUC 0.986, best after the first epoch)
    window: int = 1
    #: norms of the sentence's and of the token's own vector, see ``blend``
    sentence: float = 5.0
    word: float = 1.0
    max_length: int = 128

    def __post_init__(self) -> None:
        check_at_least(self, "encoder", hidden=0, window=1, max_length=1)
        if self.hidden == 0 and self.window != 1:
            raise AwattError(f"encoder.window is {self.window} without a map. Set encoder.hidden, or encoder.window=1.")


class StaticEncoder(Encoder):
    """A table of token vectors (model2vec, such as potion-base-8M) with a linear map or convolution on top.

    A table has no context: ``blend`` adds the direction of the sentence to each token.
    """

    config_type = StaticConfig
    needs = "pip install 'awatt[train]' and a model2vec folder (encoder.folder)"
    sparse = ("table.weight",)

    def __init__(self, config: StaticConfig, tokenizer: Tokenizer, width: int, empty: int) -> None:
        super().__init__()
        self.config, self.tokenizer, self.max_length, self.empty = config, tokenizer, config.max_length, empty
        self.dim = config.hidden or width
        self.table = nn.Embedding(tokenizer.get_vocab_size(), width, sparse=True)
        self.table.weight.requires_grad_(not config.frozen)
        self.convolution = _identity(width, config.hidden, config.window) if config.hidden else None

    @classmethod
    def create(cls, config: StaticConfig, texts: Iterable[str]) -> Self:
        folder = Path(config.folder) if config.folder else default_folder()
        tokenizer, vectors, unknown = read_model2vec(folder)
        encoder = cls(config, tokenizer, vectors.shape[1], unknown or 0)
        encoder.table.weight.data.copy_(torch.from_numpy(vectors))
        return encoder

    @classmethod
    def restore(cls, config: StaticConfig, tokenizer: Tokenizer, details: Mapping[str, Any]) -> Self:
        return cls(config, tokenizer, details["width"], details["empty"])

    @property
    def details(self) -> dict[str, Any]:
        return {"width": self.table.embedding_dim, "empty": self.empty}

    def forward(self, sentences: Sentences) -> Tensor:
        rows, places = look_up(self.table, sentences)
        if self.convolution is None:
            words = rows.index_select(0, torch.from_numpy(places).to(rows.device))
        else:
            words = self.convolution(rows, places, sentences.lengths)
        return blend(words, sentences.lengths, self.config.sentence, self.config.word)


def _identity(width: int, hidden: int, window: int) -> Convolution:
    """A map that is initialised to return a token's own vector, up to a factor.

    Its diagonal is 4, not 1: only directions matter, and a step of Adam, which changes each number by about 1e-3
    whatever the gradient, is small compared to 4. With 1 the best epoch is the first one, and worse (AUC 0.986).
    """
    convolution = Convolution(width, hidden, window)
    kernel = torch.zeros(width, window, hidden)
    kernel[:, window // 2] = 4 * torch.eye(width, hidden)
    convolution.kernel.data.copy_(kernel.view(width, -1))
    convolution.bias.data.zero_()
    return convolution


def default_folder() -> Path:
    """potion-base-8M in the shared folder."""
    return shared_folder() / "weights" / "potion-base-8M"


def read_model2vec(folder: Path) -> tuple[Tokenizer, npt.NDArray[np.float32], int | None]:
    """The tokeniser, the vectors of its tokens scaled to entries of about 1, and the id of its unknown token."""
    path, words = folder / "model.safetensors", folder / "tokenizer.json"
    for file in (path, words):
        if not file.is_file():
            raise AwattError(
                f"{file} does not exist. Run: hf download minishlab/potion-base-8M --local-dir {folder}, "
                "or name another model2vec folder (model.safetensors and tokenizer.json)."
            )
    try:
        tensors = load_file(path)
        vectors = tensors["embeddings"].astype(np.float32)
    except (SafetensorError, KeyError) as error:
        raise DataError(f"is not a model2vec file, which has the tensor 'embeddings': {error}", path) from None
    tokenizer = plain_tokenizer(read_tokenizer(words))
    if "mapping" in tensors:  # several tokens share a vector
        vectors = vectors[tensors["mapping"]]
    if "weights" in tensors:  # the weight of each token
        vectors = vectors * tensors["weights"].astype(np.float32)[:, None]
    if len(vectors) != tokenizer.get_vocab_size():
        raise DataError(f"has {len(vectors)} vectors, tokenizer.json {tokenizer.get_vocab_size()} tokens.", path)
    vectors /= np.sqrt((vectors**2).mean())
    model = json.loads(tokenizer.to_str())["model"]
    unknown = tokenizer.token_to_id(model["unk_token"]) if model.get("unk_token") else model.get("unk_id")
    if unknown is not None:
        vectors[unknown] = 0  # model2vec drops unknown tokens; here they keep their position and add nothing
    return tokenizer, vectors, unknown
