"""A system: an encoder, a model and a threshold that score episodes together, and its folder."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor, nn

from awatt.arrays import Integers, Sentences
from awatt.config import build, choose
from awatt.data.corpus import Corpus
from awatt.data.episode import Episode
from awatt.data.fewasp import read_json
from awatt.encoders import ENCODERS, Encoded, Encoder
from awatt.errors import AwattError, DataError
from awatt.folders import CARD, CONFIG, RUN, TOKENIZER, WEIGHTS, Folder, open_folder, read_tokenizer, write_folder
from awatt.models import MODELS, DistanceModel, FewShotModel
from awatt.thresholds.base import Scored, Threshold
from awatt.thresholds.kinds import THRESHOLDS

_CHUNK = 256  # sentences encoded per batch outside training: their vectors fit the CPU cache


@dataclass(frozen=True)
class SystemConfig:
    """The names and settings of the parts, and the number of aspects."""

    method: str = "proto-awatt"
    encoder: str = "glove-cnn"
    threshold: str = "static"
    n_way: int = 5
    model_settings: Any = None
    encoder_settings: Any = None
    threshold_settings: Any = None

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any]) -> SystemConfig:
        """From the parts' names and the settings in the sections ``model``, ``encoder`` and ``threshold``."""
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
        """The inverse of ``from_mapping``, with every default written out."""
        named = {name: getattr(self, name) for name in ("method", "encoder", "threshold", "n_way")}
        sections = ("model", "encoder", "threshold")
        settings = {name: dataclasses.asdict(getattr(self, f"{name}_settings")) for name in sections}
        return named | {"settings": settings}


class System(nn.Module):
    """Everything needed to go from sentences to aspects."""

    def __init__(self, config: SystemConfig, encoder: Encoder) -> None:
        super().__init__()
        self.config = config
        self.encoder = encoder
        self.model: FewShotModel = MODELS[config.method](encoder.dim, config.model_settings)
        self.trained_with: dict[str, Any] = {}  # episode shape and seed, saved in the folder
        self.threshold: Threshold = THRESHOLDS[config.threshold](config.threshold_settings, config.n_way, encoder.dim)

    @classmethod
    def create(cls, config: SystemConfig, texts: Iterable[str]) -> System:
        """A new system: pretrained vectors, all else initialised from torch's global generator."""
        return cls(config, ENCODERS[config.encoder].create(config.encoder_settings, texts))

    @property
    def device(self) -> torch.device:
        """The device of the parameters."""
        return next(self.parameters()).device

    @torch.no_grad()
    def encode(self, sentences: Sentences) -> Tensor:
        """Token vectors of many sentences, packed, without gradients. (n_tokens, dim)"""
        numbers = np.arange(len(sentences.lengths))
        parts = [
            self.encoder(sentences.take(chunk)) for chunk in np.split(numbers, range(_CHUNK, len(numbers), _CHUNK))
        ]
        return torch.cat(parts)

    def score(self, tokens: Tensor, lengths: Integers, corpus: Corpus, episode: Episode) -> Scored:
        """Score a batch of episodes, given the packed token vectors and lengths of all sentences."""
        support = Encoded.pick(tokens, lengths, episode.support)
        query = Encoded.pick(tokens, lengths, episode.query)
        scored = self._score(support, query, corpus, episode, "examples" in self.threshold.sees)
        if "sentences" not in self.threshold.sees:
            return scored
        return replace(scored, query=query.mean(), support=support.mean().flatten(-3, -2))

    def score_fresh(self, sentences: Sentences, corpus: Corpus, episode: Episode) -> Scored:
        """Encode and score a batch of episodes with gradients, as a training step needs."""
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

    def save(self, path: Path, card: str) -> None:
        """Write a run's folder: the system, its tokenizer and a model card."""
        write_folder(path, RUN, self.to_config(), {**self.files(), CARD: card.encode()})

    def files(self) -> dict[str, bytes]:
        """The files of its folder: name -> content."""
        state = {name: value.detach().cpu().contiguous() for name, value in self.state_dict().items()}
        return {WEIGHTS: safetensors.torch.save(state), TOKENIZER: self.encoder.tokenizer.to_str().encode()}

    def to_config(self) -> dict[str, Any]:
        """The settings for ``config.json``."""
        return {**self.config.to_mapping(), "encoder_details": self.encoder.details, **self.trained_with}

    @classmethod
    def load(cls, path: Path) -> System:
        """Load a run's folder."""
        return cls.from_folder(open_folder(path, RUN))

    @classmethod
    def from_folder(cls, folder: Folder) -> System:
        """Load from an opened folder; anything but a complete system raises an error with the reason."""
        if folder.config["format"] == 1:
            folder = dataclasses.replace(folder, config=_from_format_1(folder))
        for name in ("method", "encoder", "threshold"):
            folder.setting(name, str)
        folder.number("n_way", 1, 10_000)
        folder.setting("settings", dict)
        details = folder.setting("encoder_details", dict)
        weights, tokenizer = folder.read(WEIGHTS), read_tokenizer(folder)
        try:
            state = safetensors.torch.load(weights)
        except SafetensorError as error:
            raise DataError(f"is not a safetensors file: {error}", folder.path / WEIGHTS) from None
        try:
            config = SystemConfig.from_mapping(folder.config)
            system = cls(config, ENCODERS[config.encoder].restore(config.encoder_settings, tokenizer, details))
        except AwattError as error:
            raise DataError(str(error), folder.path / CONFIG) from None
        except (AttributeError, KeyError, TypeError, ValueError, RuntimeError) as error:  # edited by hand
            raise folder.error(f"has settings that do not fit together ({error!r})") from None
        _check_shapes(folder.path / WEIGHTS, system.state_dict(), state)
        system.load_state_dict(state)
        system.trained_with = {name: folder.config[name] for name in ("episode", "seed") if name in folder.config}
        return system.eval()


def _from_format_1(folder: Folder) -> dict[str, Any]:
    """What a run of format 1, older than 0.1.0, meant: simpler forms of two methods, and Eq. 3 as a linear layer."""
    config = dict(folder.config)
    described = folder.path / "run.json"  # had the episode and the seed
    if described.is_file():
        content = read_json(described)
        config |= {name: content[name] for name in ("episode", "seed") if isinstance(content, dict) and name in content}
    if config.get("method") == "proto-hatt":
        advice = "Train it again: awatt train --method proto-hatt ..."
        raise AwattError(f"{folder.path} is a run of Proto-HATT in a form that this version does not have. {advice}")
    config["method"] = {"relation": "relation-softmax", "graph": "graph-shared"}.get(
        str(config.get("method")), config.get("method")
    )
    if config["method"] == "proto-awatt" and isinstance(config.get("settings"), dict):
        model = {"form": "linear", **config["settings"].get("model", {})}
        config["settings"] = {**config["settings"], "model": model}
    return config


def _check_shapes(path: Path, wanted: Mapping[str, Tensor], found: Mapping[str, Tensor]) -> None:
    for name in sorted(wanted.keys() | found.keys()):
        needs = _describe(wanted[name]) if name in wanted else "no such tensor"
        has = _describe(found[name]) if name in found else "no such tensor"
        if needs != has:
            raise DataError(f"has {has} for '{name}', but its config.json needs {needs}.", path)
        if found[name].is_floating_point() and not found[name].isfinite().all():
            raise DataError(f"has NaN or infinity in '{name}'. Copy or train it again.", path)


def _describe(tensor: Tensor) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')} {tuple(tensor.shape)}"
