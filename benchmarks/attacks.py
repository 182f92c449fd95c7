"""Attacks on ``awatt serve``, and load: what was tried, and what failed.

    python benchmarks/attacks.py [--megabytes 2200]

Starts a server of its own on 127.0.0.1 with a new project, tries the cases that the tests share (``tests/server/
attack_*.py``) over the network, and then load: half-open connections, guessed tokens, long texts, many reports. Each
check names what it needs; the exit code is 1 if any failed. A few minutes, and nothing but this machine is reached.
"""

from __future__ import annotations

import argparse
import http.client
import json
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from urllib.parse import urlsplit

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "server"))

from attack_files import PROJECTS, try_project, write_sound
from attack_requests import RAW, REQUESTS, Attack
from attack_uploads import UPLOADS

COMMAND = [sys.executable, "-c", "from awatt.cli import main; main()", "serve", "--port", "0", "--project"]
MAX_MEGABYTES = 1_500  # that the server and what it starts may use, whatever is uploaded
MAX_UPLOAD_SECONDS = 90.0
MAX_SMALL_SECONDS = 5.0  # for a label or a short text while large requests are served
HEADER_SECONDS = 10.0  # after which a half-open connection is closed


class Server:
    """``awatt serve`` as a process."""

    def __init__(self, project: Path) -> None:
        self.process = subprocess.Popen([*COMMAND, project], stderr=subprocess.PIPE, text=True)
        assert self.process.stderr is not None
        lines = [self.process.stderr.readline() for _ in range(3)]
        self.base, self.token = lines[0].split()[-1].partition("/?")[0], lines[1].split()[-1]
        self.host = urlsplit(self.base).netloc
        name, _, port = self.host.rpartition(":")
        self.address = name, int(port)

    def send(self, method: str, path: str, body: bytes, headers: dict[str, str]) -> tuple[int, bytes]:
        """The status and the content of the response."""
        connection = http.client.HTTPConnection(*self.address, timeout=300)
        try:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            given = {"host": self.host, "content-length": str(len(body))} | headers
            for name, value in given.items():
                connection.putheader(name, value.encode())
            connection.endheaders(body)
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    def ask(self, method: str, path: str, value: object = None) -> tuple[int, bytes]:
        """With the token, and JSON."""
        body = b"" if value is None else json.dumps(value).encode()
        headers = {"authorization": f"Bearer {self.token}", "content-type": "application/json"}
        return self.send(method, path, body, headers)

    @contextmanager
    def watch_memory(self) -> Iterator[list[float]]:
        """The most megabytes that it uses meanwhile, with the processes that it starts; known at the end."""
        folder, helpers, done = Path(f"/proc/{self.process.pid}"), dict[str, int](), threading.Event()

        def look() -> None:
            while not done.wait(0.02):
                started = [each.read_text().split() for each in folder.glob("task/*/children")]
                for child in set(chain.from_iterable(started)):
                    helpers[child] = max(helpers.get(child, 0), high_water(Path("/proc") / child))

        (folder / "clear_refs").write_text("5")  # the high-water mark begins anew
        thread, found = threading.Thread(target=look), list[float]()
        thread.start()
        try:
            yield found
        finally:
            done.set()
            thread.join()
            found.append((high_water(folder) + max(helpers.values(), default=0)) / 1024)


def high_water(process: Path) -> int:
    """The most kilobytes that a process has used; 0 if it has ended."""
    try:
        found = re.search(r"VmHWM:\s+(\d+)", (process / "status").read_text())
    except OSError:
        return 0
    return int(found[1]) if found else 0


class Tally:
    """Counts what was tried and what failed, by kind."""

    def __init__(self) -> None:
        self.failed: dict[str, list[str]] = {}
        self.tried: dict[str, int] = {}

    def add(self, kind: str, name: str, problem: str | None) -> None:
        """One case."""
        self.tried[kind] = self.tried.get(kind, 0) + 1
        print(f"\r\033[K{kind}: {name}", end="", file=sys.stderr, flush=True)
        if problem:
            self.failed.setdefault(kind, []).append(f"{name}: {problem}")

    def show(self) -> int:
        """Print the counts, and return how many failed."""
        print("\r\033[K", end="", file=sys.stderr)
        for kind, tried in self.tried.items():
            print(f"{kind}: {tried} tried, {len(self.failed.get(kind, []))} failed")
        for kind, problems in self.failed.items():
            for problem in problems:
                print(f"FAILED, {kind}, {problem}")
        return sum(map(len, self.failed.values()))


def send_attack(server: Server, attack: Attack) -> str | None:
    """What went wrong, if anything."""
    headers = dict(attack.headers)
    for name, value in {"TOKEN": server.token, "ORIGIN": server.base, "HOST": server.host}.items():
        headers = {key: each.replace(name, value) for key, each in headers.items()}
    try:
        status, _ = server.send(attack.method, attack.path, attack.body, headers)
    except (OSError, http.client.HTTPException) as error:
        # A length that is not true, or a refusal before the whole body was sent, may close the connection.
        return None if "length" in attack.name or "larger" in attack.name else f"no response ({error})"
    return None if status in attack.statuses else f"status {status}, not {attack.statuses}"


def send_raw(server: Server, content: bytes) -> str | None:
    """Bytes that are no request get an error or a closed connection, and never data."""
    with socket.create_connection(server.address, timeout=3 * HEADER_SECONDS) as connection:
        try:
            connection.sendall(content)
            answer = connection.recv(65_536)
        except (ConnectionError, TimeoutError) as error:
            return "it is kept waiting" if isinstance(error, TimeoutError) else None
    return None if not answer or answer.startswith(b"HTTP/1.1 4") else f"answered {answer[:60]!r}"


def send_upload(server: Server, format: str, content: bytes, peaks: list[float]) -> str | None:
    """A file that becomes large: the server responds in time and stays small."""
    headers = {"authorization": f"Bearer {server.token}", "content-type": "application/octet-stream"}
    for path in ("/v1/project/columns", "/v1/project/reviews"):
        began = time.monotonic()
        try:
            with server.watch_memory() as found:
                status, _ = server.send("POST", f"{path}?format={format}", content, headers)
        except (OSError, http.client.HTTPException) as error:
            return f"{path}: no response ({error})"
        seconds, megabytes = time.monotonic() - began, found[0]
        peaks.append(megabytes)
        if status not in (200, 413, 422):
            return f"{path}: status {status}"
        if seconds > MAX_UPLOAD_SECONDS or megabytes > MAX_MEGABYTES:
            return f"{path}: {seconds:.0f} s, {megabytes:.0f} MB"
    return None


def timed(server: Server, method: str, path: str, value: object, statuses: tuple[int, ...] = (200,)) -> str | None:
    """A small request, which must succeed soon."""
    began = time.monotonic()
    status, content = server.ask(method, path, value)
    seconds = time.monotonic() - began
    if status not in statuses:
        return f"status {status}: {content[:200]!r}"
    return None if seconds < MAX_SMALL_SECONDS else f"took {seconds:.1f} s"


def during(server: Server, requests: list[tuple[str, str, object]], then: Callable[[], str | None]) -> str | None:
    """What ``then`` finds while these requests are served; each of them must be answered, too."""
    statuses: list[int] = []
    threads = [
        threading.Thread(target=lambda each=each: statuses.append(server.ask(*each)[0]))  # type: ignore[misc]
        for each in requests
    ]
    for thread in threads:
        thread.start()
    time.sleep(0.5)  # they have arrived
    problem = then()
    for thread in threads:
        thread.join(300)
    unexpected = [status for status in statuses if status not in (200, 503)]
    missing = len(statuses) != len(requests)
    return problem or (f"statuses {statuses}" if unexpected or missing else None)


def half_open(server: Server, count: int) -> str | None:
    """Connections with half a request each; a complete one is served nevertheless."""
    idle = []
    try:
        for _ in range(count):
            idle.append(socket.create_connection(server.address, timeout=30))
            idle[-1].sendall(b"GET /health/live HTTP/1.1\r\nHost: ")
        problem = timed(server, "GET", "/v1/project", None)
        idle[-1].settimeout(3 * HEADER_SECONDS)
        return problem or (None if idle[-1].recv(1) == b"" else "the last one was answered")
    except OSError as error:
        return f"the connection failed ({error})"
    finally:
        for each in idle:
            each.close()


def guesses(server: Server, count: int) -> str | None:
    """Wrong tokens at once: all are refused, and the right one is not slowed down meanwhile."""
    statuses: list[int] = []
    wrong = {"authorization": "Bearer wrong"}
    threads = [
        threading.Thread(target=lambda: statuses.append(server.send("GET", "/v1/project", b"", wrong)[0]))
        for _ in range(count)
    ]
    began = time.monotonic()
    for thread in threads:
        thread.start()
    problem = timed(server, "GET", "/v1/project", None)
    for thread in threads:
        thread.join(60)
    if not set(statuses) <= {401, 429}:
        return f"statuses {set(statuses)}"
    return problem or (None if time.monotonic() - began > 0.9 else "they were not slowed down")


def try_load(server: Server, tally: Tally) -> None:
    """More than the server can do at once."""
    status, content = server.ask("POST", "/v1/project/sample", {"domain": "restaurant"})
    if status != 200:
        raise SystemExit(f"the sample cannot be loaded: {content!r}")
    label = {"aspects": [json.loads(server.ask("GET", "/v1/aspects")[1])["aspects"][0]["id"]]}
    ids = json.loads(server.ask("GET", "/v1/project/sentences")[1])["ids"]
    long = {"texts": ["The soup was cold. " * 1000] * 400}
    small: object = {"texts": ["The soup was cold."]}
    checks: dict[str, Callable[[], str | None]] = {
        "530 half-open connections": lambda: half_open(server, 530),
        "60 guessed tokens": lambda: guesses(server, 60),
        "four requests of 7.6 MB, then a label": lambda: during(
            server,
            [("POST", "/v1/detect", long)] * 4,
            lambda: timed(server, "PUT", f"/v1/project/sentences/{ids[0]}", label),
        ),
        "four requests of 7.6 MB, then a short one": lambda: during(
            server, [("POST", "/v1/detect", long)] * 4, lambda: timed(server, "POST", "/v1/detect", small, (200, 503))
        ),
        "20 reports, then a label": lambda: during(
            server,
            [("GET", "/v1/report", None)] * 20,
            lambda: timed(server, "PUT", f"/v1/project/sentences/{ids[1]}", label),
        ),
        "200 labels at once": lambda: during(
            server,
            [("PUT", f"/v1/project/sentences/{ids[number % 50]}", label) for number in range(200)],
            lambda: timed(server, "GET", "/health/live", None),
        ),
    }
    for name, check in checks.items():
        tally.add("load", name, check())


def main() -> None:
    """Start a server, try everything, and print the counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=2_200, help="What each small file becomes. [default: 2200]")
    options = parser.parse_args()
    tally = Tally()
    with tempfile.TemporaryDirectory() as folder:
        sound = write_sound(Path(folder) / "project.sqlite").read_bytes()
        for number, (name, change) in enumerate(PROJECTS.items()):
            path = Path(folder) / str(number) / "project.sqlite"
            path.parent.mkdir()
            path.write_bytes(sound)
            change(path)
            tally.add("project files", name, "; ".join(try_project(path)))
        server = Server(Path(folder) / "served.sqlite")
        try:
            for attack in REQUESTS:
                tally.add("requests", attack.name, send_attack(server, attack))
            for content in RAW:
                tally.add("bytes that are no request", repr(content[:30]), send_raw(server, content))
            try_load(server, tally)
            peaks: list[float] = []
            for name, (format, make) in UPLOADS.items():
                tally.add("uploads", name, send_upload(server, format, make(options.megabytes * 1_000_000), peaks))
            print(f"memory of the server during an upload: {max(peaks):.0f} MB at most")
            alive = None if server.ask("GET", "/health/ready")[0] == 200 else "it is not ready"
            tally.add("the server afterwards", "ready", alive)
        finally:
            server.process.terminate()
            server.process.wait(30)
        errors = server.process.stderr.read() if server.process.stderr else ""
        tally.add("the server afterwards", "log", errors if "Traceback" in errors or "failed" in errors else None)
    raise SystemExit(1 if tally.show() else 0)


if __name__ == "__main__":
    main()
