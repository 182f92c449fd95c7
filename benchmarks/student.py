"""The student of the accurate model: distilled, and its speed measured: results/student/.

python benchmarks/student.py teach --data datasets            the teacher's vectors of all text, once, into --cache
python benchmarks/student.py distill --name NAME              trains a student on them: NAME.safetensors in --cache
python benchmarks/student.py join --name NAME --more-teachers FOLDER
                                                              static vectors of potion, the student's table and others
                                                              in one table, and the student that reads it
python benchmarks/student.py gain --student FILE              what students and the teacher add to the fast model's AUC
python benchmarks/student.py speed --model FOLDER             sentences per second, against sentence-transformers

`awatt train-detector --encoder NAME.safetensors` then trains a model on its vectors; `--encoder FOLDER` does so with
the teacher itself, for comparison.
"""

from __future__ import annotations

import argparse
import json
import logging
import math
import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file, save_file

from awatt import AspectDetector
from awatt.arrays import Sentences
from awatt.aspect_model.context import Memory
from awatt.aspect_model.file import SAMPLE
from awatt.aspect_model.learner import TrainedParts, learn, probabilities
from awatt.aspect_model.model import ACCURATE, AspectModel
from awatt.aspect_model.names import LabelledSentences
from awatt.aspect_model.student.distill import DistillConfig, make_student
from awatt.aspect_model.student.encoder import StudentEncoder
from awatt.aspect_model.student.module import StudentConfig
from awatt.aspect_model.student.static import join_tables, read_other_vectors
from awatt.aspect_model.student.teacher import MAX_LENGTH, load_teacher, read_taught, teach_all
from awatt.aspect_model.student.text import read_texts, vary
from awatt.aspect_model.train import load_merged, read_vectors
from awatt.aspect_model.train_encoder import read_encoder
from awatt.aspect_model.transformer import PieceEncoder, Projection
from awatt.encoders.hub import find_model
from awatt.encoders.static import default_folder
from awatt.files import shared_folder, write_text
from awatt.metrics import macro_f1, roc_auc
from curve import best_f1
from curve_sets import CHOOSING, LabelledSet, draw_labels, labelled, load_sets

VARIATIONS = 90_000  # sentences made from others
JOINED_EXTRA = 176  # numbers per token that a student needs beside the joined vectors: what 16 MB have room for


def teach(cache: Path, data: Path, teacher: str, more: list[Path], seed: int) -> None:
    """Every sentence, variations of them and every token alone; files that are there already are kept."""
    vectors = read_vectors(default_folder())
    model = load_teacher(teacher, vectors.tokenizer)
    texts = read_texts(shared_folder() / "data", data, more)
    texts += vary(texts, VARIATIONS, seed)
    texts = [texts[number] for number in np.random.default_rng(seed).permutation(len(texts))]
    sentences = Sentences.from_texts(vectors.tokenizer, texts, MAX_LENGTH, vectors.unknown)
    teach_all(model, sentences, cache / "teacher" / "pool")
    n_words = len(vectors.stored.table)
    alone = Sentences(np.arange(n_words), np.ones(n_words, dtype=np.int64))
    teach_all(model, alone, cache / "teacher" / "words")


def distill(cache: Path, name: str, config: DistillConfig) -> None:
    """Train a student on what ``teach`` wrote; a run that was stopped is resumed."""
    vectors = read_vectors(default_folder())
    units, norms = vectors.token_vectors(np.arange(len(vectors.stored.table)))
    taught, alone = (read_taught(sorted((cache / "teacher" / which).glob("*.npz"))) for which in ("pool", "words"))
    checkpoint = cache / f"{name}.checkpoint"
    tensors = make_student(taught, alone, units * norms, StudentConfig(), config, checkpoint)
    save_file(tensors, cache / f"{name}.safetensors")


def join(cache: Path, data: Path, name: str, teachers: list[str]) -> None:
    """Write the model2vec folder ``static`` for `awatt train-detector --vectors`, and ``NAME-static.safetensors``.

    Beside potion's vector, and the teacher's mean over the contexts of a token, which is the student's table, every
    token has the vector that each of ``teachers`` gives it alone.
    """
    vectors = read_vectors(default_folder())
    units, norms = vectors.token_vectors(np.arange(len(vectors.stored.table)))
    student = load_file(cache / f"{name}.safetensors")
    alone = Sentences(np.arange(len(units)), np.ones(len(units), dtype=np.int64))
    tables = [units, student["extra"] * student["extra_scale"]]
    for teacher in teachers:
        states = PieceEncoder.create(teacher, vectors.tokenizer, MAX_LENGTH).states(alone).float()
        tables.append(Projection.fit(states, units.shape[1])(states).numpy())
    joined = join_tables(tables, norms, units.shape[1])
    folder = cache / "static"
    folder.mkdir(parents=True, exist_ok=True)
    save_file({"embeddings": joined * norms}, folder / "model.safetensors")
    shutil.copy(default_folder() / "tokenizer.json", folder / "tokenizer.json")
    texts = vectors.tokenize(read_texts(shared_folder() / "data", data, []))
    counts = np.bincount(texts.ids, minlength=len(units))
    stored, _ = read_vectors(folder).token_vectors(np.arange(len(units)))
    reads = read_other_vectors(student, units * norms, stored * norms, counts, JOINED_EXTRA)
    save_file(reads, cache / f"{name}-static.safetensors")


def gain(data: Path, students: list[str], teacher: str, out: Path) -> None:
    """AUC and F1 of the fast model's numbers on potion's vectors, on its own, and with others beside either.

    Nothing is trained again. 5 examples per aspect and their names, a file of 500 sentences or none, 5 draws.
    """
    model, found = AspectModel.load(), dict[str, Any]()
    sample = model.tokenize(load_merged(data, "train").sentences[:3000])
    tables = {"potion": read_vectors(default_folder()), "joined": model.vectors}
    for table, encoder in (
        ("potion", "none"),
        ("joined", "none"),
        *(("joined", student) for student in students),
        ("potion", teacher),
        ("joined", teacher),
    ):
        context = read_encoder(encoder, tables[table], sample).context(tables[table])
        vectors = replace(tables[table], context=None if context is None else Memory(context, math.inf, np.float16))
        parts = replace(
            model.parts,
            vectors=vectors,
            settings=model.parts.settings._replace(centre=vectors.mean_vectors(sample).mean(0)),
            plain_background=vectors.embed(model.weights.plain_background.sentences()),
            background=vectors.embed(model.weights.background.sentences()),
        )
        name = table if context is None else f"{table} and {Path(encoder).stem}"
        for which in CHOOSING:
            for n_file in (0, SAMPLE):
                key = f"{which}, {'file' if n_file else 'no file'}"
                found.setdefault(name, {})[key] = _measure(parts, load_sets()[which](), n_file)
                print(name, key, found[name][key], flush=True)
    write_text(out / "gain.json", json.dumps(found, indent=1) + "\n")


def _measure(parts: TrainedParts, data: LabelledSet, n_file: int) -> dict[str, float]:
    sentences = parts.vectors.tokenize(data.texts)
    rows = []
    for number in range(5):
        draw = draw_labels(data, number)
        known, test = labelled(draw, "5"), draw.test[:1500]
        assert known is not None
        file = np.sort(np.random.default_rng(0).permutation(test)[:n_file])
        given = LabelledSentences(sentences.take(known), data.labels[known])
        learned = learn(parts, given, data.aspects, sentences.take(file) if n_file else None)
        scores, truth = probabilities(parts, learned, sentences.take(test)), data.labels[test]
        found = scores >= learned.thresholds.balanced
        rows.append([float(roc_auc(scores, truth)), best_f1(scores, truth), float(macro_f1(found, truth))])
    means = np.mean(rows, 0)
    return dict(zip(("auc", "best_f1", "macro_f1"), means.round(4).tolist(), strict=True))


def speed(data: Path, folder: Path, teacher: str, out: Path, n_sentences: int, repeats: int) -> None:
    """Sentences per CPU second from text, one thread, in turns: sentence-transformers, the student, the detector.

    The best of some rounds counts, and sentences are different, so that nothing is remembered from one to the next.
    """
    from sentence_transformers import SentenceTransformer

    transformer = SentenceTransformer(str(find_model(teacher)), device="cpu")
    model = AspectModel.load(folder)
    student = StudentEncoder(model.weights.student, model.weights.vectors)  # type: ignore[arg-type]
    examples = {
        f"aspect {n}": [f"{word} {n}" for word in ("food", "staff", "price", "room", "view")] for n in range(10)
    }

    detector = AspectDetector.from_examples(examples, model=folder)
    memory: Memory = detector.loaded_model.vectors.context  # type: ignore[attr-defined]

    def detect(texts: list[str]) -> None:
        memory.clear()
        detector.detect_many(texts, words=False)

    ways: dict[str, Callable[[list[str]], object]] = {
        "sentence-transformers": lambda texts: transformer.encode(texts, show_progress_bar=False),
        "student": lambda texts: student(model.tokenize(texts)),
        "detector, 10 aspects": detect,
    }
    found: dict[str, Any] = {}
    for which, texts in _speed_texts(data, n_sentences).items():
        rates = dict.fromkeys(ways, 0.0)
        for _ in range(repeats):
            for way, run in ways.items():
                began = time.process_time()
                run(texts)
                rates[way] = max(rates[way], len(texts) / (time.process_time() - began))
        slow, *ours = rates.values()
        found[which] = {
            "tokens": float(model.tokenize(texts).lengths.mean()),
            **{way: round(rate) for way, rate in rates.items()},
            "student, times as fast": round(ours[0] / slow, 1),
            "detector, times as fast": round(ours[1] / slow, 1),
        }
        print(which, found[which], flush=True)
    write_text(out / "speed.json", json.dumps(found, indent=1) + "\n")


def _speed_texts(data: Path, count: int) -> dict[str, list[str]]:
    found = {"FewAsp validation": list(dict.fromkeys(load_merged(data, "val").sentences))}
    for name in ("courses", "feedback"):
        lines = (shared_folder() / "data" / "domains" / f"{name}.jsonl").read_text("utf-8").splitlines()
        found[name] = list(dict.fromkeys(json.loads(line)["text"] for line in lines))
    return {name: texts[:count] for name, texts in found.items()}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("teach", "distill", "join", "gain", "speed"))
    parser.add_argument("--cache", type=Path, default=Path("student-cache"))
    parser.add_argument("--data", type=Path, default=Path("datasets"))
    parser.add_argument("--teacher", default="minilm", help="a BERT-like encoder's folder [all-MiniLM-L6-v2]")
    parser.add_argument("--more", type=Path, nargs="*", default=[], help="text files with a sentence per line")
    parser.add_argument("--name", default="student")
    parser.add_argument("--more-teachers", nargs="*", default=[], help="for join: folders of BERT-like encoders")
    parser.add_argument("--epochs", type=float, default=DistillConfig.epochs)
    parser.add_argument("--student", nargs="+", default=["student"], help="for gain: files, or student, the package's")
    parser.add_argument("--model", type=Path, default=ACCURATE, help="a model's folder [the accurate model]")
    parser.add_argument("--out", type=Path, default=Path("results/student"))
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    import torch

    torch.set_num_threads(1)
    if given.what == "teach":
        teach(given.cache, given.data, given.teacher, given.more, seed=5)
    elif given.what == "distill":
        distill(given.cache, given.name, DistillConfig(epochs=given.epochs))
    elif given.what == "join":
        join(given.cache, given.data, given.name, given.more_teachers)
    elif given.what == "gain":
        gain(given.data, given.student, given.teacher, given.out)
    else:
        speed(given.data, given.model, given.teacher, given.out, n_sentences=1000, repeats=5)
