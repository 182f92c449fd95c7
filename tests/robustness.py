"""Bad inputs, kills and model folders made by someone else: how many were tried, and which of them failed.

    python tests/robustness.py            # a table; exit code 1 if anything failed
    python tests/robustness.py 1000       # more of each kind

A failure is a traceback, an unknown exit code, rows that are lost or doubled, or a score that is not a number.
``test_robustness.py`` runs some of the same cases.
"""

from __future__ import annotations

import contextlib
import csv
import hashlib
import io
import json
import math
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from safetensors.numpy import load, save

from awatt import AspectDetector
from awatt.errors import AwattError

EXAMPLES = {"food": ["the pizza was cold", "tasty soup"], "staff": ["a rude waiter", "the waitress smiled"]}
REVIEWS = [f"{text} {number}" for number in range(4) for text in ("cold soup", "the waiter smiled", "we sat outside")]

# -- model folders

NUMBERS = (0, 1, -1, 2, 10**30, 0.5, -0.5, 1.5, math.nan, math.inf)
STRINGS = ("", "x", "../x", "/etc/passwd", "\ud800")
NESTED = ([], {}, [None], ["a", "a"], [[]], {"a": {}}, {"": 0}, {"/etc/passwd": "0" * 64}, {"../x": "0" * 64})
JUNK: tuple[Any, ...] = (None, True, False, *NUMBERS, *STRINGS, *NESTED)


def save_detector(folder: Path) -> Path:
    """A detector with everything that a folder can hold."""
    return AspectDetector.from_examples(EXAMPLES, reviews=REVIEWS, threshold={"food": 0.3}).save_pretrained(folder)


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The place of every value within a JSON value; of long lists and objects only the first ones."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for _, (key, each) in zip(range(40), items, strict=False):
        yield from _places(each, (*path, key))


def _change_json(content: bytes, rng: random.Random) -> bytes:
    """Replace, remove or wrap one value."""
    value = json.loads(content)
    *above, last = rng.choice([place for place in _places(value) if place])
    owner = value
    for key in above:
        owner = owner[key]
    action = rng.choice(["replace", "replace", "replace", "remove", "nest"])
    if action == "remove":
        del owner[last]
    else:
        depth = rng.choice([1, 50, 900]) if action == "nest" else 0
        owner[last] = owner[last] if depth else rng.choice(JUNK)
        for _ in range(depth):
            owner[last] = [owner[last]]
    return json.dumps(value).encode("utf-8", "surrogatepass")


def _change_array(array: np.ndarray[Any, Any], rng: random.Random) -> np.ndarray[Any, Any]:
    action = rng.choice(
        ["empty", "flat", "deeper", "shorter", "longer", "first", "type", "value", "value", "transposed"]
    )
    if action == "value":
        array = array.copy()
        number = rng.choice([np.nan, np.inf, -np.inf, 1e38, -1e38, -1, 0])
        with np.errstate(all="ignore"):
            array.reshape(-1)[: rng.choice([1, array.size])] = np.array(number).astype(array.dtype)
        return array
    changed = {
        "empty": lambda: array[:0] if array.ndim else np.zeros(0, array.dtype),
        "flat": lambda: array.reshape(-1),
        "deeper": lambda: array[None],
        "shorter": lambda: array[:-1] if array.ndim else array[None][:0],
        "longer": lambda: np.concatenate([array, array[:1]]) if array.ndim else np.stack([array, array]),
        "first": lambda: array.reshape(-1)[:1],
        "type": lambda: array.astype(rng.choice([np.float16, np.float64, np.int64, np.uint8, np.bool_])),
        "transposed": lambda: array.T,
    }[action]()
    return np.array(changed, order="C")


def _change_tensors(content: bytes, rng: random.Random) -> bytes:
    arrays = dict(load(content))
    name = rng.choice(sorted(arrays))
    if rng.random() < 0.15:
        del arrays[name]
    elif rng.random() < 0.1:
        arrays = {}
    else:
        with np.errstate(all="ignore"):
            arrays[name] = _change_array(arrays[name], rng)
    return save(arrays)


def _change_bytes(content: bytes, rng: random.Random) -> bytes:
    place = rng.randrange(min(len(content), 2000))
    return rng.choice([b"", content[:place], content[:place] + bytes([rng.randrange(256)]) + content[place + 1 :]])


def _replace_by_special_file(path: Path, rng: random.Random) -> None:
    path.unlink()
    action = rng.choice(["fifo", "folder", "absolute", "relative", "missing"])
    if action == "fifo":
        os.mkfifo(path)
    elif action == "folder":
        path.mkdir()
    elif action != "missing":
        path.symlink_to("/dev/zero" if action == "absolute" else f"../whole/{path.name}")


def mutate(folder: Path, seed: int) -> None:
    """Change one thing in a saved detector; the digests match afterwards, as an attacker would see to."""
    rng = random.Random(seed)
    path = rng.choice(sorted(path for path in folder.iterdir() if path.suffix != ".md"))
    if rng.random() < 0.1:
        _replace_by_special_file(path, rng)
        return
    content = path.read_bytes()
    if rng.random() < 0.1:
        changed = _change_bytes(content, rng)
    elif path.suffix == ".safetensors":
        changed = _change_tensors(content, rng)
    elif path.suffix == ".jsonl":
        first, _, rest = content.partition(b"\n")
        changed = _change_json(first, rng) + b"\n" + rest
    else:
        changed = _change_json(content, rng)
    path.write_bytes(changed)
    if path.name != "config.json":
        config = json.loads((folder / "config.json").read_bytes())
        config["sha256"][path.name] = hashlib.sha256(changed).hexdigest()
        (folder / "config.json").write_text(json.dumps(config))


def problem_of_folder(folder: Path) -> str | None:
    """What goes wrong in loading and using the folder; None if it works, or is refused with one line."""
    try:
        found = AspectDetector.from_pretrained(folder).detect_many(["the soup was cold", ""])
        scores = [score for each in found for score in each.scores.values()]
        return None if all(0 <= score <= 1 for score in scores) else f"scores {scores}"
    except AwattError as error:
        return f"several lines: {error}" if "\n" in str(error) else None
    except BaseException as error:  # a panic of a Rust library is not an Exception
        if isinstance(error, KeyboardInterrupt):
            raise
        return f"{type(error).__name__}: {error}"


def problem_of_mutation(whole: Path, seed: int) -> str | None:
    """The problem with a copy of the folder ``whole`` in which one thing was changed."""
    folder = whole.parent / f"mutated-{seed}"
    shutil.copytree(whole, folder)
    try:
        mutate(folder, seed)
        return problem_of_folder(folder)
    finally:
        shutil.rmtree(folder)


# -- input files

ROWS = 60
LINES = re.compile(rb"\r\n|\r|\n")
BAD_JSON = rb"""
oops
[]
{}
null
"text"
{"text": 1}
{"text": null}
{"text": "a", "text": "b"}
{"text": "a", "b": Infinity}
{"text": "a", "b": 1e400}
{"text": "\ud800"}
{"text": "a"
""".splitlines()
BAD_CELLS = (b'"', b'"open, and not closed', b'a "quoted" word', b"a,b,c,d,e", b",,,", b"\x80,1")
BAD_LINES = (*BAD_JSON, *BAD_CELLS, b"[" * 5000, b"\xff\xfe", b"\0", b"\r")


def _whole_file(kind: str) -> bytes:
    rows = [(str(number), f'The soup, number {number}, was "cold".', "x") for number in range(ROWS)]
    if kind == "jsonl":
        return b"".join(json.dumps({"id": one, "text": text}).encode() + b"\n" for one, text, _ in rows)
    if kind == "txt":
        return b"".join(f"{text}\n".encode() for _, text, _ in rows)
    stream = io.StringIO()
    csv.writer(stream, lineterminator="\n").writerows([("id", "text", "more"), *rows])
    return stream.getvalue().encode()


def _spoil(content: bytes, rng: random.Random) -> bytes:
    action = rng.choice(["line", "line", "line", "byte", "cut", "quote", "twice", "utf-16", "empty", "random"])
    lines = content.splitlines(keepends=True)
    if action == "line":
        for _ in range(rng.choice([1, 3, 20])):
            lines.insert(rng.randrange(1, len(lines)), rng.choice(BAD_LINES) + b"\n")
        return b"".join(lines)
    place = rng.randrange(len(content))
    return {
        "byte": content[:place] + bytes([rng.randrange(256)]) + content[place + 1 :],
        "cut": content[:place],
        "quote": content[:place] + b'"' + content[place:],
        "twice": content + content,
        "utf-16": content.decode().encode("utf-16"),
        "empty": b"",
        "random": rng.randbytes(500),
    }[action]


def run_command(*arguments: object) -> tuple[int, str]:
    """The exit code and stderr of a command, run in this process."""
    from awatt.cli import main

    error = io.StringIO()
    with mock.patch.object(sys, "argv", ["awatt", *map(str, arguments)]), contextlib.redirect_stderr(error):
        try:
            main()
        except SystemExit as end:
            return int(end.code or 0), error.getvalue()
    return 0, error.getvalue()


def problem_of_input(folder: Path, seed: int) -> str | None:
    """What goes wrong in detecting in a spoiled file; None if every line is in the output or counted as left out."""
    rng = random.Random(seed)
    kind = rng.choice(["jsonl", "csv", "txt"])
    content = _spoil(_whole_file(kind), rng)
    source, out = folder / f"in.{kind}", folder / "out.jsonl"
    source.write_bytes(content)
    given = ("--aspects", "food,staff", "--threshold", "0.5", "--out", out, "--overwrite")
    try:
        code, error = run_command("detect", source, *given, "--max-errors", 10**6)
    except Exception as failure:
        return f"{kind}: {type(failure).__name__}: {failure}"
    if code not in (0, 2, 3) or "Traceback" in error:
        return f"{kind}: exit code {code}: {error[-200:]}"
    if code == 2:
        return None if error.count("\n") == 1 else f"{kind}: exit code 2, but several lines: {error}"
    written, left_out = out.read_bytes().count(b"\n"), error.count(f"awatt: {source}, line ")
    lines = sum(1 for line in LINES.split(content.removeprefix(b"\xef\xbb\xbf")) if line.decode("latin-1").strip())
    if kind != "csv" and written + left_out != lines:
        return f"{kind}: {lines} lines, but {written} written and {left_out} left out"
    return None


def problem_of_open_quote(folder: Path, seed: int) -> str | None:
    """What goes wrong with a CSV file in which one quote is not closed."""
    rng = random.Random(seed)
    rows = [f"{number},The soup {number} was cold,x\n" for number in range(2000)]
    opened, closing = sorted(rng.sample(range(2000), 2))
    rows[opened] = f'{opened},"The soup,x\n'
    if closing - opened > 5:
        rows[closing] = rng.choice([f'{closing},A 5",x\n', f'{closing},"quoted, too",x\n', rows[closing]])
    source, out = folder / "in.csv", folder / "out.jsonl"
    source.write_text("id,text,more\n" + "".join(rows))
    code, _ = run_command("detect", source, "--aspects", "food", "--threshold", "0.5", "--out", out, "--overwrite")
    written = [json.loads(line)["id"] for line in out.read_text().splitlines()]
    if code == 3 and written == [str(number) for number in range(2000) if number != opened]:
        return None
    return f"exit code {code}, {len(written)} of 1,999 rows"


# -- kills, and two runs at once

#: the command with small batches, in a process that sends itself a signal after some commits
STOPPED = """
import os, sys
from awatt.cli import main
from awatt.detector import bulk
from awatt.records import resumable

number, commits, *arguments = sys.argv[1:]
resumable.COMMIT_INTERVAL, bulk.BATCH, left = 0.0, 100, [int(commits)]
commit = resumable.ResumableWriter._commit

def commit_and_stop(self):
    commit(self)
    left[0] -= 1
    if left[0] == 0:
        os.kill(os.getpid(), int(number))

resumable.ResumableWriter._commit = commit_and_stop
sys.argv = ["awatt", *arguments]
main()
"""


def _start(number: int, commits: int, command: list[str]) -> subprocess.Popen[bytes]:
    line = [sys.executable, "-c", STOPPED, str(number), str(commits), *command]
    return subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def _detect_command(folder: Path, out: str) -> list[str]:
    source = folder / "many.csv"
    if not source.exists():
        rows = "".join(f'{number},"The soup, number {number}, was cold"\n' for number in range(2000))
        source.write_text(f"id,text\n{rows}")
    return ["detect", str(source), "--aspects", "food,staff", "--threshold", "0.5", "--out", str(folder / out)]


def problem_of_kills(folder: Path, seed: int) -> str | None:
    """What differs after some kills, each followed by --resume, from a run that was left alone."""
    rng, command = random.Random(seed), _detect_command(folder, f"killed-{seed}.jsonl")
    for _ in range(rng.choice([1, 2, 3])):
        _start(signal.SIGKILL, rng.randrange(1, 8), [*command, "--resume"]).wait()
    code, error = run_command(*command, "--resume")
    if code:
        return f"exit code {code}: {error}"
    run_command(*_detect_command(folder, "whole.jsonl"), "--overwrite")
    same = (folder / f"killed-{seed}.jsonl").read_bytes() == (folder / "whole.jsonl").read_bytes()
    return None if same else "another result than without a kill"


def problem_of_two_runs(folder: Path, seed: int) -> str | None:
    """What goes wrong when a second run writes to the same file while the first one pauses."""
    option = random.Random(seed).choice([[], ["--resume"], ["--overwrite"]])
    command = _detect_command(folder, f"two-{seed}.jsonl")
    with _start(signal.SIGSTOP, 3, command) as first:
        os.waitid(os.P_PID, first.pid, os.WSTOPPED)
        code, error = run_command(*command, *option)
        first.send_signal(signal.SIGCONT)
        if first.wait() or code != 2 or f"process {first.pid} on " not in error:
            return f"exit codes {first.returncode} and {code}: {error}"
    rows = (folder / f"two-{seed}.jsonl").read_bytes().count(b"\n")
    return None if rows == 2000 else f"{rows} of 2,000 rows"


KINDS: dict[str, tuple[Callable[[Path, int], str | None], int]] = {
    "spoiled input files": (problem_of_input, 1),
    "open quotes in CSV": (problem_of_open_quote, 4),
    "runs killed and resumed": (problem_of_kills, 40),
    "two runs with one output": (problem_of_two_runs, 40),
    "changed model folders": (lambda folder, seed: problem_of_mutation(folder / "whole", seed), 1),
}


def main() -> int:
    """Try each kind; the second number of ``KINDS`` says how many times as long one takes."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 400
    failed = 0
    print(f"{'what':<26} {'tried':>6} {'failed':>6}")
    with tempfile.TemporaryDirectory() as name:
        save_detector(Path(name) / "whole")
        for kind, (find_problem, cost) in KINDS.items():
            tried = max(3, count // cost)
            problems = {seed: problem for seed in range(tried) if (problem := find_problem(Path(name), seed))}
            print(f"{kind:<26} {tried:>6} {len(problems):>6}")
            for seed, problem in problems.items():
                print(f"  {seed}: {problem}")
            failed += len(problems)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
