"""What each of the paper's tables needs: a list of runs, each with a name under which its result is kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

from awatt.errors import AwattError
from awatt.reproduce.published import ABLATIONS, MAIN, SETTINGS

T = TypeVar("T")

SEEDS = (5, 10, 15, 20, 25)

#: the paper's ablations of Proto-AWATT: the threshold, and what --set changes
VARIANTS: dict[str, tuple[str, tuple[str, ...]]] = {
    "full": ("policy", ()),
    "w/o SA": ("policy", ("model.support_attention=false",)),
    "w/o W": ("policy", ("model.attention_matrix=false",)),
    "w/o QA": ("policy", ("model.query_attention=false",)),
    "w/o DT": ("static", ()),
    "w/o DT w/ KR": ("kernel-regression", ()),
    "w/o DT w/ MS": ("mean-std", ()),
}


@dataclass(frozen=True)
class Run:
    """One training and its test."""

    dataset: str
    n_way: int
    n_shot: int
    method: str
    seed: int
    encoder: str = "glove-cnn"
    threshold: str = "static"
    settings: tuple[str, ...] = ()
    variant: str = "full"

    @property
    def name(self) -> str:
        """Where the result is kept, below the folder of results."""
        parts = [self.method]
        if self.encoder != "glove-cnn":
            parts.append(self.encoder)
        if self.variant != "full":
            parts.append(self.variant.replace("w/o ", "wo-").replace("w/ ", "").replace(" ", "-"))
        return f"{self.dataset}/{self.n_way}x{self.n_shot}/{'+'.join(parts)}-seed{self.seed}"


@dataclass(frozen=True)
class Choice:
    """Which part of an item is asked for; empty means all of it."""

    seeds: tuple[int, ...] = SEEDS
    methods: tuple[str, ...] = ()
    settings: tuple[tuple[int, int], ...] = ()
    datasets: tuple[str, ...] = ()


def main_table(dataset: str, choice: Choice) -> list[Run]:
    """Tables 2 to 4: seven methods in four settings; Proto-AWATT with its dynamic threshold."""
    methods = _chosen("methods", choice.methods, tuple(MAIN[dataset]))
    settings = _chosen("settings", choice.settings, SETTINGS)
    return [
        Run(dataset, n_way, n_shot, method, seed, threshold="policy" if method == "proto-awatt" else "static")
        for n_way, n_shot in settings
        for method in methods
        for seed in choice.seeds
    ]


def ablation_table(datasets: tuple[str, ...], choice: Choice) -> list[Run]:
    """Table 5 and the appendix's: Proto-AWATT at 10-way 5-shot without one of its parts."""
    variants = _chosen("methods", choice.methods, tuple(ABLATIONS))
    return [
        Run(dataset, 10, 5, "proto-awatt", seed, threshold=VARIANTS[name][0], settings=VARIANTS[name][1], variant=name)
        for dataset in _chosen("datasets", choice.datasets, datasets)
        for name in variants
        for seed in choice.seeds
    ]


#: the encoders that load without a model hub; a transformer is fine-tuned at its usual rate, on fewer episodes
ENCODERS: dict[str, tuple[str, ...]] = {
    "glove-cnn": (),
    "glove-lstm": (),
    "static": (),
    "transformer": (
        "training.episodes_an_epoch=120",
        "training.validation_episodes=200",
        "training.max_epochs=3",
        "training.learning_rate=0.0001",
        "encoder.frozen_layers=4",
    ),
}


def overview(choice: Choice) -> list[Run]:
    """5-way 5-shot on FewAsp(single): seven methods, then Proto-AWATT with each encoder and the static threshold."""
    dataset, setting = "FewAsp(single)", ((5, 5),)
    names = _chosen("methods", choice.methods, (*MAIN[dataset], *ENCODERS))
    methods = tuple(name for name in names if name in MAIN[dataset])
    runs = main_table(dataset, replace(choice, methods=methods, settings=setting)) if methods else []
    return runs + [
        Run(dataset, 5, 5, "proto-awatt", seed, name, settings=ENCODERS[name], variant="w/o DT")
        for name in names
        if name in ENCODERS
        for seed in choice.seeds
    ]


def _chosen(what: str, asked: tuple[T, ...], known: tuple[T, ...]) -> tuple[T, ...]:
    unknown = [item for item in asked if item not in known]
    if unknown:
        raise AwattError(f"--{what} has {unknown[0]!r}, this item has: {', '.join(map(str, known))}.")
    return asked or known


@dataclass(frozen=True)
class Item:
    """Something that the paper reports."""

    title: str
    runs: Callable[[Choice], list[Run]]


ITEMS: dict[str, Item] = {
    "table-single": Item(
        "Table 2: seven methods on FewAsp(single)", lambda choice: main_table("FewAsp(single)", choice)
    ),
    "table-multi": Item("Table 3: seven methods on FewAsp(multi)", lambda choice: main_table("FewAsp(multi)", choice)),
    "table-full": Item("Table 4: seven methods on FewAsp", lambda choice: main_table("FewAsp", choice)),
    "table-ablation": Item("Table 5: ablations on FewAsp", lambda choice: ablation_table(("FewAsp",), choice)),
    "overview-single": Item("Seven methods and four encoders on FewAsp(single), 5-way 5-shot", overview),
    "table-ablation-all": Item(
        "Appendix: ablations on the three datasets", lambda choice: ablation_table(tuple(MAIN), choice)
    ),
}
