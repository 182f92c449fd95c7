"""Ray: a private one on this machine, or a cluster that is already running."""

from __future__ import annotations

import logging
import os
import secrets
import sys
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from awatt.errors import AwattError, require

LOCAL = "local"


@contextmanager
def connected(address: str = LOCAL, workers: int | None = None) -> Iterator[Any]:
    """The ``ray`` module, connected to ``address``, or to the cluster that this process already uses.

    ``local`` starts a Ray for this process alone and stops it at the end. ``auto`` finds the cluster of this machine.
    """
    if address == LOCAL:
        _make_private()
    ray = require("ray", "ray")
    if ray.is_initialized():
        yield ray
        return
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # report nothing to Ray's authors unless asked to
    options: dict[str, Any] = {"address": address, "logging_level": logging.ERROR, "log_to_driver": False}
    if address == LOCAL:
        options |= {"num_cpus": workers or count_cores(), "include_dashboard": False}
    try:
        ray.init(**options)
    except (ConnectionError, ValueError, RuntimeError) as error:
        advice = "Start one with 'ray start --head', give --address HOST:PORT, or --address local."
        raise AwattError(f"no Ray cluster can be reached at '{address}' ({one_line(error, 200)}). {advice}") from None
    try:
        yield ray
    finally:
        ray.shutdown()


def _make_private() -> None:
    """Keep others out of a local Ray: it listens on 127.0.0.1 and asks for a random token.

    Ray reads these settings when it is imported; if it already is, its own defaults apply.
    """
    if "ray" in sys.modules:
        return
    os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")  # on any system: the loopback address only
    if not any(name.startswith("RAY_AUTH_") for name in os.environ):
        os.environ.update({"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)})


def count_cores() -> int:
    """The cores that this process may use; macOS and Windows only say how many there are."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def count_workers(ray: Any, wanted: int | None) -> int:
    """The number of tasks to run at a time: ``wanted``, or one per core of the cluster."""
    return wanted or max(1, int(ray.cluster_resources().get("CPU", 1)))


def run_tasks(
    ray: Any, function: Callable[..., Any], calls: Mapping[Any, tuple[Any, ...]], workers: int | None, **options: Any
) -> Generator[tuple[Any, Any], None, None]:
    """Call ``function(*calls[key])`` for each key in a task with one core, at most ``workers`` at a time.

    Gives (key, reference to the result) as the tasks finish; `close` it to cancel the others. ``options`` are those of
    ``ray.remote``.
    """
    task = ray.remote(num_cpus=1, **options)(function)
    queue, running = list(reversed(calls)), dict[Any, Any]()
    try:
        while queue or running:
            while queue and (workers is None or len(running) < workers):
                key = queue.pop()
                running[task.remote(*calls[key])] = key
            (done, *_), _ = ray.wait(list(running))
            yield running.pop(done), done
    finally:
        for reference in running:
            ray.cancel(reference)


def one_line(error: Exception, limit: int) -> str:
    """The beginning of an error's message, without line breaks."""
    return " ".join(str(error).split())[:limit]
