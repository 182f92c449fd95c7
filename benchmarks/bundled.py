"""All numbers of the bundled model, in results/bundled/.

python benchmarks/bundled.py test --data datasets             test splits: 12 settings, off-topic queries, calibration
python benchmarks/bundled.py mams                             another website, coarse categories, default settings
python benchmarks/bundled.py ablation --data datasets         retrained without each group of features (validation)
python benchmarks/bundled.py speed                            sentences per second, fitting, loading
python benchmarks/bundled.py tables                           README.md and its figure, from the numbers above
"""

from __future__ import annotations

import argparse
import json
import math
import time
import xml.etree.ElementTree as ET
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from awatt import AspectDetector
from awatt.aspect_model.context import Memory
from awatt.aspect_model.model import AspectModel, shares
from awatt.data.corpus import load_corpus, load_sample
from awatt.data.sampler import EpisodeShape
from awatt.files import shared_folder, write_text
from awatt.metrics import macro_f1, mean_ci95, reliability, roc_auc
from awatt.reproduce.published import MAIN
from awatt.research.evaluation import evaluate, measure
from awatt.thresholds.default import default_threshold

DATASETS = ("FewAsp(single)", "FewAsp(multi)", "FewAsp")
SETTINGS = ((5, 5), (5, 10), (10, 5), (10, 10))
#: row of the ablation -> features left out together
ABLATIONS = {
    "all": (),
    "without attention": ("attended", "typical", "word", "lead", "positives", "negatives"),
    "without the whole sentence": ("whole",),
    "without single words": ("word",),
    "without nearest examples": ("nearest", "nearest_lead"),
    "without the lead over other aspects": ("lead", "nearest_lead"),
    "without left-out examples": ("typical", "positives", "negatives"),
    "without sizes": ("n_positives", "n_aspects"),
    "without names": ("name", "name_fits"),
}


def test(data: Path, out: Path, episodes: int, folder: Path | None) -> None:
    """Evaluate on the official test splits, seed 5: with the model's threshold, and with the paper's static one."""
    model = AspectModel.load(folder)
    if isinstance(model.vectors.context, Memory):
        model.vectors.context.n_tokens = math.inf  # a sentence is in many episodes
    for dataset in DATASETS:
        corpus = load_corpus(data / dataset, "test")
        for n_way, n_shot in SETTINGS:
            for none_rate in (0.0, 0.3, 0.5) if dataset == "FewAsp" and n_shot == 5 else (0.0,):
                path = out / f"{dataset} {n_way}x{n_shot} none {none_rate}.json"
                if path.exists():
                    continue
                shape = EpisodeShape(n_way, n_shot, 5, none_rate)
                predicted = list(model.predict_episodes(corpus, shape, episodes, 5))
                scores = np.concatenate([episode.evidence for episode in predicted])
                targets = np.concatenate([episode.targets for episode in predicted])
                static = shares(scores) >= default_threshold(n_way)
                found = {
                    "dataset": dataset,
                    "n_way": n_way,
                    "n_shot": n_shot,
                    "none_rate": none_rate,
                    "episodes": episodes,
                    "seed": 5,
                    "threshold": model.threshold,
                    **measure(predicted),
                    "static_macro_f1": float(macro_f1(static, targets).mean()),
                    "reliability": reliability(scores, targets),
                }
                write_text(path, json.dumps(found, indent=1) + "\n")
                print(dataset, n_way, n_shot, none_rate, round(100 * found["macro_f1"], 2), flush=True)


def read_mams(folder: Path) -> tuple[list[str], list[list[str]]]:
    """All sentences and their categories, except "miscellaneous"."""
    texts, labels = [], []
    for split in ("train", "val", "test"):
        for sentence in ET.parse(folder / f"{split}.xml").getroot():
            categories = {node.get("category") for node in sentence.iter("aspectCategory")} - {"miscellaneous"}
            texts.append(sentence.findtext("text"))
            labels.append(sorted(categories))
    return texts, labels


def mams(folder: Path, out: Path, model: Path | None, draws: int = 5) -> None:
    """Draw 5 (10) examples per category from all splits, test on 2,000 other sentences; five draws."""
    texts, labels = read_mams(folder)
    names = sorted({name for row in labels for name in row})
    truth = np.array([[name in row for name in names] for row in labels])
    vectors = AspectModel.load(model)
    rows = []
    for n_examples in (5, 10):
        f1, auc, baseline = [], [], []
        for draw in range(draws):
            rng = np.random.default_rng(draw)
            picked = [rng.choice(np.flatnonzero(column), n_examples, replace=False) for column in truth.T]
            support = np.unique(np.concatenate(picked))
            rest = np.setdiff1d(np.arange(len(texts)), support)
            tested = rng.choice(rest, min(2000, len(rest)), replace=False)
            detector = AspectDetector(model=model, classes=names)
            detector.fit([texts[number] for number in support], [labels[number] for number in support])
            queries = [texts[number] for number in tested]
            predicted = np.array([[name in row for name in names] for row in detector.predict(queries)])
            f1.append(float(macro_f1(predicted[None], truth[tested][None])[0]))
            auc.append(float(roc_auc(detector.predict_proba(queries)[None], truth[tested][None])[0]))
            known, unknown = (
                vectors.mean_vectors(vectors.tokenize([texts[number] for number in part])) for part in (support, tested)
            )
            known = np.concatenate([known, vectors.vectors.name_vectors(names)])  # the detector knows the names, too
            known_truth = np.concatenate([truth[support], np.eye(len(names), dtype=bool)])
            by_baseline = logistic_regression(known, known_truth, unknown)
            baseline.append(float(macro_f1(by_baseline[None], truth[tested][None])[0]))
        rows.append({"examples": n_examples, "macro_f1": f1, "auc": auc, "logistic_regression": baseline})
        print({name: round(100 * float(np.mean(value)), 2) for name, value in rows[-1].items() if name != "examples"})
    write_text(out / "mams.json", json.dumps(rows, indent=1) + "\n")


def logistic_regression(
    known: npt.NDArray[np.float32], truth: npt.NDArray[np.bool_], unknown: npt.NDArray[np.float32]
) -> npt.NDArray[np.bool_]:
    """Baseline: a class-balanced logistic regression per category on the same mean vectors."""
    from sklearn.linear_model import LogisticRegression

    fitted = (LogisticRegression(class_weight="balanced", max_iter=1000).fit(known, column) for column in truth.T)
    return np.stack([model.predict(unknown) for model in fitted], 1)


def ablation(data: Path, out: Path) -> None:
    """Retrain without some of the features; evaluate on the validation categories."""
    from awatt.aspect_model.train import VALIDATION, train
    from awatt.aspect_model.train_networks import TrainDetectorConfig

    for label, without in ABLATIONS.items():
        path = out / f"ablation {label}.json"
        if path.exists():
            continue
        model = train(data, TrainDetectorConfig(tasks=8, plain_tasks=800, without=without))
        found: dict[str, object] = {"without": without, "threshold": model.threshold}
        for shape in VALIDATION:
            parts = [evaluate(model, data / name, "val", 100, seed=7, **asdict(shape)) for name in DATASETS]
            mean = np.mean([part["macro_f1"] for part in parts])
            found[f"{shape.n_way}x{shape.n_shot} none {shape.none_rate}"] = float(mean)
        write_text(path, json.dumps(found, indent=1) + "\n")
        print(label, found, flush=True)


def speed(out: Path, model: Path | None) -> None:
    """Time loading, fitting and detection. For one core set OMP_NUM_THREADS=1 and TOKENIZERS_PARALLELISM=false."""
    start = time.perf_counter()
    loaded = AspectModel.load(model)
    found = {"load_seconds": time.perf_counter() - start}
    corpus = load_sample()
    wanted = [np.flatnonzero(column)[:5] for column in corpus.mentions.T][:10]
    support = np.unique(np.concatenate(wanted))
    labels = corpus.mentions[support][:, :10]
    examples = loaded.tokenize([corpus.sentences[number] for number in support])
    names = corpus.aspects[:10]
    fitted = loaded.fit(examples, labels, names)
    seconds = []
    for _ in range(10):
        start = time.perf_counter()
        fitted = loaded.fit(examples, labels, names)
        seconds.append(time.perf_counter() - start)
    found["adapt_10x5_seconds"] = min(seconds)
    texts = list(corpus.sentences) * 30
    start = time.perf_counter()
    for first in range(0, len(texts), 256):
        loaded.probabilities(fitted, loaded.tokenize(texts[first : first + 256]))
    found["sentences_per_second"] = len(texts) / (time.perf_counter() - start)
    write_text(out / "speed.json", json.dumps(found, indent=1) + "\n")
    print(json.dumps(found, indent=1))


def tables(out: Path) -> None:
    """Write results/bundled/README.md and its figure from all numbers."""
    cells = [json.loads(path.read_text("utf-8")) for path in sorted(out.glob("FewAsp*.json"))]
    plain = {(row["dataset"], row["n_way"], row["n_shot"]): row for row in cells if not row["none_rate"]}
    lines = [
        "# The bundled model, measured",
        "",
        "Official test splits, 600 episodes, seed 5, without aspect names. Macro-F1 at the model's own threshold,",
        "chosen on the validation categories; ± is the half-width of the 95 % confidence interval over episodes.",
        "*Italics*: Proto-AWATT as published.",
        "",
        "| dataset | " + " | ".join(f"{n_way}-way {n_shot}-shot" for n_way, n_shot in SETTINGS) + " |",
        "|---" * (1 + len(SETTINGS)) + "|",
    ]
    for dataset in DATASETS:
        shown = [f"| {dataset}"]
        for setting in SETTINGS:
            row = plain.get((dataset, *setting))
            quoted = MAIN[dataset]["proto-awatt"][setting][1]
            ours = f"{100 * row['macro_f1']:.2f} ± {100 * row['macro_f1_ci95']:.2f}" if row else "–"
            shown.append(f"{ours} *{quoted:.2f}*")
        lines.append(" | ".join(shown) + " |")
    lines += [
        "",
        "## Off-topic sentences",
        "",
        "FewAsp test, 5-shot. Macro-F1 with a share of queries that mention none of the aspects, at the model's own",
        "threshold and at the paper's static one, on a softmax of the same scores. AUROC: off-topic against other",
        "queries, by the highest score. ECE: expected calibration error, ten bins.",
        "",
        "| aspects | off-topic | own | static | AUROC of off-topic | false aspects per 100 off-topic sentences | ECE |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in cells:
        if row["dataset"] == "FewAsp" and row["n_shot"] == 5:
            auroc = f"{row['none_auroc']:.3f}" if "none_auroc" in row else ""
            false = f"{row['false_aspects_per_100']:.1f}" if "false_aspects_per_100" in row else ""
            lines.append(
                f"| {row['n_way']} | {row['none_rate']:.0%} | {100 * row['macro_f1']:.2f} | "
                f"{100 * row['static_macro_f1']:.2f} | {auroc} | {false} | {row['ece']:.3f} |"
            )
    lines += ["", "![Reliability](reliability.png)", "", "## Another website: MAMS", ""]
    lines += [
        "7 coarse categories, examples drawn from all splits, 2,000 other sentences as test, `predict` with defaults.",
        "",
    ]
    lines += ["| examples per category | macro-F1 (five draws) | AUC | logistic regression, same vectors and names |"]
    lines += ["|---|---|---|---|"]
    for row in json.loads((out / "mams.json").read_text("utf-8")):
        interval = mean_ci95([100 * value for value in row["macro_f1"]])
        lines.append(
            f"| {row['examples']} | {interval.mean:.2f} ± {interval.half_width:.2f} | {np.mean(row['auc']):.4f} | "
            f"{100 * np.mean(row['logistic_regression']):.2f} |"
        )
    paths = {name: out / f"ablation {name}.json" for name in ABLATIONS}
    found = {name: json.loads(path.read_text("utf-8")) for name, path in paths.items() if path.exists()}
    if found:
        columns = [name for name in found["all"] if name not in ("without", "threshold")]
        lines += [
            "",
            "## Ablation",
            "",
            "Of the model before it read files, whose settings were trained together with the network: retrained on",
            "800 tasks without some of the features; validation categories,",
        ]
        lines += [
            "mean macro-F1 of the three datasets.",
            "",
            "| | " + " | ".join(columns) + " |",
            "|---" * (len(columns) + 1) + "|",
        ]
        for name, row in found.items():
            lines.append(f"| {name} | " + " | ".join(f"{100 * row[column]:.2f}" for column in columns) + " |")
    if (out / "speed.json").exists():
        speeds = json.loads((out / "speed.json").read_text("utf-8"))
        lines += ["", "## Speed, one core", ""]
        lines += ["Measured on a quiet machine with the model before it read files.", ""]
        lines += [f"- {speeds['sentences_per_second']:,.0f} sentences per second from raw text, 10 aspects"]
        lines += [f"- {1000 * speeds['adapt_10x5_seconds']:.0f} ms to fit 10 aspects with 5 examples each"]
        lines += [f"- {1000 * speeds['load_seconds']:.0f} ms to load"]
    lines += [
        "",
        "## Commands",
        "",
        "```",
        *(line.strip() for line in (__doc__ or "").splitlines()[2:] if line.strip()),
        "```",
    ]
    write_text(out / "README.md", "\n".join(lines) + "\n")
    _plot(cells, out)


def _plot(cells: list[dict[str, Any]], out: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(5, 5))
    axes.plot([0, 1], [0, 1], color="#999999", linestyle=":", label="perfectly calibrated")
    colours = {0.0: "#0072B2", 0.3: "#E69F00", 0.5: "#009E73"}
    for row in cells:
        if row["dataset"] == "FewAsp" and (row["n_way"], row["n_shot"]) == (10, 5):
            predicted, observed, _ = zip(*row["reliability"], strict=True)
            label = f"{row['none_rate']:.0%} off-topic"
            axes.plot(predicted, observed, marker="o", color=colours[row["none_rate"]], label=label)
    axes.set(xlabel="predicted probability", ylabel="observed frequency", aspect="equal")
    axes.set_title("FewAsp test, 10-way 5-shot")
    axes.legend(loc="upper left")
    for suffix in ("png", "svg"):
        figure.savefig(
            out / f"reliability.{suffix}",
            dpi=150,
            bbox_inches="tight",
            metadata={"Date": None} if suffix == "svg" else None,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=["test", "mams", "ablation", "speed", "tables"])
    parser.add_argument("--data", type=Path, default=Path("datasets"))
    parser.add_argument("--mams", type=Path, default=shared_folder() / "data" / "mams")
    parser.add_argument("--model", type=Path, help="model folder [default: the bundled model]")
    parser.add_argument("--out", type=Path, default=Path("results/bundled"))
    parser.add_argument("--episodes", type=int, default=600)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    if options.part == "test":
        test(options.data, options.out, options.episodes, options.model)
    elif options.part == "mams":
        mams(options.mams, options.out, options.model)
    elif options.part == "ablation":
        ablation(options.data, options.out)
    elif options.part == "speed":
        speed(options.out, options.model)
    else:
        tables(options.out)


if __name__ == "__main__":
    main()
