"""What several test files share: the data beside the project, tiny datasets, and the command."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parents[1]

#: What folders and files of tests need besides the core; where it is not installed, they are left out, and so are tests
#: whose names say Parquet. With the core alone, what is left are the core's tests (`make test-lowest`).
NEEDS = {
    "fastapi": ["server"],
    "matplotlib": ["reproduce", "cli/test_reproduce.py"],
    "pyarrow": ["records/test_records.py", "scale"],
    "pandas": ["detector/test_frames.py"],
    "sklearn": ["detector/test_sklearn_contract.py", "test_metrics.py"],
    "torch": [
        *("encoders", "models", "reproduce", "research", "thresholds", "test_arrays.py"),
        *("aspect_model/test_train.py", "cli/test_help.py", "cli/test_reproduce.py", "cli/test_research.py"),
        *("detector/test_runs.py",),
    ],
}
collect_ignore = sorted({path for package, paths in NEEDS.items() if not find_spec(package) for path in paths})


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if not find_spec("pyarrow"):
        for item in items:
            if "parquet" in item.name:
                item.add_marker(pytest.mark.skip(reason="needs pyarrow: pip install 'awatt[parquet]'"))


# The tests run on all cores already (-n 2): more threads of torch would only wait for each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# A busy machine is no fault of what is tested.
settings.register_profile("awatt", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("awatt")

# A shell that starts the tests in the background makes them, and all that they start, deaf to Ctrl-C.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


class Outcome(NamedTuple):
    """What a command gave."""

    code: int
    out: str
    err: str


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with the benchmark's files; tests that need it are skipped without it."""
    folder = Path(os.environ.get("AWATT_SHARED", ROOT.parent / "shared"))
    if not (folder / "data" / "fewasp").is_dir():
        pytest.skip(f"needs the benchmark's files in {folder}/data; set AWATT_SHARED to their folder")
    return folder


@pytest.fixture(scope="session")
def real_build(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The three datasets as built from the real files, once a session."""
    from awatt.data.yelp_aspect import build

    out = tmp_path_factory.mktemp("build")
    build(shared / "data" / "yelp_aspect", shared / "data" / "fewasp", out)
    return out


@pytest.fixture
def write_json() -> Callable[[Path, object], Path]:
    """Write a value as JSON, its folder too."""

    def write(path: Path, value: object) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(value), "utf-8")
        return path

    return write


@pytest.fixture
def write_yelp() -> Callable[[Path, Mapping[str, list[str]]], Path]:
    """Write ``{sentence: aspects}`` as a Yelp_aspect file and give its folder."""

    def write(folder: Path, sentences: Mapping[str, list[str]], name: str = "hotel.txt") -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        rows = [
            f"r{i}\t{text}\t{aspect}\t 1 \n" for i, (text, found) in enumerate(sentences.items()) for aspect in found
        ]
        (folder / name).write_text("".join(rows), "utf-8")
        return folder

    return write


@pytest.fixture
def hundred_aspects() -> dict[str, list[str]]:
    """Sentences of 100 aspects, with one, two or three aspects each, and one aspect that is too rare to be taken."""
    chance = random.Random(0)
    names = [f"aspect_{number:03d}" for number in range(100)]
    sentences = {
        f"this is sentence {number} of {name} .": [name, *chance.sample([n for n in names if n != name], number % 3)]
        for name in names
        for number in range(12)
    }
    return sentences | {"nobody talks of this .": ["rare"]}


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    """Run the command in this process."""
    from awatt.cli import main

    def call(*arguments: object) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["awatt", *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as stop:
            main()
        assert isinstance(stop.value.code, int)
        return Outcome(stop.value.code, *capsys.readouterr())

    return call


@pytest.fixture(scope="session")
def script() -> Path:
    """The installed ``awatt`` command."""
    path = Path(sys.executable).with_name("awatt")
    if not path.is_file():
        pytest.skip(f"needs the installed command {path}; run pip install --editable .")
    return path


@pytest.fixture
def run_script(script: Path, tmp_path: Path) -> Callable[..., Outcome]:
    """Run the installed command in a process of its own."""

    def call(*arguments: object) -> Outcome:
        done = subprocess.run(
            [script, *map(str, arguments)], capture_output=True, text=True, timeout=300, cwd=tmp_path, check=False
        )
        return Outcome(done.returncode, done.stdout, done.stderr)

    return call


@pytest.fixture(scope="session")
def toy_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sentences of noise words and a word of each aspect; noise and aspects lie in different dimensions, so that
    what is learned on the train aspects is of use for the others."""
    chance = np.random.default_rng(0)
    folder = tmp_path_factory.mktemp("data") / "toy"
    folder.mkdir()
    noise = [f"noise{number}" for number in range(20)]
    vectors = {word: [*chance.normal(0, 1, 4), 0, 0, 0, 0] for word in noise}
    for split, n_aspects in (("train", 8), ("val", 5), ("test", 5)):
        aspects = [f"{split}{number}" for number in range(n_aspects)]
        for aspect in aspects:
            centre = chance.normal(0, 1, 4)
            vectors |= {f"{aspect}word{k}": [0, 0, 0, 0, *(centre + chance.normal(0, 0.1, 4))] for k in range(3)}
        rows = []
        for number in range(12 * n_aspects):
            found = sorted({aspects[number % n_aspects], aspects[(number + (number % 4 == 0)) % n_aspects]})
            words = [*chance.choice(noise, 4), *(f"{aspect}word{chance.integers(3)}" for aspect in found)]
            rows.append({"text": " ".join(chance.permutation(words)), "aspects": found})
        (folder / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    lines = (f"{word} {' '.join(f'{value:.4f}' for value in values)}\n" for word, values in vectors.items())
    (folder / "glove.txt").write_text("".join(lines))
    (folder / "provenance.json").write_text(json.dumps({"dataset": "toy", "splits": {"train": {"source": "made"}}}))
    return folder


@pytest.fixture(scope="session")
def make_run(toy_data: Path) -> Callable[..., Path]:
    """Write a run's folder, as ``awatt train`` leaves it, with random weights: 3 aspects, 4 examples, 3 queries."""

    def make(out: Path, method: str = "proto-awatt", threshold: str = "static") -> Path:
        torch = pytest.importorskip("torch")

        from awatt.data.corpus import load_corpus
        from awatt.data.sampler import EpisodeShape
        from awatt.research.scoring import score_episodes
        from awatt.research.system import System, SystemConfig

        torch.manual_seed(0)
        corpus = load_corpus(toy_data, "test")
        settings = {"encoder": {"hidden": 8, "vectors": str(toy_data / "glove.txt")}}
        names = {"method": method, "encoder": "glove-cnn", "threshold": threshold, "n_way": 3}
        system = System.create(SystemConfig.from_mapping({**names, "settings": settings}), corpus.sentences)
        if system.threshold.calibrated:
            system.threshold.calibrate(list(score_episodes(system, corpus, EpisodeShape(3, 4, 3), 20, 1)))
        system.trained_with = {"episode": {"n_way": 3, "n_shot": 4, "n_query": 3}, "seed": 5}
        system.save(out, "card")
        return out

    return make
