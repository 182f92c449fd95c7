"""Tables from result files: our numbers beside the published ones."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from awatt.metrics import compare_paired, mean_ci95
from awatt.reproduce import published
from awatt.reproduce.formats import Measured, Table
from awatt.reproduce.results import load_result, train_source
from awatt.reproduce.statistics import statistics_table
from awatt.reproduce.suites import BUNDLED, SEEDS, STATIC, TABLES, TRANSFORMERS, Choice, Run

HEADER = ("setting", "method", "AUC", "quoted AUC", "Δ AUC", "F1", "quoted F1", "Δ F1", "seeds", "± over")
NOTES = (
    "Columns named 'quoted' are the paper's numbers (Hu et al. 2021). Δ is ours minus quoted.",
    "± is the half-width of the 95 % confidence interval of the mean: over the seeds or, with a single seed, over its "
    "600 test episodes, which does not include the variation between training runs.",
    "† and ‡ mark results significantly above Prototypical Network and Proto-HATT: p < 0.05 in a two-sided paired "
    "t-test over the seeds that both have, at least two.",
)
#: tables of one model's variants
VARIANTS_OF_ONE = ("table-ablation", "table-ablation-all", "table-encoders")
#: note of tables with our own rows
OWN_ROWS = (
    "The bundled model is trained on the train splits of all three datasets, and its examples carry all their labels: "
    "one that mentions two aspects of the episode counts for both. In the other rows it counts for one. Proto-AWATT "
    "(potion-base-8M) has static token vectors, too: potion's, which are one of three parts of the bundled model's.",
)
#: note of tables with the baselines
BASELINE_NOTE = (
    "All methods share the encoder and are trained with the loss of Eq. 8, except relation: squared error of its "
    "sigmoid scores against 0 and 1. matching does not use full context embeddings. relation-softmax and graph-shared "
    "are our own variants, not in the paper."
)

BUNDLED_ROW = "bundled (all labels of the examples)"
#: encoder -> name in Table 6; encoders of the paper have the paper's names
ENCODER_NAMES = {
    "glove-cnn": "GloVe + CNN",
    "glove-lstm": "GloVe + LSTM",
    "static": "potion-base-8M, rescaled",
    "transformer": "all-MiniLM-L6-v2, rescaled",
    "bert-direct": "BERT",
    "bert": "BERT, rescaled",
    "distilbert-direct": "DistilBERT",
    "distilbert": "DistilBERT, rescaled",
}
#: our own rows in the README
HEADLINE_NAMES = {STATIC: "proto-awatt on potion's vectors", BUNDLED: "bundled model"}
#: measures shown: key in a result, factor, digits
_MEASURES = (("auc", 1, 4), ("macro_f1", 100, 2))
_BASELINES = {"†": "prototypical", "‡": "proto-hatt"}

Results = Sequence[dict[str, Any]]


def choice_of_all(results: Path) -> Choice:
    """The choice that includes every result in the folder: the default seeds, then all others found there."""
    found = (path.stem.rpartition("-seed")[2] for path in results.glob("*/*x*/*-seed*.json"))
    others = {int(seed) for seed in found if seed.isdecimal()}.difference(SEEDS)
    return Choice((*SEEDS, *sorted(others)))


def table(name: str, results: Path, choice: Choice | None = None) -> Table:
    """An item's table, with a row for everything that has a result; by default of every seed."""
    item = TABLES[name]
    if name == "table-statistics":
        return statistics_table(item.title, results)
    choice = choice or choice_of_all(results)
    if name == "table-encoders" and not choice.encoders:  # existing results need no weights
        choice = replace(choice, encoders=tuple((encoder, "") for encoder in TRANSFORMERS))
    found = rows(item.runs(choice), results, every_encoder=name == "table-encoders", same_seeds=name in VARIANTS_OF_ONE)
    if found and name == "table-encoders":
        found += _quoted_encoders({str(row[1]) for row in found})
    notes: tuple[str, ...] = (
        (*NOTES, BASELINE_NOTE) if any(run.method == "relation" for run in item.runs(Choice())) else NOTES
    )
    if any(row[1] == BUNDLED_ROW for row in found):
        notes += OWN_ROWS
    return Table(item.title, HEADER, tuple(found), notes)


def rows(
    runs: Iterable[Run], results: Path, every_encoder: bool = False, same_seeds: bool = False
) -> list[tuple[str | Measured, ...]]:
    """One row per (setting, method, variant) with a result.

    ``every_encoder`` also names the default, GloVe + CNN. With ``same_seeds`` all rows of a dataset have the seeds that
    they have in common, if there are any.
    """
    groups: dict[Run, dict[int, dict[str, Any]]] = {}
    common: dict[str, set[int]] = {}
    for run in runs:
        result = load_result(results, run)
        if result is not None:
            groups.setdefault(replace(run, seed=0), {})[run.seed] = result
    for run, found in groups.items():
        common[run.dataset] = common.get(run.dataset, found.keys()) & found.keys()
    shown: list[tuple[str | Measured, ...]] = []
    for run, found in groups.items():
        seeds = common[run.dataset] if same_seeds and common[run.dataset] else found.keys()
        kept = [result for seed, result in found.items() if seed in seeds]
        shown.append((*_name(run, kept, every_encoder), *_numbers(run, kept, results)))
    return shown


def _name(run: Run, found: Results, every_encoder: bool) -> tuple[str, str]:
    """Setting and method; train split, variant and encoder are named if they are not the default."""
    setting, source = f"{run.dataset} {run.n_way}-way {run.n_shot}-shot", train_source(found[0])
    if run.method == BUNDLED:
        return setting, BUNDLED_ROW
    name = run.method if run.variant == "full" else f"{run.method} {run.variant}"
    return (
        setting if source == "official" else f"{setting} ({source} train)",
        f"{name} ({ENCODER_NAMES[run.encoder]})" if every_encoder or run.encoder != "glove-cnn" else name,
    )


def _numbers(run: Run, found: Results, results: Path) -> tuple[str | Measured, ...]:
    quoted = quote(run)
    cells: list[str | Measured] = []
    for column, (measure, factor, digits) in enumerate(_MEASURES):
        ours = mean_of(found, measure, factor, digits)
        cells.append(replace(ours, marks=_marks(run, found, measure, results)))
        if quoted:
            cells += [f"{quoted[column]:.{digits}f}", f"{ours.mean - quoted[column]:+.{digits}f}"]
        else:
            cells += ["", ""]
    seeds = " ".join(str(result["run"]["seed"]) for result in found)
    return (*cells, seeds, "seeds" if len(found) > 1 else "episodes")


def mean_of(found: Results, measure: str, factor: float, digits: int) -> Measured:
    """Mean and confidence interval over the seeds; with a single seed, the interval over its test episodes."""
    interval = mean_ci95([factor * result["test"][measure] for result in found])
    half_width = interval.half_width
    if len(found) == 1:
        half_width = factor * found[0]["test"][f"{measure}_ci95"]
    return Measured(interval.mean, None if math.isnan(half_width) else half_width, digits)


def quote(run: Run) -> published.Quoted | None:
    """The paper's AUC and F1 for a run; None if it reports none."""
    if run.encoder != "glove-cnn":
        named = published.ENCODERS.get(ENCODER_NAMES[run.encoder].removesuffix(", rescaled"))
        return named[run.method] if named and (run.dataset, run.n_way, run.n_shot) == ("FewAsp", 10, 5) else None
    if run.variant != "full":
        return published.ABLATIONS[run.variant][run.dataset] if (run.n_way, run.n_shot) == (10, 5) else None
    return published.MAIN[run.dataset].get(run.method, {}).get((run.n_way, run.n_shot))


def _marks(run: Run, found: Results, measure: str, results: Path) -> str:
    """The paper's daggers: Proto-AWATT is above a baseline with the same setting, encoder and seeds."""
    if run.method != "proto-awatt" or run.variant != "full":
        return ""
    marks = ""
    for mark, method in _BASELINES.items():
        pairs = []
        for result in found:
            baseline = Run(run.dataset, run.n_way, run.n_shot, method, result["run"]["seed"], run.encoder)
            other = load_result(results, baseline)
            if other is not None:
                pairs.append((result["test"][measure], other["test"][measure]))
        if len(pairs) >= 2:
            compared = compare_paired(*zip(*pairs, strict=True))
            if compared.difference > 0 and compared.p_value < 0.05:
                marks += mark
    return marks


def _quoted_encoders(shown: set[str]) -> list[tuple[str | Measured, ...]]:
    """The rows of Table 6 without a result of ours: only the paper's numbers."""
    return [
        ("FewAsp 10-way 5-shot", f"{method} ({encoder})", "", f"{auc:.4f}", "", "", f"{f1:.2f}", "", "", "quoted only")
        for encoder, methods in published.ENCODERS.items()
        if ENCODER_NAMES["glove-cnn"] != encoder != ENCODER_NAMES["glove-lstm"]
        if not any(f"({encoder})" in row for row in shown)
        for method, (auc, f1) in methods.items()
    ]


def headline(results: Path) -> Table:
    """For the README: macro-F1 on three datasets in four settings, followed by the quoted number if there is one."""
    settings = tuple(f"{n_way}-way {n_shot}-shot" for n_way, n_shot in published.SETTINGS)
    found: list[tuple[str, ...]] = []
    everything = choice_of_all(results)
    for item in ("table-single", "table-multi", "table-full"):
        for method in ("prototypical", "proto-hatt", "proto-awatt", STATIC, BUNDLED):
            runs = TABLES[item].runs(replace(everything, methods=(method,)))
            cells = [
                _headline_cell([run for run in runs if (run.n_way, run.n_shot) == s], results)
                for s in published.SETTINGS
            ]
            if any(results_of for _, results_of in cells):
                source = next((train_source(done[0]) for _, done in cells if done), "official")
                dataset = runs[0].dataset + ("" if source in ("official", "unknown") else f" ({source} train)")
                found.append((dataset, HEADLINE_NAMES.get(method, method), *(cell for cell, _ in cells)))
    return Table("Macro-F1", ("dataset", "method", *settings), tuple(found))


def _headline_cell(runs: Sequence[Run], results: Path) -> tuple[str, Results]:
    done = [result for run in runs if (result := load_result(results, run)) is not None]
    mean = f"{mean_of(done, 'macro_f1', 100, 2).mean:.2f}" if done else "–"
    quoted = quote(runs[0])
    return (f"{mean} *{quoted[1]:.2f}*" if quoted else mean), done
