"""A Ray of one's own on this machine, or a cluster that runs already."""

from __future__ import annotations

import logging
import os
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from awatt.errors import AwattError, require

LOCAL = "local"


@contextmanager
def connected(address: str = LOCAL, workers: int | None = None) -> Iterator[Any]:
    """Ray, connected: to what this process is connected to already, else to ``address``.

    ``local`` starts a Ray that only this process can use, and ends it. ``auto`` finds the cluster of this machine.
    """
    if address == LOCAL:
        _keep_to_itself()
    ray = require("ray", "ray")
    require("ray.data", "ray")
    if ray.is_initialized():
        yield ray
        return
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing leaves the machine unless asked for
    options: dict[str, Any] = {"address": address, "logging_level": logging.ERROR, "log_to_driver": False}
    if address == LOCAL:
        options |= {"num_cpus": workers or len(os.sched_getaffinity(0)), "include_dashboard": False}
    try:
        ray.init(**options)
    except (ConnectionError, ValueError, RuntimeError) as error:
        found = " ".join(str(error).split())[:200]
        advice = "Start one with 'ray start --head', give --address HOST:PORT, or --address local."
        raise AwattError(f"no Ray cluster can be reached at '{address}' ({found}). {advice}") from None
    try:
        yield ray
    finally:
        ray.shutdown()


def _keep_to_itself() -> None:
    """Nobody but this process is to use its Ray: it listens on 127.0.0.1, and takes a token that nobody else has.

    Ray reads these when it is imported; where it has been, its own defaults hold.
    """
    if "ray" in sys.modules:
        return
    os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")  # on any system: the loopback address only
    if not any(name.startswith("RAY_AUTH_") for name in os.environ):
        os.environ.update({"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)})


def n_workers(ray: Any, wanted: int | None) -> int:
    """How many tasks at a time: what was asked for, else a core each."""
    return wanted or max(1, int(ray.cluster_resources().get("CPU", 1)))
