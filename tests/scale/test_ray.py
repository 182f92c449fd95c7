"""A real Ray with two nodes on this machine gives the rows of the local engine, even if a worker or node is lost."""

from __future__ import annotations

import importlib.util
import json
import os
import secrets
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from awatt import AspectDetector
from awatt.detector.bulk import BulkConfig, Summary, detect_file
from awatt.errors import AwattError
from awatt.records.writer import RecordWriter
from awatt.scale import detection
from awatt.scale.detection import detect_files

pytestmark = [
    pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="needs Ray: make test-ray"),
    pytest.mark.xdist_group("ray"),  # one cluster, however many processes run the tests
]
NEEDS_TORCH = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs torch")
Run = Callable[..., Any]
TEXTS = ["The pizza was delicious!", "a rude waiter", "", "😀", "the parking lot was full", "zxqv", "tasty, but dear"]
EXAMPLES = {"food": ["delicious pizza", "tasty soup"], "staff": ["a rude waiter"], "parking": ["the lot was full"]}
FILES, ROWS = 12, 1500


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Two nodes of one core each, on 127.0.0.1, that nobody else may use."""
    os.environ.update({"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)})
    os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}  # the latter: 127.0.0.1
    import ray
    from ray.cluster_utils import Cluster

    node = {"node_ip_address": "127.0.0.1", "num_cpus": 1, "object_store_memory": 80 * 2**20}
    cluster = Cluster(initialize_head=True, head_node_args={**node, "include_dashboard": False})
    try:
        # Connected before there is a second node, because the driver must not be on the one that is removed.
        ray.init(address=cluster.address, log_to_driver=False, logging_level="error")
        cluster.second = cluster.add_node(**node)
        yield cluster
    finally:
        ray.shutdown()
        cluster.shutdown()


@pytest.fixture(scope="module")
def detector() -> AspectDetector:
    return AspectDetector.from_examples(EXAMPLES)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, detector: AspectDetector) -> Path:
    """Files of reviews, all in one file, and what the local engine finds in it."""
    folder = tmp_path_factory.mktemp("reviews")
    rows = [{"text": f"{TEXTS[n % len(TEXTS)]} {n % 13}", "id": n} for n in range(FILES * ROWS)]
    for number in range(FILES):
        with RecordWriter(folder / f"reviews-{number:02d}.jsonl") as writer:
            writer.write(rows[number * ROWS : (number + 1) * ROWS])
    for suffix in ("jsonl", "csv"):
        with RecordWriter(folder / f"all.{suffix}") as writer:
            writer.write(rows)
    detect_file(detector, str(folder / "all.jsonl"), str(folder / "local.jsonl"), BulkConfig())
    (folder / "aspects.json").write_text(json.dumps(EXAMPLES))
    return folder


def sorted_lines(*paths: Path) -> list[bytes]:
    return sorted(line for path in paths for line in path.read_bytes().splitlines(keepends=True))


def parts(out: Path) -> list[Path]:
    return sorted(out.glob("part-*"))


@pytest.mark.parametrize("suffix", ["jsonl", "csv"])
def test_the_same_bytes_as_the_local_engine(
    cluster: Any, detector: AspectDetector, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    monkeypatch.setattr(detection, "MIN_PART", 50_000)
    seen: list[int] = []
    source, config = str(folder / f"all.{suffix}"), BulkConfig(out_format="jsonl")
    summary = detect_files(detector, source, str(tmp_path / "out"), config, on_batch=lambda s: seen.append(s.rows))
    assert summary.rows == FILES * ROWS
    assert len(parts(tmp_path / "out")) > 4
    detect_file(detector, source, str(tmp_path / "local.jsonl"), BulkConfig())
    assert b"".join(path.read_bytes() for path in parts(tmp_path / "out")) == (tmp_path / "local.jsonl").read_bytes()
    assert seen == sorted(seen)


def test_no_row_is_lost_or_doubled_when_a_node_is_lost(
    cluster: Any, detector: AspectDetector, folder: Path, tmp_path: Path
) -> None:
    removed: list[int] = []

    def remove(summary: Summary) -> None:
        if summary.rows and not removed:
            removed.append(summary.rows)
            cluster.remove_node(cluster.second, allow_graceful=False)

    try:
        summary = detect_files(
            detector, str(folder / "reviews-*.jsonl"), str(tmp_path / "out"), BulkConfig(), workers=2, on_batch=remove
        )
    finally:
        cluster.second = cluster.add_node(node_ip_address="127.0.0.1", num_cpus=1, object_store_memory=80 * 2**20)
    assert 0 < removed[0] < summary.rows == FILES * ROWS
    assert sorted_lines(*parts(tmp_path / "out")) == sorted_lines(folder / "local.jsonl")


def busy_workers(raylet: int) -> list[int]:
    """The child processes of a raylet that are processing a part."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((path / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == raylet and (path / "cmdline").read_bytes().startswith(b"ray::detect_part"):
                found.append(int(path.name))
        except (OSError, ValueError):
            continue
    return found


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_no_row_is_lost_or_doubled_when_a_worker_is_killed(
    cluster: Any, detector: AspectDetector, folder: Path, tmp_path: Path
) -> None:
    raylets = [node.all_processes["raylet"][0].process.pid for node in cluster.list_all_nodes()]
    killed: list[int] = []
    done = Event()

    def kill() -> None:
        while not killed and not done.wait(0.005):
            for pid in [pid for raylet in raylets for pid in busy_workers(raylet)][:1]:
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)

    with ThreadPoolExecutor() as pool:
        pool.submit(kill)
        try:
            detect_files(detector, str(folder / "reviews-*.jsonl"), str(tmp_path / "out"), BulkConfig(), workers=2)
        finally:
            done.set()
    assert killed
    assert sorted_lines(*parts(tmp_path / "out")) == sorted_lines(folder / "local.jsonl")


def test_a_job_that_was_killed_is_resumed(
    cluster: Any, detector: AspectDetector, folder: Path, tmp_path: Path, script: Path, run: Run
) -> None:
    out = tmp_path / "out"
    command = ["detect", folder / "reviews-*.jsonl", "--examples", folder / "aspects.json", "--out", out]
    command += ["--engine", "ray"]
    process = subprocess.Popen([script, *command, "--workers", "1"], stderr=subprocess.PIPE)
    while process.poll() is None and not list(out.glob("_awatt/part-*.json")):
        time.sleep(0.02)
    process.kill()
    assert process.wait() == -signal.SIGKILL
    done = {path: path.stat().st_mtime_ns for path in out.glob("_awatt/part-*.json")}
    assert 0 < len(done) < FILES
    code, _, err = run(*command)
    assert code == 2
    assert "already holds a job. Use --resume" in err
    code, _, err = run(*command, "--resume", "--threshold", 0.9)
    assert code == 2
    assert "started with another threshold or mode" in err
    code, _, err = run(*command, "--resume")
    assert code == 0
    assert err.startswith(f"{FILES * ROWS:,} sentences in ")
    assert {path: path.stat().st_mtime_ns for path in done} == done
    local = tmp_path / "local.jsonl"  # the command learns from the file, unlike the folder's own local.jsonl
    code, *_ = run("detect", folder / "all.jsonl", "--examples", folder / "aspects.json", "--out", local)
    assert code == 0
    assert sorted_lines(*parts(out)) == sorted_lines(local)
    code, _, err = run(*command, "--resume")
    assert (code, err) == (0, f"awatt: {out}: already complete, there is nothing to resume.\n")


def test_a_file_with_the_same_size_and_time_but_other_content_is_not_resumed(
    cluster: Any, detector: AspectDetector, tmp_path: Path
) -> None:
    def write(name: str, text: str) -> None:
        (tmp_path / name).write_text(json.dumps({"text": text}) + "\n")
        os.utime(tmp_path / name, ns=(0, 0))

    def stop(summary: Summary) -> None:
        if summary.rows:
            raise KeyboardInterrupt

    for name in ("a.jsonl", "b.jsonl"):
        write(name, "the pizza")
    out = tmp_path / "out"
    job = (detector, str(tmp_path / "*.jsonl"), str(out), BulkConfig())
    with pytest.raises(KeyboardInterrupt):
        detect_files(*job, on_batch=stop, workers=1)  # the first file is finished
    assert (out / "_awatt" / "part-00000-00000.json").exists()
    write("a.jsonl", "the pasta")
    with pytest.raises(AwattError, match=r"a\.jsonl: 1 row already read has changed since the run was started"):
        detect_files(*job, resume=True)
    write("a.jsonl", "the pizza")
    assert detect_files(*job, resume=True).rows == 2


@pytest.mark.parametrize("suffix", ["csv", "parquet", "jsonl.gz"])
def test_every_format_in_and_out(cluster: Any, detector: AspectDetector, tmp_path: Path, suffix: str) -> None:
    source, local, out = tmp_path / f"in.{suffix}", tmp_path / f"local.{suffix}", tmp_path / "out"
    with RecordWriter(source) as writer:
        writer.write([{"id": number, "text": f'{text}, "x"\ny'} for number, text in enumerate(TEXTS * 20)])
    config = BulkConfig(words=True)
    detect_file(detector, str(source), str(local), config)
    address = f"file://{out}" if suffix == "csv" else str(out)
    detect_files(detector, str(source), address, config)
    (found,) = parts(out)
    assert found.suffixes == local.suffixes
    assert found.read_bytes() == local.read_bytes()


@pytest.mark.parametrize("suffix", ["jsonl", "csv"])
def test_rows_that_cannot_be_read_are_listed_with_their_lines(
    cluster: Any, tmp_path: Path, folder: Path, run: Run, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    monkeypatch.setattr(detection, "MIN_PART", 200)
    lines = [json.dumps({"text": f"the pizza {number}"}) for number in range(100)]
    if suffix == "csv":
        lines = ["text", *(f'"the pizza, {number}"' for number in range(1, 100))]
    for number in (3, 50, 51, 99):
        lines[number] = f"broken, {number}"
    source = tmp_path / f"in.{suffix}"
    source.write_text("\n".join(lines) + "\n")
    command = ("detect", source, "--examples", folder / "aspects.json", "--max-errors", 3, "--quiet")
    ray = run(*command, "--out", tmp_path / "out", "--engine", "ray")
    local = run(*command, "--out", tmp_path / f"local.{suffix}")
    assert len(parts(tmp_path / "out")) > 5
    assert (ray.code, ray.err) == (local.code, local.err)  # stdout may have Ray's own note about the node lost above
    assert ray.code == 3
    assert [f"line {number}:" in ray.err for number in (4, 51, 52, 100)] == [True, True, True, False]
    assert "and 1 more row that cannot be read" in ray.err


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_double_stars_in_an_address_found_the_files_of_one_level_only(
    cluster: Any, tmp_path: Path, folder: Path, run: Run, scheme: str
) -> None:
    for name in ("a.csv", "one/b.csv", "one/two/c.csv"):
        (tmp_path / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "in" / name).write_text(f"text,file\nthe pizza,{name}\n")
    pattern, out = f"{scheme}{tmp_path}/in/**/*.csv", tmp_path / "out"
    done = run("detect", pattern, "--examples", folder / "aspects.json", "--out", f"{scheme}{out}", "--engine", "ray")
    assert (done.code, done.err.splitlines()[0].partition(" in ")[0]) == (0, "3 sentences")
    assert [path.read_text().splitlines()[1].split(",")[1] for path in parts(out)] == [
        "a.csv",
        "one/b.csv",
        "one/two/c.csv",
    ]


def test_an_error_of_a_whole_file_is_one_line(cluster: Any, tmp_path: Path, folder: Path, run: Run) -> None:
    (tmp_path / "in.csv").write_text("id,review\n1,good\n")
    arguments = ("detect", tmp_path / "in.csv", "--examples", folder / "aspects.json", "--engine", "ray")
    code, _, err = run(*arguments, "--out", tmp_path / "out")
    assert code == 2
    assert "Name the one that holds the text with --text-column" in err
    assert "Traceback" not in err
    code, _, err = run(*arguments)
    assert (code, err) == (2, "awatt: --engine ray writes a folder. Give one: --out found, say.\n")


def test_a_dataset_is_annotated(cluster: Any, detector: AspectDetector) -> None:
    import ray

    from awatt.scale.dataset import annotate

    rows = ray.data.from_items([{"text": text, "id": number} for number, text in enumerate(TEXTS)])
    found = sorted(annotate(detector, rows, prefix="x_").take_all(), key=lambda row: row["id"])
    wanted = detector.detect_many(TEXTS)
    assert [list(row["x_aspects"]) for row in found] == [each.aspects for each in wanted]
    assert [{name: row[f"x_score_{name}"] for name in EXAMPLES} for row in found] == [each.scores for each in wanted]
    with pytest.raises(AwattError, match="found list"):
        annotate(detector, TEXTS)


@NEEDS_TORCH
def test_runs_that_fail_are_tried_once_more_then_listed(
    cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from awatt.reproduce.results import result_path
    from awatt.reproduce.suites import ITEMS, Choice
    from awatt.scale import experiments

    runs = list(ITEMS["table-single"].runs(Choice((5, 10, 15), ("proto-awatt",), ((5, 5),), ())))
    assert len(runs) == 3
    tried, once, never = str(tmp_path), runs[0].name, runs[1].name

    def fake(run: Any, paths: Any, overrides: Any) -> dict[str, Any]:
        with open(f"{tried}/{run.name.replace('/', '_')}.tries", "a+") as stream:
            stream.write("x")
            stream.seek(0)
            first = stream.read() == "x"
        if run.name == never or (run.name == once and first):
            raise ValueError("out of luck")
        return {"seed": run.seed}

    monkeypatch.setattr(experiments, "_run", fake)
    done: list[str] = []
    with pytest.raises(AwattError, match=r"1 of 3 runs failed twice: .*out of luck"):
        experiments.run_all(runs, tmp_path, tmp_path / "results", tmp_path, 2, (), lambda run, _: done.append(run.name))
    assert sorted(done) == sorted([once, runs[2].name])
    assert json.loads(result_path(tmp_path / "results", runs[0]).read_text()) == {"seed": 5}
    assert (tmp_path / f"{never.replace('/', '_')}.tries").read_text() == "xx"


@NEEDS_TORCH
def test_runs_leave_the_files_of_the_local_engine(cluster: Any, toy_data: Path, tmp_path: Path) -> None:
    from awatt.reproduce import runner
    from awatt.reproduce.suites import Run
    from awatt.scale import experiments

    shutil.copytree(toy_data, tmp_path / "data" / "FewAsp(single)")
    runs = [Run("FewAsp(single)", 5, 2, "prototypical", seed) for seed in (5, 10)]
    small = (f"encoder.vectors={tmp_path / 'data' / 'FewAsp(single)' / 'glove.txt'}", "encoder.hidden=8")
    small += ("training.episodes_per_epoch=4", "training.validation_episodes=4", "training.max_epochs=2")
    for name, engine in {"local": runner, "ray": experiments}.items():
        folders = (tmp_path / "data", tmp_path / name, tmp_path / f"{name}-work")
        engine.run_all(runs, *folders, 2, small, lambda run, result: None)
    found = {
        name: {
            path.name: json.loads(path.read_text()) | {"seconds": 0} for path in (tmp_path / name).rglob("*-seed*.json")
        }
        for name in ("local", "ray")
    }
    assert len(found["ray"]) == 2
    assert found["ray"] == found["local"]
