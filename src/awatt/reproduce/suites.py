"""The runs that each of the paper's tables and figures needs. A run's name is the path of its result."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from awatt.errors import AwattError
from awatt.reproduce.published import ABLATIONS, MAIN, SETTINGS

T = TypeVar("T")

SEEDS = (5, 10, 15, 20, 25)
TEST_EPISODES = 600

#: the paper's ablations of Proto-AWATT: the threshold and the settings
VARIANTS: dict[str, tuple[str, tuple[str, ...]]] = {
    "full": ("policy", ()),
    "w/o SA": ("policy", ("model.support_attention=false",)),
    "w/o W": ("policy", ("model.attention_matrix=false",)),
    "w/o QA": ("policy", ("model.query_attention=false",)),
    "w/o DT": ("static", ()),
    "w/o DT w/ KR": ("kernel-regression", ()),
    "w/o DT w/ MS": ("mean-std", ()),
}

#: our own variants, shown below the paper's seven methods
OURS = ("relation-softmax", "graph-shared")
#: two more rows of our own: Proto-AWATT on the bundled model's token vectors, and the bundled model
STATIC, BUNDLED = "proto-awatt-static", "bundled"

#: values of e_M, the repetitions of the common aspect vector: the default, then those of the figure (the paper's text
#: names 1, 25 and 50)
REPEATS = (4, 1, 5, 10, 25, 50)

#: encoders that load without a model hub; a transformer is fine-tuned on fewer episodes, at a lower learning rate
ENCODERS: dict[str, tuple[str, ...]] = {
    "glove-cnn": (),
    "glove-lstm": (),
    "static": (),
    "transformer": (
        "training.episodes_per_epoch=120",
        "training.validation_episodes=200",
        "training.max_epochs=3",
        "training.learning_rate=0.00003",
        "encoder.frozen_layers=4",
    ),
}


#: the paper's transformers, if their weights are given: used directly as in the paper, and rescaled like ours. As in
#: ours, the last three layers are trained.
TRANSFORMERS = ("bert", "distilbert")
_TRANSFORMER_SETTINGS = (*ENCODERS["transformer"][:-1], "encoder.frozen_layers=-3")
_FORMS: dict[str, tuple[str, ...]] = {"-direct": ("encoder.rescale=false",), "": ()}


@dataclass(frozen=True)
class Run:
    """One training and its evaluation on the test split."""

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
    def encoder_kind(self) -> str:
        """The encoder's name in ``awatt encoders``: BERT and DistilBERT are transformers."""
        return "transformer" if self.encoder.removesuffix("-direct") in TRANSFORMERS else self.encoder

    @property
    def name(self) -> str:
        """Path of the result within the results folder, without suffix."""
        parts = [self.method]
        if self.encoder != "glove-cnn":
            parts.append(self.encoder)
        if self.variant != "full":
            parts.append(self.variant.replace("w/o ", "wo-").replace("w/ ", "").replace(" ", "-"))
        return f"{self.dataset}/{self.n_way}x{self.n_shot}/{'+'.join(parts)}-seed{self.seed}"


@dataclass(frozen=True)
class Choice:
    """The requested part of an item; an empty field means all."""

    seeds: tuple[int, ...] = SEEDS
    methods: tuple[str, ...] = ()
    settings: tuple[tuple[int, int], ...] = ()
    datasets: tuple[str, ...] = ()
    #: folders of BERT and DistilBERT, as pairs of name and folder
    encoders: tuple[tuple[str, str], ...] = ()

    @classmethod
    def parse(
        cls,
        seeds: str,
        methods: str = "",
        settings: str = "",
        datasets: str = "",
        encoders: Sequence[str] = (),
    ) -> Choice:
        """From the command line: numbers and settings separated by commas or blanks, names separated by commas.

        ``encoders`` are ``bert=FOLDER`` or ``distilbert=FOLDER``.
        """
        numbers = seeds.replace(",", " ").split()
        for seed in numbers:
            if not seed.isdecimal():
                raise AwattError(f"--seeds needs whole numbers, found {seed!r}.")
        if not numbers:
            raise AwattError("--seeds needs at least one number, such as --seeds 5.")
        pairs = tuple(_setting(each) for each in settings.replace(",", " ").split())
        folders = dict(map(_encoder_folder, encoders))
        return cls(tuple(map(int, numbers)), _names(methods), pairs, _names(datasets), tuple(folders.items()))


def _names(text: str) -> tuple[str, ...]:
    return tuple(filter(None, (name.strip() for name in text.split(","))))


def _encoder_folder(text: str) -> tuple[str, str]:
    name, equals, folder = text.partition("=")
    if not equals or name not in TRANSFORMERS:
        needed = " or ".join(f"{known}=FOLDER" for known in TRANSFORMERS)
        raise AwattError(f"--encoder needs {needed}, found {text!r}.")
    if not Path(folder).is_dir():
        raise AwattError(f"--encoder {name}: {folder!r} is not a folder. It needs a Hugging Face model's files.")
    return name, str(Path(folder).resolve())


def _setting(text: str) -> tuple[int, int]:
    n_way, cross, n_shot = text.partition("x")
    if not (cross and n_way.isdecimal() and n_shot.isdecimal()):
        raise AwattError(f"--settings needs pairs such as 5x5, found {text!r}.")
    return int(n_way), int(n_shot)


def main_table(dataset: str, choice: Choice) -> list[Run]:
    """Tables 2 to 4: seven methods in four settings, Proto-AWATT with its dynamic threshold; then our own rows."""
    _chosen("datasets", choice.datasets, (dataset,))
    methods = _chosen("methods", choice.methods, (*MAIN[dataset], *OURS, STATIC, BUNDLED))
    settings = _chosen("settings", choice.settings, SETTINGS)
    return [
        _main_run(dataset, n_way, n_shot, method, seed)
        for n_way, n_shot in settings
        for method in methods
        for seed in choice.seeds
    ]


def _main_run(dataset: str, n_way: int, n_shot: int, method: str, seed: int) -> Run:
    if method == STATIC:
        return Run(dataset, n_way, n_shot, "proto-awatt", seed, encoder="static", threshold="policy")
    threshold = "policy" if method == "proto-awatt" else "static"
    settings = _settings_of_its_paper(method, n_shot)
    return Run(dataset, n_way, n_shot, method, seed, threshold=threshold, settings=settings)


def _settings_of_its_paper(method: str, n_shot: int) -> tuple[str, ...]:
    """Settings other than the defaults: Proto-HATT's kernel spans all examples, Relation uses its own loss."""
    if method == "proto-hatt" and n_shot != 5:  # the default
        return (f"model.kernel={n_shot}",)
    return ("training.loss=own",) if method == "relation" else ()


def ablation_table(datasets: tuple[str, ...], choice: Choice) -> list[Run]:
    """Table 5 and its extension in the appendix: Proto-AWATT at 10-way 5-shot without one of its parts."""
    _chosen("settings", choice.settings, ((10, 5),))
    variants = _chosen("methods", choice.methods, tuple(ABLATIONS))
    return [
        Run(dataset, 10, 5, "proto-awatt", seed, threshold=VARIANTS[name][0], settings=VARIANTS[name][1], variant=name)
        for dataset in _chosen("datasets", choice.datasets, datasets)
        for name in variants
        for seed in choice.seeds
    ]


def encoder_table(choice: Choice) -> list[Run]:
    """Table 6: Proto-HATT and Proto-AWATT with each encoder, on FewAsp at 10-way 5-shot.

    With a transformer, Proto-AWATT keeps the static threshold: a second stage would double hours of training, and its
    learning rate suits small networks only.
    """
    _chosen("datasets", choice.datasets, ("FewAsp",))
    _chosen("settings", choice.settings, ((10, 5),))
    settings = dict(ENCODERS)
    for name, folder in choice.encoders:
        for form, more in _FORMS.items():
            # As TOML: a folder's name may hold what a plain string may not.
            settings[name + form] = (f"encoder.name={json.dumps(folder)}", *_TRANSFORMER_SETTINGS, *more)
    runs = [
        Run("FewAsp", 10, 5, method, seed, name, settings=given)
        for name, given in settings.items()
        for method in _chosen("methods", choice.methods, ("proto-hatt", "proto-awatt"))
        for seed in choice.seeds
    ]
    return [_with_threshold(run, dynamic=run.encoder_kind != "transformer") for run in runs]


def overview(choice: Choice) -> list[Run]:
    """5-way 5-shot on FewAsp(single): seven methods, then Proto-AWATT with each encoder and the static threshold."""
    dataset = "FewAsp(single)"
    _chosen("datasets", choice.datasets, (dataset,))
    setting = _chosen("settings", choice.settings, ((5, 5),))
    names = _chosen("methods", choice.methods, (*MAIN[dataset], *OURS, *ENCODERS))
    methods = tuple(name for name in names if name not in ENCODERS)
    runs = main_table(dataset, replace(choice, methods=methods, settings=setting)) if methods else []
    return runs + [
        _with_threshold(Run(dataset, 5, 5, "proto-awatt", seed, name, settings=ENCODERS[name]), dynamic=False)
        for name in names
        if name in ENCODERS
        for seed in choice.seeds
    ]


def _with_threshold(run: Run, dynamic: bool) -> Run:
    """Proto-AWATT with or without its dynamic threshold; other methods unchanged."""
    if run.method != "proto-awatt":
        return run
    return replace(run, threshold="policy") if dynamic else replace(run, variant="w/o DT")


def threshold_curves(choice: Choice) -> list[Run]:
    """The runs whose macro-F1 is measured at many static thresholds: FewAsp, 10-way 5-shot."""
    return [
        Run("FewAsp", 10, 5, method, seed, variant=variant)
        for method, variant in (("proto-hatt", "full"), ("proto-awatt", "w/o DT"))
        for seed in choice.seeds
    ]


def threshold_figure(choice: Choice) -> list[Run]:
    """The curves, and the results of the dynamic threshold and kernel regression in Table 5."""
    _check_whole(choice)
    dynamic = replace(choice, methods=("full", "w/o DT w/ KR"))
    return threshold_curves(choice) + ablation_table(("FewAsp",), dynamic)


def representations(choice: Choice) -> list[Run]:
    """The runs whose prototypes and queries are plotted: FewAsp(multi), 5-way 5-shot, the first seed only."""
    wanted = Choice(SEEDS[:1], ("proto-hatt", "proto-awatt"), ((5, 5),))
    return main_table("FewAsp(multi)", wanted)


def representations_figure(choice: Choice) -> list[Run]:
    """The same runs; raises an error if their seed is not chosen."""
    _check_whole(choice)
    if SEEDS[0] not in choice.seeds:
        raise AwattError(f"--seeds: this figure shows seed {SEEDS[0]} only. Add {SEEDS[0]}, or leave --seeds out.")
    return representations(choice)


def repeats_figure(choice: Choice) -> list[Run]:
    """Proto-AWATT on FewAsp at 5-way 5-shot with different e_M; the default e_M is the run of Table 4."""
    _check_whole(choice)
    default = main_table("FewAsp", replace(choice, methods=("proto-awatt",), settings=((5, 5),)))
    return default + [
        replace(run, settings=(f"model.e_m={repeats}",), variant=f"e_M {repeats}")
        for repeats in REPEATS[1:]
        for run in default
    ]


def _check_whole(choice: Choice) -> None:
    """Raise an error if the choice has more than seeds: only these can be chosen for a figure."""
    for what in ("methods", "settings", "datasets"):
        if getattr(choice, what):
            raise AwattError(f"--{what} is for tables; a figure always shows all {what}. Leave it out.")


def _chosen(what: str, asked: tuple[T, ...], known: tuple[T, ...]) -> tuple[T, ...]:
    unknown = [item for item in asked if item not in known]
    if unknown:
        raise AwattError(
            f"--{what}: this item has no '{_as_typed(unknown[0])}'. Choose from: {', '.join(map(_as_typed, known))}."
        )
    return asked or known


def _as_typed(item: object) -> str:
    """As on the command line: a setting is 5x5."""
    return "x".join(map(str, item)) if isinstance(item, tuple) else str(item)


@dataclass(frozen=True)
class Item:
    """A table or figure that can be reproduced."""

    title: str
    runs: Callable[[Choice], list[Run]]


TABLES: dict[str, Item] = {
    "table-statistics": Item("Table 1: the three datasets", lambda choice: []),
    "table-single": Item(
        "Table 2: seven methods on FewAsp(single)", lambda choice: main_table("FewAsp(single)", choice)
    ),
    "table-multi": Item("Table 3: seven methods on FewAsp(multi)", lambda choice: main_table("FewAsp(multi)", choice)),
    "table-full": Item("Table 4: seven methods on FewAsp", lambda choice: main_table("FewAsp", choice)),
    "table-ablation": Item("Table 5: ablations on FewAsp", lambda choice: ablation_table(("FewAsp",), choice)),
    "table-ablation-all": Item(
        "Appendix: ablations on the three datasets", lambda choice: ablation_table(tuple(MAIN), choice)
    ),
    "table-encoders": Item("Table 6: encoders, on FewAsp at 10-way 5-shot", encoder_table),
    "overview-single": Item("Seven methods and four encoders on FewAsp(single), 5-way 5-shot", overview),
}

FIGURES: dict[str, Item] = {
    "figure-threshold": Item("Macro-F1 at different thresholds, FewAsp, 10-way 5-shot", threshold_figure),
    "figure-prototypes": Item("Prototypes of 5 classes in 50 episodes of FewAsp(multi), t-SNE", representations_figure),
    "figure-queries": Item("Queries of 5 classes in 20 episodes of FewAsp(multi), t-SNE", representations_figure),
    "figure-repeats": Item("Appendix: effect of e_M, FewAsp, 5-way 5-shot", repeats_figure),
}

ITEMS: dict[str, Item] = TABLES | FIGURES

#: figures that need more than the test results of these runs
_MEASURED = {
    "figure-threshold": threshold_curves,
    "figure-prototypes": representations,
    "figure-queries": representations,
}


def figures_of(run: Run) -> tuple[str, ...]:
    """Figures that need data from this run's model, measured right after training because the model is not kept."""
    return tuple(name for name, runs in _MEASURED.items() if run in runs(Choice((run.seed,))))
