"""Choose the form of Eq. 3, e_M and the episodes per step on validation: five seeds, two settings, stage one only.

    python benchmarks/equation_3.py run --data datasets     # resumable; writes one small JSON file per run
    python benchmarks/equation_3.py table                   # tables from the JSON files

Each run trains with a patience of 8 and keeps the whole validation curve, so that the table can show which epoch a
patience of 3 or 5, or selection by macro-F1, would have kept. The test split is never scored.
"""

from __future__ import annotations

import argparse
import itertools
import json
import shutil
import statistics
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "results/attempts/equation-3"
DATASET = "FewAsp(single)"
SEEDS = (5, 10, 15, 20, 25)
PATIENCE = 8
#: order of settings and seeds: if the grid is stopped early, all configurations have the same seeds
ORDER = [
    ("5x5", 5), ("5x5", 10), ("10x10", 5), ("5x5", 15), ("10x10", 10),
    ("5x5", 20), ("10x10", 15), ("5x5", 25), ("10x10", 20), ("10x10", 25),
]  # fmt: skip


@dataclass(frozen=True)
class Choice:
    """One of the configurations that are compared."""

    form: str
    e_m: int
    episodes_per_step: int

    def __str__(self) -> str:
        return f"{self.form}-eM{self.e_m}-step{self.episodes_per_step}"


CHOICES = [
    Choice(form, e_m, step) for e_m, step, form in itertools.product((10, 1, 4, 2), (2, 1), ("printed", "linear"))
]


@dataclass(frozen=True)
class Run:
    """One training."""

    choice: Choice
    setting: str
    seed: int

    @property
    def file(self) -> Path:
        """Path of its result."""
        return RESULTS / self.setting / f"{self.choice}-seed{self.seed}.json"


def grid() -> Iterator[Run]:
    """All runs, in order."""
    for setting, seed in ORDER:
        for choice in CHOICES:
            yield Run(choice, setting, seed)


def train(run: Run, data: Path, folder: Path) -> None:
    """Train or resume a run, and write its result."""
    n_way, n_shot = run.setting.split("x")
    settings = {
        "model.form": run.choice.form,
        "model.e_m": run.choice.e_m,
        "training.episodes_per_step": run.choice.episodes_per_step,
        "training.patience": PATIENCE,
    }
    command = ["train", "--data", str(data / DATASET), "--out", str(folder), "--quiet"]
    command += ["--n-way", n_way, "--n-shot", n_shot, "--seed", str(run.seed)]
    command += [part for name, value in settings.items() for part in ("--set", f"{name}={value}")]
    if folder.exists():
        command.append("--resume")
    subprocess.run([sys.executable, "-c", "from awatt.cli import main; main()", *command], check=True)
    log = [json.loads(line) for line in (folder / "log.jsonl").read_text("utf-8").splitlines()]
    result = {
        "dataset": DATASET,
        "setting": run.setting,
        "seed": run.seed,
        **asdict(run.choice),
        "patience": PATIENCE,
        "threshold": "static",
        "curve": [[round(entry["val_auc"], 5), round(100 * entry["val_macro_f1"], 3)] for entry in log],
        "seconds": round(sum(entry["train_seconds"] + entry["validation_seconds"] for entry in log), 1),
    }
    run.file.parent.mkdir(parents=True, exist_ok=True)
    run.file.write_text(json.dumps(result) + "\n", "utf-8")
    shutil.rmtree(folder)


def kept(curve: list[list[float]], patience: int, measure: int = 0) -> int:
    """The epoch (from 0) that early stopping with this patience keeps, by AUC (measure 0) or macro-F1 (measure 1)."""
    best = 0
    for epoch, values in enumerate(curve):
        if values[measure] > curve[best][measure]:
            best = epoch
        if epoch - best >= patience:
            break
    return best


def table(results: list[dict[str, Any]]) -> Iterator[str]:
    """Validation AUC / macro-F1 per choice, mean over the seeds that all choices have."""
    for setting in ("5x5", "10x10"):
        found = [result for result in results if result["setting"] == setting]
        by_choice: dict[Choice, dict[int, list[list[float]]]] = {choice: {} for choice in CHOICES}
        for result in found:
            choice = Choice(result["form"], result["e_m"], result["episodes_per_step"])
            by_choice[choice][result["seed"]] = result["curve"]
        common = sorted(set.intersection(*(set(curves) for curves in by_choice.values())))
        yield f"\n{DATASET} {setting}, seeds {', '.join(map(str, common)) or 'none yet'}\n"
        if not common:
            continue
        yield "| form | e_M | per step | patience 3 | patience 5 | patience 8 | 8, by macro-F1 | F1 of each seed (3) |"
        yield "|---|---|---|---|---|---|---|---|"
        for choice in sorted(CHOICES, key=lambda one: (one.form, one.e_m, one.episodes_per_step)):
            curves = [by_choice[choice][seed] for seed in common]
            cells = []
            for patience, measure in ((3, 0), (5, 0), (8, 0), (8, 1)):
                picked = [curve[kept(curve, patience, measure)] for curve in curves]
                auc, f1 = (statistics.fmean(values) for values in zip(*picked, strict=True))
                cells.append(f"{auc:.4f} / {f1:.2f}")
            each = " ".join(f"{curve[kept(curve, 3)][1]:.1f}" for curve in curves)
            yield f"| {choice.form} | {choice.e_m} | {choice.episodes_per_step} | {' | '.join(cells)} | {each} |"


def effects(results: list[dict[str, Any]]) -> Iterator[str]:
    """Effect of one choice with the others and the seed fixed: mean paired difference and its standard error."""
    yield "\n| | runs | patience 3: AUC, F1 | patience 8: AUC, F1 |"
    yield "|---|---|---|---|"
    known = {(r["setting"], r["seed"], r["form"], r["e_m"], r["episodes_per_step"]): r["curve"] for r in results}
    changes: list[tuple[int, Any, Any]] = [(2, "printed", "linear"), (4, 1, 2)]
    changes += [(3, e_m, 10) for e_m in (1, 2, 4)]
    for place, new, old in changes:
        runs = [key for key in known if key[place] == new and (*key[:place], old, *key[place + 1 :]) in known]
        cells = []
        for patience in (3, 8):
            for measure, digits in ((0, 4), (1, 2)):
                gains = []
                for key in runs:
                    curves = (known[key], known[*key[:place], old, *key[place + 1 :]])
                    after, before = (curve[kept(curve, patience)][measure] for curve in curves)
                    gains.append(after - before)
                error = statistics.stdev(gains) / len(gains) ** 0.5 if len(gains) > 1 else float("nan")
                cells.append(f"{statistics.fmean(gains):+.{digits}f} ± {error:.{digits}f}" if gains else "")
        name = ("setting", "seed", "form", "e_M", "episodes per step")[place]
        yield f"| {name} {new} instead of {old} | {len(runs)} | {cells[0]}, {cells[1]} | {cells[2]}, {cells[3]} |"
    for patience, measure in ((5, 0), (8, 0), (8, 1)):
        after, before = (
            [curve[kept(curve, *rule)] for curve in known.values()] for rule in ((patience, measure), (3, 0))
        )
        auc, f1 = (
            statistics.fmean(new[place] - old[place] for new, old in zip(after, before, strict=True))
            for place in (0, 1)
        )
        by = " and selection by macro-F1" if measure else ""
        yield f"| patience {patience}{by} instead of 3 | {len(known)} | {auc:+.4f}, {f1:+.2f} | |"


def main() -> None:
    """Run the grid, or print its tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["run", "table"])
    parser.add_argument("--data", type=Path, default=ROOT / "datasets")
    parser.add_argument("--runs", type=Path, default=ROOT / "runs/equation-3", help="folder for unfinished runs")
    options = parser.parse_args()
    if options.what == "table":
        results = [json.loads(file.read_text("utf-8")) for file in sorted(RESULTS.glob("*/*.json"))]
        print("\n".join([*table(results), *effects(results)]))
        return
    for run in grid():
        if not run.file.exists():
            print(run.setting, run.choice, "seed", run.seed, flush=True)
            train(run, options.data, options.runs / f"{run.setting}-{run.choice}-seed{run.seed}")


if __name__ == "__main__":
    main()
