"""What a departure from the paper changes: one at a time is undone, everything else stays.

    python benchmarks/departures.py run --data datasets     # skips what there is; writes one small JSON file per run
    python benchmarks/departures.py table                   # the table from the JSON files

Proto-AWATT on FewAsp, 10-way 5-shot, where the whole model is the run of Table 5, and a few baselines. Most departures
are no settings, because nobody should choose them: each is a patch of the code for one run. Nothing is chosen by these
numbers.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any
from unittest.mock import patch

from awatt.reproduce.results import load_result
from awatt.reproduce.runner import run_one
from awatt.reproduce.suites import Choice, Run, ablation_table, main_table

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "results/attempts/departures"
SEEDS = (5, 10)


@dataclass(frozen=True)
class Departure:
    """One of them: the run of a table that it belongs to, by its seed, and the patch or the settings that undo it."""

    compared: Callable[[int], Run]
    undo: Callable[[], AbstractContextManager[Any]] = nullcontext
    settings: tuple[str, ...] = ()

    def run(self, name: str, seed: int) -> Run:
        """Named after the departure, so that its result stands beside the others."""
        run = self.compared(seed)
        return replace(run, variant=name, settings=(*run.settings, *self.settings))


def variant(name: str) -> Callable[[int], Run]:
    """Proto-AWATT of Table 5, on FewAsp at 10-way 5-shot."""
    return lambda seed: ablation_table(("FewAsp",), Choice((seed,), (name,)))[0]


def method(name: str, dataset: str, n_way: int) -> Callable[[int], Run]:
    """A method of Tables 2 to 4, at 5-shot."""
    return lambda seed: main_table(dataset, Choice((seed,), (name,), ((n_way, 5),)))[0]


def adam_for_words() -> AbstractContextManager[Any]:
    """Adam moves every word vector in every step by its moments; SparseAdam those of the step's words only."""
    import torch

    class DenseAdam(torch.optim.Adam):
        def step(self, closure: Any = None) -> Any:
            for group in self.param_groups:
                for value in group["params"]:
                    if value.grad is not None and value.grad.is_sparse:
                        value.grad = value.grad.to_dense()
            return super().step(closure)

    return patch("torch.optim.SparseAdam", DenseAdam)


def second_stage_by_auc() -> AbstractContextManager[Any]:
    """The best epoch of stage two is the one with the best AUC, too."""
    from awatt.research import training

    stage = training.Stage
    return patch.object(training, "Stage", lambda *values: stage(*values[:-1], "auc"))


def softplus_alone() -> AbstractContextManager[Any]:
    """Beta's parameters without the 1 that is added to them."""
    from awatt.thresholds.policy import Policy

    found = Policy.parameters_of

    def parameters(self: Policy, scored: Any) -> Any:
        return tuple((value - 1).clamp(min=1e-4) for value in found(self, scored))

    return patch.object(Policy, "parameters_of", parameters)


def policy_without_relu() -> AbstractContextManager[Any]:
    """Linear layers and nothing between them."""
    return patch("awatt.thresholds.policy.torch.relu", lambda values: values)


def from_normal(module: str, name: str) -> Callable[[], AbstractContextManager[Any]]:
    """All parameters of a network drawn from N(0, 0.1), as those of the encoder are."""

    def undo() -> AbstractContextManager[Any]:
        from torch import nn

        network = getattr(import_module(module), name)
        made = network.__init__

        def make(self: nn.Module, *values: Any) -> None:
            made(self, *values)
            for value in self.parameters():
                nn.init.normal_(value, std=0.1)

        return patch.object(network, "__init__", make)

    return undo


def summed_loss() -> AbstractContextManager[Any]:
    """Eq. 8 as a sum over the queries."""
    from awatt.research import training

    mean = training.squared_error
    return patch.object(training, "squared_error", lambda scored: mean(scored) * scored.targets[..., 0].numel())


def sentences_twice() -> AbstractContextManager[Any]:
    """An example of one aspect may be an example or a query of another one, in all three splits."""
    import numpy as np

    from awatt.data import sampler
    from awatt.data.sampler import EpisodeSampler

    def draw(self: EpisodeSampler, streams: Any, aspects: Any) -> Any:
        each, slots = self.shape.n_shot + self.shape.n_query, []
        for slot in range(aspects.shape[1]):
            candidates = self._members[aspects[:, slot]]
            keys = sampler._keys(streams, sampler._SLOT + slot, candidates.shape[1])
            keys[candidates < 0] = sampler._LAST
            slots.append(np.take_along_axis(candidates, sampler._lowest(keys, each), axis=1))
        return np.stack(slots, 1)

    return patch.object(EpisodeSampler, "_draw_members", draw)


def maximum_of_words() -> AbstractContextManager[Any]:
    """Without attention, the maximum over the words in the place of their mean."""
    from awatt.encoders.base import Encoded
    from awatt.models.base import sentence_vectors

    mean = Encoded.mean
    return patch.object(Encoded, "mean", lambda self, over=0: mean(self, over) if over else sentence_vectors(self))


FULL_RATE = ("training.table_rate=1.0",)
DEPARTURES = {
    "Adam for the word vectors": Departure(variant("full"), adam_for_words),
    "stage two by AUC": Departure(variant("full"), second_stage_by_auc),
    "softplus alone": Departure(variant("full"), softplus_alone),
    "policy without ReLU": Departure(variant("full"), policy_without_relu),
    "policy from a normal distribution": Departure(variant("full"), from_normal("awatt.thresholds.policy", "Policy")),
    "sentences twice": Departure(variant("full"), sentences_twice),
    "w/o SA maximum": Departure(variant("w/o SA"), maximum_of_words),
    "w/o QA maximum": Departure(variant("w/o QA"), maximum_of_words),
    "sum over the queries": Departure(variant("full"), summed_loss),
    "relation from a normal distribution": Departure(
        method("relation", "FewAsp", 10), from_normal("awatt.models.relation", "Relation")
    ),
    "proto-hatt from a normal distribution": Departure(
        method("proto-hatt", "FewAsp", 10), from_normal("awatt.models.proto_hatt", "ProtoHatt")
    ),
    "full rate of the word vectors": Departure(variant("full"), settings=FULL_RATE),
    "full rate, proto-awatt, 5-way": Departure(method("proto-awatt", "FewAsp", 5), settings=FULL_RATE),
    "full rate, proto-awatt, FewAsp(multi)": Departure(method("proto-awatt", "FewAsp(multi)", 10), settings=FULL_RATE),
    "full rate, prototypical": Departure(method("prototypical", "FewAsp", 10), settings=FULL_RATE),
    "full rate, prototypical, 5-way": Departure(method("prototypical", "FewAsp", 5), settings=FULL_RATE),
    "full rate, proto-hatt": Departure(method("proto-hatt", "FewAsp", 10), settings=FULL_RATE),
    "loss of Eq. 8, relation, FewAsp(multi), 5-way": Departure(
        method("relation", "FewAsp(multi)", 5), settings=("training.loss=squared-error",)
    ),
}


def table() -> Iterator[str]:
    """Validation AUC / macro-F1 and test macro-F1, as here and undone, mean over the same seeds."""
    yield "| departure | seeds | as here | undone |"
    yield "|---|---|---|---|"
    for name, departure in DEPARTURES.items():
        pairs = [
            (load_result(ROOT / "results", departure.compared(seed)), load_result(RESULTS, departure.run(name, seed)))
            for seed in SEEDS
        ]
        done = [(ours, other) for ours, other in pairs if ours is not None and other is not None]
        if done:
            here, undone = map(_measures, zip(*done, strict=True))
            yield f"| {name} | {len(done)} | {here} | {undone} |"


def _measures(results: Iterable[dict[str, Any]]) -> str:
    values = [
        (each["validation"]["auc"], 100 * each["validation"]["macro_f1"], 100 * each["test"]["macro_f1"])
        for each in results
    ]
    auc, validation, test = map(statistics.fmean, zip(*values, strict=True))
    return f"{auc:.4f} / {validation:.2f}, {test:.2f}"


def main() -> None:
    """Run what is missing, or print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["run", "table"])
    parser.add_argument("--data", type=Path, default=ROOT / "datasets")
    parser.add_argument("--runs", type=Path, default=ROOT / "runs/departures", help="folder of unfinished runs")
    options = parser.parse_args()
    if options.what == "run":
        for seed in SEEDS:
            for name, departure in DEPARTURES.items():
                run = departure.run(name, seed)
                if load_result(RESULTS, run) is None:
                    with departure.undo():
                        found = run_one(run, options.data, RESULTS, options.runs)
                    print(name, seed, found["test"]["macro_f1"], flush=True)
    print("\n".join(table()))


if __name__ == "__main__":
    main()
