"""Try to make the dynamic threshold better than a constant, on validation: stage two only, from one stage one.

    python benchmarks/dynamic_threshold.py run --data datasets     # resumable; writes one small JSON file per run
    python benchmarks/dynamic_threshold.py table                   # the table from the JSON files
    python benchmarks/dynamic_threshold.py control --data datasets # what of the gain is the threshold's; about an hour

10-way 5-shot. All ideas of a dataset and seed start from the same stage one, whose static threshold they have to beat.
Each trains with a patience of 8 and keeps the whole validation curve. The test split is never scored.

Stage two also goes on training encoder and attention. The control tests the whole models of the tables (``Proto-AWATT``
in Table 5 and the appendix) with the static threshold in the place of their policy. It chooses nothing.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from equation_3 import kept

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "results/attempts/dynamic-threshold"
SHAPE = {"n_way": 10, "n_shot": 5}
SEEDS = (5, 10, 15)
DATASETS = ("FewAsp", "FewAsp(single)")
PATIENCE = 8
MAX_EPOCHS = 20

#: each idea: its settings of stage two
IDEAS: dict[str, tuple[str, ...]] = {
    "policy loss moves the policy only": ("threshold.network_share=0",),
    "policy loss reaches the network": ("threshold.network_share=1",),
    "reward per episode": ("threshold.reward=episode",),
    "entropy bonus 0.01": ("threshold.entropy=0.01",),
    "entropy bonus 0.1": ("threshold.entropy=0.1",),
}


def result_file(dataset: str, seed: int) -> Path:
    """Path of the results of one stage one."""
    return RESULTS / dataset / f"seed{seed}.json"


def run(dataset: str, seed: int, data: Path, runs: Path) -> None:
    """Train stage one, unless it is there, then stage two with each idea that has no result yet."""
    import torch

    from awatt.data.corpus import load_corpus
    from awatt.research.runs import RunFolder
    from awatt.research.settings import resolve_run
    from awatt.research.system import System
    from awatt.research.training import Progress, Trainer, all_texts, train

    torch.set_num_threads(1)
    folder = runs / dataset / f"seed{seed}"
    options = {"method": "proto-awatt", "encoder": "glove-cnn", "seed": seed}
    config = resolve_run(None, {**options, "threshold": "static"}, SHAPE, [])
    first = train(config, data / dataset, folder / "stage one", resume=True, device="cpu")
    best = [entry for entry in read_log(folder / "stage one") if entry["best"]][-1]
    found: dict[str, Any] = {"dataset": dataset, **SHAPE, "seed": seed, "patience": PATIENCE}
    found |= {"static": [best["val_auc"], 100 * best["val_macro_f1"]], "ideas": {}}
    file = result_file(dataset, seed)
    if file.exists():
        found = json.loads(file.read_text("utf-8"))
    corpora = load_corpus(data / dataset, "train"), load_corpus(data / dataset, "val")
    for name, settings in IDEAS.items():
        if name in found["ideas"]:
            continue
        start = time.perf_counter()
        more = [*settings, f"training.patience={PATIENCE}", f"training.max_epochs={MAX_EPOCHS}"]
        config = resolve_run(None, {**options, "threshold": "policy"}, SHAPE, more)
        torch.manual_seed(seed)
        system = System.create(config.system, all_texts(data / dataset))
        system.encoder.load_state_dict(first.encoder.state_dict())
        system.model.load_state_dict(first.model.state_dict())
        place = RunFolder(folder / name)
        place.open({**config.describe(), "data": dataset, "provenance": None}, resume=True)
        trainer = Trainer(config, system, *corpora, place)
        trainer.progress = Progress(stage=1, epoch=best["epoch"])
        trainer.run(lambda step: None, lambda entry: None)
        curve = [[entry["val_auc"], 100 * entry["val_macro_f1"]] for entry in read_log(folder / name)]
        found["ideas"][name] = {"curve": curve, "seconds": round(time.perf_counter() - start, 1)}
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(found) + "\n", "utf-8")
        print(dataset, seed, name, len(curve), "epochs", flush=True)


def control(dataset: str, seed: int, data: Path, runs: Path) -> dict[str, float]:
    """Test macro-F1 after both stages, with the policy and with the static threshold; and after stage one."""
    import torch

    from awatt.research import RunModel, evaluate, resolve_run, train

    torch.set_num_threads(1)
    folder = runs / "control" / dataset / f"seed{seed}"
    options = {"method": "proto-awatt", "encoder": "glove-cnn", "threshold": "policy", "seed": seed}
    train(resolve_run(None, options, SHAPE, []), data / dataset, folder, resume=True, device="cpu")
    model = RunModel.load(folder)
    stage_one = json.loads((ROOT / f"results/{dataset}/10x5/proto-awatt+wo-DT-seed{seed}.json").read_text("utf-8"))
    found = {
        "stage one, static": stage_one["test"]["macro_f1"],
        "both stages, static": evaluate(model, data / dataset, threshold="static")["macro_f1"],
        "both stages, policy": evaluate(model, data / dataset)["macro_f1"],
    }
    print(dataset, seed, {name: f"{100 * value:.2f}" for name, value in found.items()}, flush=True)
    return found


def read_log(folder: Path) -> list[dict[str, Any]]:
    """The epochs of a run."""
    return [json.loads(line) for line in (folder / "log.jsonl").read_text("utf-8").splitlines()]


def table(results: list[dict[str, Any]]) -> Iterator[str]:
    """Validation macro-F1 of each idea minus that of the static threshold: mean, and each seed."""
    for dataset in DATASETS:
        found = [result for result in results if result["dataset"] == dataset]
        if not found:
            continue
        static = statistics.fmean(result["static"][1] for result in found)
        seeds = ", ".join(str(result["seed"]) for result in found)
        yield f"\n{dataset}, seeds {seeds}; static threshold after stage one {static:.2f}\n"
        yield "| stage two | patience 3 | patience 8 | each seed (8) |"
        yield "|---|---|---|---|"
        for name in IDEAS:
            curves = [(one["ideas"][name]["curve"], one["static"][1]) for one in found if name in one["ideas"]]
            if not curves:
                continue
            three, eight = (
                [curve[kept(curve, patience, measure=1)][1] - by for curve, by in curves] for patience in (3, 8)
            )
            means = [f"{statistics.fmean(gains):+.2f}" for gains in (three, eight)]
            each = " ".join(f"{gain:+.2f}" for gain in eight)
            yield f"| {name} | {means[0]} | {means[1]} | {each} |"


def main() -> None:
    """Run what is missing, or print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["run", "table", "control"])
    parser.add_argument("--data", type=Path, default=ROOT / "datasets")
    parser.add_argument("--runs", type=Path, default=ROOT / "runs/dynamic-threshold", help="folder of the runs")
    options = parser.parse_args()
    if options.what == "control":
        found = {
            f"{dataset}, seed {seed}": control(dataset, seed, options.data, options.runs)
            for dataset in (*DATASETS, "FewAsp(multi)")
            for seed in SEEDS
        }
        (RESULTS / "control.json").write_text(json.dumps(found, indent=1) + "\n", "utf-8")
        return
    if options.what == "run":
        for dataset in DATASETS:
            for seed in SEEDS:
                run(dataset, seed, options.data, options.runs)
    files = [result_file(dataset, seed) for dataset in DATASETS for seed in SEEDS]
    results = [json.loads(file.read_text("utf-8")) for file in files if file.exists()]
    print("\n".join(table(results)))


if __name__ == "__main__":
    main()
