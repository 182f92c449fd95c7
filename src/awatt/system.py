"""An encoder, a model and a threshold put together: scored episodes, and a folder to save and load them."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.torch
import torch
from safetensors import SafetensorError
from tokenizers import Tokenizer
from torch import Tensor, nn

from awatt import __version__
from awatt.config import build, choose
from awatt.data.corpus import Corpus
from awatt.encoders import ENCODERS, Encoded, Encoder
from awatt.episode import Episode
from awatt.errors import AwattError, DataError
from awatt.files import write_text, write_whole
from awatt.models import MODELS, DistanceModel, FewShotModel
from awatt.packed import Integers, Sentences
from awatt.thresholds import THRESHOLDS, Scored, Threshold

FORMAT = 2  # 1 had no form of Eq. 3, and another last convolution in Proto-HATT
_CHUNK = 256  # sentences that are encoded at once outside training: their vectors stay in the cache


@dataclass(frozen=True)
class SystemConfig:
    """Which parts, each with its settings, for which number of aspects."""

    method: str = "proto-awatt"
    encoder: str = "glove-cnn"
    threshold: str = "static"
    n_way: int = 5
    model_settings: Any = None
    encoder_settings: Any = None
    threshold_settings: Any = None

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any]) -> SystemConfig:
        """From names and the sections ``model``, ``encoder`` and ``threshold`` of plain settings."""
        parts = {
            "model": choose(MODELS, values["method"], "method"),
            "encoder": choose(ENCODERS, values["encoder"], "encoder"),
            "threshold": choose(THRESHOLDS, values["threshold"], "threshold"),
        }
        settings = values.get("settings", {})
        built = {
            f"{name}_settings": build(part.config_type, settings.get(name, {}), name) for name, part in parts.items()
        }
        return cls(values["method"], values["encoder"], values["threshold"], values["n_way"], **built)

    def to_mapping(self) -> dict[str, Any]:
        """The inverse of ``from_mapping``, every default written out."""
        named = {name: getattr(self, name) for name in ("method", "encoder", "threshold", "n_way")}
        sections = ("model", "encoder", "threshold")
        settings = {name: dataclasses.asdict(getattr(self, f"{name}_settings")) for name in sections}
        return named | {"settings": settings}


class System(nn.Module):
    """All that is needed to go from sentences to sets of aspects."""

    def __init__(self, config: SystemConfig, encoder: Encoder) -> None:
        super().__init__()
        self.config = config
        self.encoder = encoder
        self.model: FewShotModel = MODELS[config.method](encoder.dim, config.model_settings)
        self.threshold: Threshold = THRESHOLDS[config.threshold](config.threshold_settings, config.n_way, encoder.dim)

    @classmethod
    def create(cls, config: SystemConfig, texts: Iterable[str]) -> System:
        """A fresh one: pretrained vectors, everything else drawn from torch's global generator."""
        return cls(config, ENCODERS[config.encoder].create(config.encoder_settings, texts))

    @property
    def device(self) -> torch.device:
        """Where the parameters are."""
        return next(self.parameters()).device

    @torch.no_grad()
    def encode(self, sentences: Sentences) -> Tensor:
        """Vectors of many sentences, packed, without gradients. (n_tokens, dim)"""
        numbers = np.arange(len(sentences.lengths))
        parts = [
            self.encoder(sentences.take(chunk)) for chunk in np.split(numbers, range(_CHUNK, len(numbers), _CHUNK))
        ]
        return torch.cat(parts)

    def score(self, tokens: Tensor, lengths: Integers, corpus: Corpus, episode: Episode) -> Scored:
        """Score a batch of episodes whose sentences lie in packed ``tokens``, with these lengths."""
        support = Encoded.pick(tokens, lengths, episode.support)
        query = Encoded.pick(tokens, lengths, episode.query)
        scored = self._score(support, query, corpus, episode, self.threshold.sees_examples)
        if not self.threshold.sees_sentences:
            return scored
        return replace(scored, query=query.mean(), support=support.mean().flatten(-3, -2))

    def score_fresh(self, sentences: Sentences, corpus: Corpus, episode: Episode) -> Scored:
        """Score a batch of episodes, encoding what they need, with gradients: the training step."""
        part = sentences.take(np.concatenate([episode.support.reshape(-1), episode.query.reshape(-1)]))
        of_support, of_query = np.split(part.lengths, [episode.support.size])
        support, query = self.encoder(part).split([of_support.sum(), of_query.sum()])
        return self._score(
            Encoded(support, of_support.reshape(episode.support.shape)),
            Encoded(query, of_query.reshape(episode.query.shape)),
            corpus,
            episode,
        )

    def _score(
        self, support: Encoded, query: Encoded, corpus: Corpus, episode: Episode, with_examples: bool = False
    ) -> Scored:
        summary = self.model.summarise(support)
        differences = None
        if isinstance(self.model, DistanceModel):
            differences = self.model.differences(query, summary)
            scores = -differences.sum(-1)
        else:
            scores = self.model.scores(query, summary)
        support_scores = None
        if with_examples:
            examples = Encoded(support.tokens, support.lengths.reshape(*support.shape[:-2], -1))
            support_scores = self.model.scores(examples, summary)
        mentioned = corpus.mentions[episode.support[..., None], episode.aspects[..., None, None, :]]
        return Scored(
            probabilities=self.model.normalise(scores),
            scores=scores,
            differences=differences,
            support_targets=torch.from_numpy(mentioned).flatten(-3, -2).to(scores.device),
            targets=torch.from_numpy(episode.targets).to(scores.device),
            support_scores=support_scores,
        )

    def save(self, folder: Path, card: str) -> None:
        """Write ``config.json``, ``model.safetensors``, ``tokenizer.json`` and the model card, each whole."""
        folder.mkdir(parents=True, exist_ok=True)
        state = {name: value.detach().cpu().contiguous() for name, value in self.state_dict().items()}
        weights = safetensors.torch.save(state)
        write_text(folder / "tokenizer.json", self.encoder.tokenizer.to_str())
        write_text(folder / "README.md", card)
        content = {
            "format": FORMAT,
            "awatt": __version__,
            "sha256": hashlib.sha256(weights).hexdigest(),
            **self.config.to_mapping(),
            "encoder_details": self.encoder.details,
        }
        # Next to each other: between these two writes the folder cannot be loaded.
        write_whole(folder / "model.safetensors", weights)
        write_text(folder / "config.json", json.dumps(content, indent=1) + "\n")

    @classmethod
    def load(cls, folder: Path) -> System:
        """Read a saved folder; anything but a whole model of this format is refused with the reason."""
        content = _read_config(folder)
        weights = _read_bytes(folder / "model.safetensors")
        if hashlib.sha256(weights).hexdigest() != content["sha256"]:
            raise DataError(
                "is not the file that config.json names (sha256 differs). Copy the folder again, or --resume its run.",
                folder / "model.safetensors",
            )
        try:
            state = safetensors.torch.load(weights)
        except SafetensorError as error:
            raise DataError(f"is not a safetensors file: {error}", folder / "model.safetensors") from None
        tokenizer = _read_tokenizer(folder / "tokenizer.json")
        try:
            config = SystemConfig.from_mapping(content)
            encoder = ENCODERS[config.encoder].restore(config.encoder_settings, tokenizer, content["encoder_details"])
            system = cls(config, encoder)
        except AwattError as error:
            raise DataError(str(error), folder / "config.json") from None
        except (AttributeError, KeyError, TypeError, ValueError, RuntimeError) as error:  # edited by hand
            raise DataError(f"does not describe a model: {error!r}.", folder / "config.json") from None
        _check_shapes(folder, system.state_dict(), state)
        system.load_state_dict(state)
        return system.eval()


def _read_config(folder: Path) -> dict[str, Any]:
    path = folder / "config.json"
    try:
        content = json.loads(_read_bytes(path))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise DataError(f"is not JSON: {error}", path) from None
    needed = ("format", "sha256", "method", "encoder", "threshold", "n_way", "settings", "encoder_details")
    missing = [name for name in needed if not isinstance(content, dict) or name not in content]
    if missing:
        raise DataError(f"lacks {', '.join(missing)}. Is this a folder that 'awatt train' wrote?", path)
    if content["format"] != FORMAT:
        raise DataError(
            f"has format {content['format']!r}, this version of awatt ({__version__}) reads format {FORMAT}. "
            "Train again, or install the version that wrote it.",
            path,
        )
    return dict(content)


def _read_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        raise AwattError(
            f"{path} does not exist. A model is a folder with config.json, model.safetensors and tokenizer.json."
        ) from None


def _read_tokenizer(path: Path) -> Tokenizer:
    try:
        return Tokenizer.from_str(_read_bytes(path).decode("utf-8"))
    except Exception as error:  # the Rust side raises bare Exception
        if isinstance(error, AwattError):
            raise
        raise DataError(f"is not a tokenizer: {error}", path) from None


def _check_shapes(folder: Path, wanted: Mapping[str, Tensor], found: Mapping[str, Tensor]) -> None:
    path = folder / "model.safetensors"
    for name in sorted(wanted.keys() | found.keys()):
        needs = tuple(wanted[name].shape) if name in wanted else "no such tensor"
        has = tuple(found[name].shape) if name in found else "no such tensor"
        if needs != has:
            raise DataError(f"has {has} for '{name}', its config.json needs {needs}.", path)
