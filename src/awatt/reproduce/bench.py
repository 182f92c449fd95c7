"""Speed of training, evaluation, encoding and detection relative to a minimum: ``awatt bench``.

The minimum, or *floor*, of an episode is the time of its bare encoder on the same tokens without padding (forward pass;
in training also backward pass and optimiser step) plus the attention's multiply-adds as one dense product, measured in
the same run on one core. The ratio to the floor is the result; absolute times only describe the machine.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from awatt.data.corpus import Corpus, load_corpus, load_sample
from awatt.data.episode import Episode
from awatt.data.sampler import EpisodeSampler, EpisodeShape
from awatt.errors import AwattError, require
from awatt.files import shared_folder
from awatt.metrics import macro_f1, roc_auc
from awatt.reproduce.bench_files import files
from awatt.research.runs import RunConfig, RunFolder, TrainingConfig
from awatt.research.scoring import measure_system, score_episodes
from awatt.research.system import System, SystemConfig
from awatt.research.training import Trainer

ENCODER_NAMES = ("glove-cnn", "static")
SETTINGS = ((5, 5), (10, 10))
GROWTH = {"n_way": (5, 10, 20, 50), "n_shot": (1, 5, 20, 100), "words": (8, 16, 32, 64)}


def find_corpus(data: Path | None) -> tuple[str, Corpus]:
    """Name and train split of ``data``, else of the shared FewAsp(single), else the bundled sample."""
    shared = shared_folder() / "data" / "fewasp" / "FewAsp(single)"
    folder = data or (shared if shared.is_dir() else None)
    return (folder.name, load_corpus(folder, "train")) if folder else ("bundled sample", load_sample())


@dataclass
class Bench:
    """One system on one corpus in one setting."""

    corpus: Corpus
    encoder: str
    shape: EpisodeShape
    episodes: int  # training episodes per repetition
    evaluated: int = 600  # test episodes, as in the paper; a sentence that occurs again is not encoded again

    def __post_init__(self) -> None:
        names = {"method": "proto-awatt", "encoder": self.encoder, "threshold": "static", "n_way": self.shape.n_way}
        config = SystemConfig.from_mapping(names)
        torch.manual_seed(5)
        self.system = System.create(config, self.corpus.sentences)
        schedule = TrainingConfig(episodes_per_epoch=self.episodes)
        run = RunConfig(config, self.shape, schedule)
        self.trainer = Trainer(run, self.system, self.corpus, self.corpus, RunFolder(Path("unused")))
        self.optimizers = self.trainer.optimizers()
        self.sentences = self.system.encoder.tokenize(self.corpus.sentences)
        sampler, step = EpisodeSampler(self.corpus, self.shape, 5), schedule.episodes_per_step
        count = max(self.episodes, self.evaluated)
        self.batches = [sampler.batch(first, step) for first in range(0, count, step)]

    def train(self) -> None:
        """One epoch, as in ``awatt train``."""
        self.trainer.train_epoch(self.optimizers, lambda step: None)

    def evaluate(self) -> None:
        """Score and measure episodes of a tokenized corpus, as after each epoch of training."""
        measure_system(
            self.system, score_episodes(self.system, self.corpus, self.shape, self.evaluated, 5, self.sentences)
        )

    def train_floor(self) -> None:
        """Forward pass, backward pass and step of the bare encoder, and the attention as one product."""
        for batch in self.batches[: self.episodes // len(self.batches[0])]:
            tokens = self._encode(batch)
            (tokens.sum() + (tokens @ self._product(batch, tokens)).sum()).backward()  # type: ignore[no-untyped-call]
            for optimizer in self.optimizers.values():
                optimizer.step()
                optimizer.zero_grad(set_to_none=True)

    @torch.no_grad()
    def evaluate_floor(self) -> None:
        """Forward pass of the bare encoder, and the attention as one product."""
        for batch in self.batches[: self.evaluated // len(self.batches[0])]:
            tokens = self._encode(batch)
            tokens @ self._product(batch, tokens)

    def _encode(self, batch: Episode) -> Tensor:
        numbers = np.concatenate([batch.support.reshape(-1), batch.query.reshape(-1)])
        encoded: Tensor = self.system.encoder(self.sentences.take(numbers))
        return encoded

    def _product(self, batch: Episode, tokens: Tensor) -> Tensor:
        """A matrix with the attention's number of multiply-adds: 6 d per support token, 2 d N per query token."""
        of_support = int(self.sentences.lengths[batch.support].sum())
        of_query = len(tokens) - of_support
        columns = round((6 * of_support + 2 * self.shape.n_way * of_query) / len(tokens))
        return tokens.new_ones(tokens.shape[1], columns)


def fastest(functions: dict[str, Callable[[], Any]], repeats: int) -> dict[str, float]:
    """Seconds of each function: the best of ``repeats`` rounds in which they take turns, after one warm-up round."""
    seconds = {name: float("inf") for name in functions}
    for round_number in range(repeats + 1):
        for name, function in functions.items():
            start = time.perf_counter()
            function()
            if round_number:
                seconds[name] = min(seconds[name], time.perf_counter() - start)
    return seconds


def episodes_and_floor(corpus: Corpus, quick: bool) -> list[dict[str, Any]]:
    """Speed of training and evaluation per encoder and setting, and the ratio to the floor."""
    rows = []
    for encoder in ENCODER_NAMES:
        for n_way, n_shot in SETTINGS:
            count = 20 if quick else 200
            try:
                bench = Bench(corpus, encoder, EpisodeShape(n_way, n_shot), count, 100 if quick else 600)
            except AwattError as error:
                rows.append({"encoder": encoder, "setting": f"{n_way}x{n_shot}", "left_out": str(error)})
                continue
            parts = ("train", "train_floor", "evaluate", "evaluate_floor")
            seconds = fastest({name: getattr(bench, name) for name in parts}, 2 if quick else 5)
            row: dict[str, Any] = {"encoder": encoder, "setting": f"{n_way}x{n_shot}"}
            for name, episodes in (("train", bench.episodes), ("evaluate", bench.evaluated)):
                row[f"{name}_episodes_per_second"] = episodes / seconds[name]
                row[f"{name}_floor_episodes_per_second"] = episodes / seconds[f"{name}_floor"]
                row[f"{name}_ratio_to_floor"] = seconds[name] / seconds[f"{name}_floor"]
            rows.append(row)
    return rows


def encoding(corpus: Corpus, quick: bool) -> list[dict[str, Any]]:
    """Sentences per second from raw text, tokenizer included, and the tokenizer's share of the time."""
    rows: list[dict[str, Any]] = []
    wanted = 2_000 if quick else 20_000
    texts = (list(corpus.sentences) * (wanted // len(corpus.sentences) + 1))[:wanted]
    for encoder in ENCODER_NAMES:
        try:
            system = Bench(corpus, encoder, EpisodeShape(5, 5), 2, 2).system.eval()
        except AwattError as error:
            rows.append({"encoder": encoder, "left_out": str(error)})
            continue
        rows.append({"encoder": encoder, **_encoding_speed(system, texts)})
    return rows


def _encoding_speed(system: System, texts: list[str]) -> dict[str, float]:
    """In batches, as when a file is read: vectors are not kept, so memory stays constant."""
    batches = [texts[first : first + 256] for first in range(0, len(texts), 256)]

    def tokenize() -> None:
        for batch in batches:
            system.encoder.tokenize(batch)

    def encode() -> None:
        for batch in batches:
            system.encode(system.encoder.tokenize(batch))

    seconds = fastest({"tokenize": tokenize, "encode": encode}, 3)
    return {
        "sentences_per_second": len(texts) / seconds["encode"],
        "tokeniser_share": seconds["tokenize"] / seconds["encode"],
    }


def metrics_against_scikit_learn(quick: bool) -> dict[str, float]:
    """How many times faster than scikit-learn our metrics are on 600 episodes, and the largest difference."""
    sklearn = require("sklearn.metrics", "dev")
    rng = np.random.default_rng(0)
    scores = rng.random((60 if quick else 600, 25, 5))
    targets = rng.random(scores.shape) < 0.25
    targets[:, 0], targets[:, 1] = True, False  # scikit-learn's macro AUC needs both values in every column
    predicted = scores > 0.6
    ours: dict[str, Callable[[], Any]] = {
        "roc_auc": lambda: roc_auc(scores, targets),
        "macro_f1": lambda: macro_f1(predicted, targets),
    }
    theirs: dict[str, Callable[[], Any]] = {
        "roc_auc": lambda: [
            sklearn.roc_auc_score(*pair, average="macro") for pair in zip(targets, scores, strict=True)
        ],
        "macro_f1": lambda: [
            sklearn.f1_score(*pair, average="macro", zero_division=0) for pair in zip(targets, predicted, strict=True)
        ],
    }
    found = {}
    for name in ours:
        seconds = fastest({"ours": ours[name], "theirs": theirs[name]}, 2)
        found[f"{name}_times_faster"] = seconds["theirs"] / seconds["ours"]
        found[f"{name}_largest_difference"] = float(np.abs(ours[name]() - np.array(theirs[name]())).max())
    return found


def start_up(repeats: int = 5) -> dict[str, float]:
    """Seconds for Python alone, ``import awatt`` and ``awatt --help``."""
    commands = {
        "python": ["-c", "pass"],
        "import_awatt": ["-c", "import awatt"],
        "help": ["-c", "from awatt.cli import main; main()", "--help"],
    }

    def runner(arguments: list[str]) -> Callable[[], None]:
        def run() -> None:
            subprocess.run([sys.executable, *arguments], check=True, capture_output=True)

        return run

    return fastest({name: runner(arguments) for name, arguments in commands.items()}, repeats)


def long_sentences(corpus: Corpus, words: int) -> Corpus:
    """The same corpus with sentences of exactly ``words`` words, cut from its text."""
    text = " ".join(corpus.sentences).split()
    count = len(corpus.sentences)
    texts = (" ".join(text[(number * 7) % (len(text) - words) :][:words]) for number in range(count))
    return Corpus(corpus.split, tuple(texts), corpus.aspects, corpus.mentions, corpus.members)


def growth_point(data: str, axis: str, value: int, episodes: int) -> dict[str, float]:
    """Milliseconds per training episode and peak memory; runs in a process of its own."""
    torch.set_num_threads(1)
    _, corpus = find_corpus(Path(data) if data else None)
    shape = EpisodeShape(**({axis: value} if axis != "words" else {}))
    bench = Bench(
        long_sentences(corpus, value) if axis == "words" else corpus, "glove-cnn", shape, episodes, evaluated=episodes
    )
    seconds = fastest({"train": bench.train}, 2)["train"]
    return {"milliseconds": 1000 * seconds / episodes, "peak_megabytes": _peak_megabytes()}


def _peak_megabytes() -> float:
    """Peak memory of this process alone; ``getrusage`` of a child starts at the peak of its parent."""
    status = Path("/proc/self/status")
    if not status.exists():
        scale = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * scale / 1e6
    (line,) = (line for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024 / 1e6


def _start(expression: str) -> subprocess.Popen[str]:
    """Evaluate ``expression`` of this module in a new process, which prints it as JSON."""
    code = f"import json; from awatt.reproduce import bench; print(json.dumps(bench.{expression}))"
    return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)


def _result(process: subprocess.Popen[str]) -> dict[str, float]:
    output, _ = process.communicate()
    if process.returncode:
        raise AwattError("a part of the benchmark failed; see its message above.")
    return dict(json.loads(output))


def growth(data: Path | None, quick: bool) -> list[dict[str, Any]]:
    """Time and memory of a training episode along each axis, everything else as in 5-way 5-shot."""
    episodes = 4 if quick else 20
    rows = []
    for axis, values in GROWTH.items():
        for value in values[:2] if quick else values:
            point = _result(_start(f"growth_point({str(data or '')!r}, {axis!r}, {value}, {episodes})"))
            rows.append({"axis": axis, "value": value, **point})
    return rows


def scaling_and_memory(data: Path | None, quick: bool) -> dict[str, float]:
    """Speed of two training processes at once relative to one (10-way 10-shot), and the peak memory of one."""
    call = f"heavy_training({str(data or '')!r}, {20 if quick else 200})"
    alone = _result(_start(call))
    both = [_result(process) for process in [_start(call), _start(call)]]
    speed_up = sum(1 / result["seconds"] for result in both) * alone["seconds"]
    return {"two_processes_speed_up": speed_up, "peak_megabytes_10x10": alone["peak_megabytes"]}


def heavy_training(data: str, episodes: int) -> dict[str, float]:
    """Seconds of 10-way 10-shot training and peak memory; runs in a process of its own."""
    torch.set_num_threads(1)
    _, corpus = find_corpus(Path(data) if data else None)
    bench = Bench(corpus, "glove-cnn", EpisodeShape(10, 10), episodes, evaluated=episodes)
    return {"seconds": fastest({"train": bench.train}, 1)["train"], "peak_megabytes": _peak_megabytes()}


def bench(data: Path | None, quick: bool, on_part: Callable[[str], None] = lambda name: None) -> dict[str, Any]:
    """Run all benchmarks; the result can be saved as JSON. ``on_part`` is called with the name of each part."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    try:
        name, corpus = find_corpus(data)
        found: dict[str, Any] = {"corpus": name, "torch": torch.__version__, "quick": quick}
        on_part("episodes and their floor")
        found["episodes"] = episodes_and_floor(corpus, quick)
        on_part("encoding")
        found["encoding"] = encoding(corpus, quick)
        on_part("files")
        found["files"] = files(corpus, quick)
        on_part("metrics")
        found["metrics_against_scikit_learn"] = metrics_against_scikit_learn(quick)
        on_part("start-up")
        found["start_up_seconds"] = start_up()
        on_part("scaling and memory")
        found["processes"] = scaling_and_memory(data, quick)
        on_part("growth")
        found["growth"] = growth(data, quick)
        return found
    finally:
        torch.set_num_threads(threads)
