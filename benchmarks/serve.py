"""``awatt serve`` compared with the detector itself, then under load.

    OMP_NUM_THREADS=1 python benchmarks/serve.py --clients 50 --seconds 300

Starts a server with a new project on the first core, and stays on the others itself. It compares one client with the
same calls in this process; it measures what requests of 20 texts and of one text cost, in CPU seconds of the server, so
that neither the clients nor other work on the machine count; then it applies load, each client sending its next request
as soon as it gets a response; then more load than the queue holds. It counts responses by status (503 with Retry-After
is deliberate; any other error ends the benchmark) and records the server's memory.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import itertools
import json
import os
import random
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

from awatt import AspectDetector
from awatt.server.reading import read_sample

COMMAND = [sys.executable, "-c", "from awatt.cli import main; main()", "serve", "--port", "0", "--project"]


class Client:
    """A persistent connection."""

    def __init__(self, base: str, token: str) -> None:
        self.connection = http.client.HTTPConnection(urlsplit(base).netloc, timeout=120)
        self.connection.connect()
        self.connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # otherwise a body waits for 40 ms
        self.headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

    def post(self, path: str, body: object) -> int:
        """The status; the response is read completely."""
        self.connection.request("POST", path, json.dumps(body), self.headers)
        response = self.connection.getresponse()
        content = json.loads(response.read())
        if response.status != 200 and not (response.status == 503 and response.headers["Retry-After"]):
            raise SystemExit(f"{path} gave status {response.status}: {content}")
        return response.status


def resident(pid: int) -> float:
    """Megabytes of memory in use."""
    found = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    return int(found[1]) / 1024 if found else 0.0


def load(
    base: str, token: str, texts: list[str], clients: int, seconds: float, sizes: tuple[int, ...], pid: int
) -> None:
    """Clients with batches of these sizes. A refused client tries again a second later."""
    counts: Counter[int] = Counter()
    latencies: list[float] = []
    memory: list[float] = []
    end = time.monotonic() + seconds

    def work(number: int) -> None:
        client = Client(base, token)
        batch = [texts[(number + index) % len(texts)] for index in range(sizes[number % len(sizes)])]
        while time.monotonic() < end:
            began = time.perf_counter()
            status = client.post("/v1/detect", {"texts": batch})
            counts[status] += 1
            if status == 503:
                time.sleep(1)
            else:
                latencies.append(time.perf_counter() - began)

    with ThreadPoolExecutor(clients) as pool:
        futures = [pool.submit(work, number) for number in range(clients)]
        while time.monotonic() < end:
            memory.append(resident(pid))
            time.sleep(min(1.0, seconds / 20))
    for future in futures:
        future.result()
    ranked = sorted(latencies)
    print(f"{clients} clients, batches of {sizes}, {seconds:g} s: responses by status {dict(counts)}")
    print(f"latency: median {statistics.median(ranked):.3f} s, 99 % {ranked[int(0.99 * (len(ranked) - 1))]:.3f} s")
    third = max(1, len(memory) // 3)
    print(f"memory: {max(memory[:third]):.0f} MB in the first third, {max(memory[-third:]):.0f} MB in the last")


def ratios(client: Client, detector: AspectDetector, texts: list[str], repeats: int) -> None:
    """One client compared with the same calls in this process: medians over alternating pairs."""
    for size in (1, 100):
        batch = [texts[k % len(texts)] for k in range(size)]
        pairs = []
        for _ in range(repeats + 2):
            began = time.perf_counter()
            client.post("/v1/detect", {"texts": batch})
            middle = time.perf_counter()
            detector.detect_many(batch)
            pairs.append((middle - began, time.perf_counter() - middle))
        served, direct = (statistics.median(times) for times in zip(*pairs[2:], strict=True))
        print(
            f"batch of {size}: {served * 1e3:.1f} ms served, {direct * 1e3:.1f} ms direct, ratio {served / direct:.2f}"
        )


def cpu_seconds(pid: int) -> float:
    """That a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def send(base: str, requests: list[bytes], until: float, latencies: list[float]) -> None:
    """One client: the requests in turn, each as soon as the last one has been answered."""
    host, _, port = urlsplit(base).netloc.partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    for request in itertools.cycle(requests):
        began = time.perf_counter()
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 200"):
            raise SystemExit(head.decode())
        await reader.readexactly(int(head.lower().partition(b"content-length: ")[2].partition(b"\r")[0]))
        latencies.append(time.perf_counter() - began)
        if time.perf_counter() > until:
            break
    writer.close()


def served_rate(
    base: str, token: str, texts: list[str], clients: int, size: int, seconds: float, pid: int
) -> dict[str, float]:
    """Requests per second, of the server's CPU and of the clock, and latencies, with so many clients at once."""
    rng = random.Random(0)
    requests = []
    for _ in range(200):
        body = json.dumps({"texts": [rng.choice(texts) for _ in range(size)]}).encode()
        head = f"POST /v1/detect HTTP/1.1\r\nHost: {urlsplit(base).netloc}\r\nAuthorization: Bearer {token}\r\n"
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        requests.append(head.encode() + body)

    async def run() -> tuple[float, float, list[float]]:
        latencies: list[float] = []
        used, began = cpu_seconds(pid), time.perf_counter()
        shuffled = [rng.sample(requests, len(requests)) for _ in range(clients)]
        await asyncio.gather(*(send(base, each, began + seconds, latencies) for each in shuffled))
        return cpu_seconds(pid) - used, time.perf_counter() - began, sorted(latencies)

    used, passed, ranked = asyncio.run(run())
    median, late = statistics.median(ranked), ranked[int(0.99 * (len(ranked) - 1))]
    print(
        f"{clients} clients, {size} per request: {len(ranked) / used:,.0f} requests per CPU second of the server, "
        f"{len(ranked) / passed:,.0f} per second, server busy {used / passed:.0%}; "
        f"latency: median {median * 1e3:.1f} ms, 99 % {late * 1e3:.1f} ms ({late / median:.1f} times)"
    )
    return {"per_cpu_second": len(ranked) / used, "per_second": len(ranked) / passed, "late": late / median}


def library_rate(detector: AspectDetector, texts: list[str], seconds: float) -> float:
    """Sentences per CPU second of ``detect_many``."""
    rng = random.Random(0)
    own, count = [rng.choice(texts) for _ in range(4000)], 0
    detector.detect_many(own)
    began = time.process_time()
    while time.process_time() < began + seconds:
        detector.detect_many(own)
        count += len(own)
    return count / (time.process_time() - began)


def rates(base: str, token: str, texts: list[str], detector: AspectDetector, seconds: float, pid: int) -> None:
    """What requests cost, beside the library's own rate for the same sentences."""
    before = library_rate(detector, texts, seconds / 2)
    twenty = served_rate(base, token, texts, 20, 20, seconds, pid)
    library = (before + library_rate(detector, texts, seconds / 2)) / 2
    print(f"library, before and after: {library:,.0f} sentences per CPU second")
    print(f"requests of 20 texts: {20 * twenty['per_cpu_second'] / library:.2f} of the library's rate")
    served_rate(base, token, texts, 100, 1, seconds, pid)
    served_rate(base, token, texts, 20, 1, seconds, pid)


def main() -> None:
    """Start a server and measure it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--rate-seconds", type=float, default=10)
    parser.add_argument("--repeats", type=int, default=30)
    options = parser.parse_args()
    reviews, examples = read_sample("restaurant")
    texts = [text for _, sentences in reviews for text in sentences]
    cores = sorted(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as folder:
        os.sched_setaffinity(0, cores[:1])
        server = subprocess.Popen([*COMMAND, f"{folder}/p.sqlite"], stderr=subprocess.PIPE, text=True)
        os.sched_setaffinity(0, cores[1:] or cores)
        assert server.stderr is not None
        lines = [server.stderr.readline() for _ in range(3)]
        base, token = lines[0].split()[-1].partition("?")[0], lines[1].split()[-1]
        try:
            client = Client(base, token)
            client.post("/v1/project/sample", {"domain": "restaurant"})
            ratios(client, AspectDetector.from_examples(examples), texts, options.repeats)
            rates(base, token, texts, AspectDetector.from_examples(examples, texts), options.rate_seconds, server.pid)
            if not options.seconds:
                return
            load(base, token, texts, options.clients, options.seconds, (1, 5, 20, 100), server.pid)
            load(base, token, texts, options.clients, options.seconds / 10, (1000,), server.pid)
        finally:
            server.terminate()
            server.wait(20)


if __name__ == "__main__":
    main()
