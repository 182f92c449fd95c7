"""Tiny encoders of every kind."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from awatt.arrays import Sentences
from awatt.config import build
from awatt.encoders import ENCODERS, Encoder

torch.set_num_threads(1)

WORDS = ["the", "food", "was", "good", "waiter", "friendly", "room", "clean", "."]
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
PIECES = [*SPECIAL, *WORDS, "un", "##clean", "##ly", *"abcdefghij"]
TEXTS = ("The food was good .", "unclean", "waiter friendly", "the room was unclean and the waiter was friendly .", "")


def wordpiece() -> Tokenizer:
    """A tokeniser such as BERT's, which pads and truncates as saved ones may."""
    ids = {piece: number for number, piece in enumerate(PIECES)}
    tokenizer = Tokenizer(models.WordPiece(ids, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", ids["[CLS]"]), ("[SEP]", ids["[SEP]"])]
    )
    tokenizer.add_special_tokens(SPECIAL)
    tokenizer.enable_padding(length=20)
    tokenizer.enable_truncation(20)
    return tokenizer


def make_transformer(folder: Path, kind: str, positions: int = 32) -> Path:
    """A Hugging Face folder with random weights."""
    import transformers

    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "num_hidden_layers": 3, "num_attention_heads": 2}
    if kind == "distilbert":
        sizes = {"dim": 16, "n_layers": 3, "n_heads": 2, "hidden_dim": 24}
    length, positions = positions, positions + 2 * (kind == "mpnet")  # MPNet counts them from 2
    config = transformers.AutoConfig.for_model(
        kind,
        vocab_size=len(PIECES),
        max_position_embeddings=positions,
        initializer_range=0.3,
        pad_token_id=0,
        **sizes,
    )
    transformers.AutoModel.from_config(config).save_pretrained(folder)
    names = {f"{name}_token": f"[{name.upper()}]" for name in ("pad", "unk", "cls", "sep", "mask")}
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=wordpiece(), model_max_length=length, **names)
    fast.save_pretrained(folder)
    return folder


def make_model2vec(folder: Path, **tensors: Any) -> Path:
    """A model2vec folder with random vectors, 8 wide."""
    folder.mkdir(parents=True, exist_ok=True)
    vectors = np.random.default_rng(0).normal(0, 3, (len(PIECES), 8)).astype(np.float32)
    save_file({"embeddings": vectors, **tensors}, folder / "model.safetensors")
    wordpiece().save(str(folder / "tokenizer.json"))
    return folder


def make_glove(path: Path) -> Path:
    """A glove text file, 5 wide."""
    chance = np.random.default_rng(1)
    path.write_text("".join(f"{word} {' '.join(map(str, chance.normal(0, 1, 5).round(3)))}\n" for word in WORDS))
    return path


@pytest.fixture(scope="session")
def settings(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Settings for a tiny encoder of each kind."""
    folder = tmp_path_factory.mktemp("encoders")
    glove = {"vectors": str(make_glove(folder / "glove.txt")), "hidden": 6}
    return {
        "glove-cnn": glove,
        "glove-lstm": glove,
        "static": {"folder": str(make_model2vec(folder / "model2vec")), "hidden": 6},
        "transformer": {"name": str(make_transformer(folder / "bert", "bert")), "max_length": 32},
    }


@pytest.fixture
def make(settings: dict[str, dict[str, Any]]) -> Callable[..., Encoder]:
    """A tiny encoder by name, with other settings."""

    def create(name: str, **changes: Any) -> Encoder:
        torch.manual_seed(0)
        kind = ENCODERS[name]
        return kind.create(build(kind.config_type, settings[name] | changes, "encoder"), TEXTS).eval()

    return create


@pytest.fixture(scope="session")
def texts() -> tuple[str, ...]:
    """Texts of different lengths, one of them empty, more than one block of them."""
    return TEXTS * 8


@pytest.fixture(scope="session")
def alone() -> Callable[[Encoder, Sentences], torch.Tensor]:
    """Each sentence encoded alone, then packed."""

    def encode(encoder: Encoder, sentences: Sentences) -> torch.Tensor:
        return torch.cat([encoder(sentences.take(np.array([number]))) for number in range(len(sentences.lengths))])

    return encode


@pytest.fixture(scope="session")
def transformer_folder() -> Callable[..., Path]:
    """Makes a Hugging Face folder: ``transformer_folder(folder, "bert")``."""
    return make_transformer


@pytest.fixture(scope="session")
def model2vec_folder() -> Callable[..., Path]:
    """Makes a model2vec folder: ``model2vec_folder(folder, weights=...)``."""
    return make_model2vec
