"""What the workbench's server computes for each action of a user, in CPU seconds, with 50,000 reviews.

    OMP_NUM_THREADS=1 python benchmarks/workbench.py --reviews 50000 --aspects 25

The reviews are one or two sentences of Yelp_aspect (from AWATT_SHARED), with stars, a city and a day. CPU time of the
server, so that other work on the machine hardly counts; on a free core an action takes about as long.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

from awatt.files import shared_folder

COMMAND = [sys.executable, "-c", "from awatt.cli import main; main()", "serve", "--port", "0", "--project"]
NAMES = (
    "food, service, price, room, hair, nails, massage, location, parking, bathroom, bed, breakfast, pool, drinks, "
    "staff, menu, noise, view, wifi, casino, atmosphere, waiting, cleanliness, dessert, music"
)


def read_sentences(folder: Path) -> list[str]:
    """All sentences of Yelp_aspect, each once."""
    lines = (line.split("\t") for path in sorted(folder.glob("*.txt")) for line in path.read_text("utf-8").splitlines())
    return list(dict.fromkeys(parts[1] for parts in lines if len(parts) > 2))


def write_reviews(sentences: list[str], count: int) -> bytes:
    """A CSV file; a third of the reviews have two sentences."""
    rng, rows = random.Random(0), ["stars,city,day,text"]
    for _ in range(count):
        text = " ".join(rng.sample(sentences, 1 + (rng.random() < 0.33))).replace('"', "'")
        city = rng.choice(["Ghent", "Lyon", "Porto", "Turin"])
        rows.append(f'{rng.randint(1, 5)},{city},2024-{rng.randint(1, 12):02}-{rng.randint(1, 28):02},"{text}"')
    return "\n".join(rows).encode()


class Server:
    """``awatt serve`` with a new project."""

    def __init__(self, folder: str) -> None:
        self.process = subprocess.Popen([*COMMAND, f"{folder}/p.sqlite"], stderr=subprocess.PIPE, text=True)
        assert self.process.stderr is not None
        lines = [self.process.stderr.readline() for _ in range(3)]
        self.base = re.search(r"https?://[^?]+", lines[0])[0]  # type: ignore[index]
        self.token = lines[1].rpartition(" ")[2].strip()

    def cpu(self) -> float:
        """CPU seconds of the process so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def ask(self, method: str, path: str, body: object = None) -> bytes:
        """The body of the response."""
        raw = isinstance(body, bytes)
        content = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {self.token}"}
        headers["Content-Type"] = "application/octet-stream" if raw else "application/json"
        request = urllib.request.Request(f"{self.base}v1/{path}", content, headers, method=method)
        with urllib.request.urlopen(request, timeout=600) as response:
            return bytes(response.read())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reviews", type=int, default=50_000)
    parser.add_argument("--aspects", type=int, default=25)
    options = parser.parse_args()
    content = write_reviews(read_sentences(shared_folder() / "data" / "yelp_aspect"), options.reviews)
    names = NAMES.split(", ")[: options.aspects]
    with tempfile.TemporaryDirectory() as folder:
        server = Server(folder)
        try:
            measure(server, content, names)
        finally:
            server.process.terminate()
            server.process.wait()


def measure(server: Server, content: bytes, names: list[str]) -> None:
    """A line per action."""

    def action(title: str, *requests: tuple[str, str] | tuple[str, str, object]) -> bytes:
        before, response = server.cpu(), b""
        for request in requests:
            response = server.ask(*request)
        print(f"{title:<58} {server.cpu() - before:6.2f} s", flush=True)
        return response

    load = "project/reviews?format=csv&column=text&split=true&name=reviews.csv&keep=stars&keep=city&keep=day"
    action("load the file, and show its sentences", ("POST", load, content), ("GET", "project/sentences"))
    print(f"{json.loads(server.ask('GET', 'project'))['n_sentences']:,} sentences, {len(names)} aspects")
    action("suggest aspects", ("GET", "project/suggested-aspects"))
    project = json.loads(
        action(
            "find the aspects by their names", ("POST", "aspects/names", {"names": names}), ("GET", "project/scores")
        )
        and server.ask("GET", "project")
    )
    ids = json.loads(server.ask("GET", "project/sentences"))["ids"]
    action("words of the sentences in view", ("POST", "project/words", {"ids": ids[:20]}))
    action("label next", ("POST", "suggest", {"k": 20}))
    label = {"aspects": [project["aspects"][0]["id"]]}
    for _ in range(2):
        action(
            "label a sentence, and detect again",
            ("PUT", f"project/sentences/{ids.pop()}", label),
            ("GET", "project/scores"),
        )
    action("move a threshold", ("PATCH", "project/settings", {"threshold": 0.4}))
    action("the map, once per file", ("GET", "project/map"))
    action("shares by column, the first time", ("GET", "project/by?column=stars"))
    action("shares by another column", ("GET", "project/by?column=day"))
    action(
        "the same for one city, a word and half of the map",
        ("GET", "project/by?column=day&where=city%3DPorto&text=the&area=-1%20-1%200%20-1%200%201%20-1%201"),
    )
    action("suggest more aspects", ("GET", "project/suggested-aspects"))
    for key in json.loads(server.ask("GET", "project/quality"))["next"]:
        server.ask("PUT", f"project/sentences/{key}", label)
    server.ask("GET", "project/scores")
    action("quality on 20 random sentences", ("GET", "project/quality"))
    action("its course over time", ("GET", "project/quality/course"))
    action("results as CSV", ("GET", "project/export/results.csv"))
    action("the report to share", ("GET", "project/export/report.html"))


if __name__ == "__main__":
    main()
