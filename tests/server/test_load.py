"""Many requests at once: small ones are not kept waiting by large ones, and too many are refused."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from awatt import AspectDetector
from awatt.server.batching import MAX_BATCH, Batcher
from awatt.server.errors import BusyError
from awatt.server.limits import Limits

from .conftest import make_client

WAIT = 60  # seconds: only a failure takes that long


def test_long_texts_fill_the_queue_like_many_texts(tmp_path: Path) -> None:
    began, go = threading.Event(), threading.Event()

    def slow(texts: list[str], threshold: object, words: bool) -> list[Any]:
        began.set()
        go.wait(WAIT)
        return []

    with make_client(tmp_path, Limits(waiting_characters=1000)) as client:
        client.guard.app.state.service.batcher._freeze = lambda: slow  # type: ignore[attr-defined]
        first = threading.Thread(target=client.post, args=("/v1/detect",), kwargs={"json": {"texts": ["a" * 900]}})
        first.start()
        assert began.wait(WAIT)
        refused = client.post("/v1/detect", json={"texts": ["a" * 101]})
        go.set()
        first.join()
        assert (refused.status_code, refused.json()["code"]) == (503, "busy")
        assert "the queue is full (waiting: 1 text with 900 characters)." in refused.json()["error"]


def test_a_large_request_keeps_small_ones_waiting() -> None:
    """The small one, which arrives while the first portion of the large one is computed, comes before the second."""
    batches: list[list[str]] = []

    async def ask() -> tuple[list[Any], list[Any]]:
        loop = asyncio.get_running_loop()
        small: list[asyncio.Task[list[Any]]] = []
        submitted = asyncio.Event()

        async def submit() -> None:
            small.append(asyncio.create_task(batcher.submit(["small"])))
            await asyncio.sleep(0)
            submitted.set()

        def detect(texts: list[str], threshold: object, words: bool) -> list[Any]:
            batches.append(texts)
            if len(batches) == 1:
                asyncio.run_coroutine_threadsafe(submit(), loop).result(WAIT)
            return list(texts)

        batcher = Batcher(lambda: detect, Limits())
        large = await batcher.submit([f"large {number}" for number in range(2 * MAX_BATCH + 5)])
        return large, await small[0]

    large, small = asyncio.run(ask())
    assert large == [f"large {number}" for number in range(2 * MAX_BATCH + 5)]
    assert small == ["small"]
    assert [len(batch) for batch in batches] == [MAX_BATCH, 1, MAX_BATCH, 5]


def test_a_request_is_answered_by_one_state_of_the_project() -> None:
    states = iter(range(100))

    def freeze() -> Any:
        state = next(states)
        return lambda texts, threshold, words: [state] * len(texts)

    async def ask() -> list[Any]:
        batcher = Batcher(freeze, Limits())
        return await asyncio.gather(batcher.submit(["a"] * 1000), batcher.submit(["b"] * 300))

    assert [set(each) for each in asyncio.run(ask())] in ([{0}, {1}], [{0}, {0}])


def test_a_request_is_never_answered_by_an_older_state() -> None:
    """A request that came while the project was learned, and after it had changed again, got what was being learned."""
    began, go, state = threading.Event(), threading.Event(), [1]

    def freeze() -> Any:
        frozen = state[0]
        began.set()
        go.wait(WAIT)
        return lambda texts, threshold, words: [frozen] * len(texts)

    async def ask() -> tuple[Any, Any]:
        batcher = Batcher(freeze, Limits())
        first = asyncio.create_task(batcher.submit(["a"]))
        await asyncio.to_thread(began.wait, WAIT)
        state[0] = 2
        late = asyncio.create_task(batcher.submit(["b"]))
        await asyncio.sleep(0)
        go.set()
        return await first, await late

    assert asyncio.run(ask()) == ([1], [2])


def test_portions_follow_the_characters_too() -> None:
    sizes: list[int] = []

    def detect(texts: list[str], threshold: object, words: bool) -> list[Any]:
        sizes.append(len(texts))
        return list(texts)

    asyncio.run(Batcher(lambda: detect, Limits()).submit(["a" * 40_000] * 5 + ["b" * 200_000, "c"]))
    assert sizes == [2, 2, 1, 1, 1]


def test_a_failed_or_cancelled_request_leaves_the_queue_empty() -> None:
    async def ask() -> None:
        go = threading.Event()

        def detect(texts: list[str], threshold: object, words: bool) -> list[Any]:
            go.wait(WAIT)
            raise ValueError("broken")

        batcher = Batcher(lambda: detect, Limits(waiting=5))
        first, second = (asyncio.create_task(batcher.submit(["a", "b"], words=words)) for words in (True, False))
        await asyncio.sleep(0)
        with pytest.raises(BusyError):
            await batcher.submit(["c", "d"])
        second.cancel()
        go.set()
        with pytest.raises(ValueError, match="broken"):
            await first
        with pytest.raises(asyncio.CancelledError):
            await second
        with pytest.raises(ValueError, match="broken"):
            await batcher.submit(["a"] * 5)  # as many as are allowed
        assert (batcher._waiting, batcher._waiting_characters) == (0, 0)
        await batcher.close()

    asyncio.run(ask())


def test_reports_keep_labels_waiting(sample: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four reports that take for ever, then a label, a read and a health check."""
    go, began = threading.Event(), threading.Event()

    def slow(detector: object) -> Any:
        began.set()
        go.wait(WAIT)
        return None

    monkeypatch.setattr(AspectDetector, "report", slow)
    responses: list[int] = []

    def ask() -> None:
        responses.append(sample.get("/v1/report").status_code)

    reports = [threading.Thread(target=ask) for _ in range(4)]
    for each in reports:
        each.start()
    assert began.wait(WAIT)
    assert sample.put("/v1/project/sentences/1", json={"aspects": [1]}).status_code == 200
    assert sample.get("/v1/project").status_code == sample.get("/health/ready").status_code == 200
    go.set()
    for each in reports:
        each.join(WAIT)
    assert responses == [200] * 4


def test_labels_wait_for_a_lock_of_the_detection(sample: Any) -> None:
    """While the detector is fitted, in another thread that holds its locks."""
    workbench, go, held = sample.guard.app.state.service.workbench, threading.Event(), threading.Event()

    def fit() -> None:
        with workbench._lock, workbench._scoring:
            held.set()
            go.wait(WAIT)

    fitting = threading.Thread(target=fit)
    fitting.start()
    assert held.wait(WAIT)
    response = sample.put("/v1/project/sentences/1", json={"aspects": [1]})
    undone = sample.post("/v1/project/undo")
    go.set()
    fitting.join(WAIT)
    assert (response.status_code, undone.status_code) == (200, 200)


def test_the_same_report_is_computed_once(sample: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    counts: list[int] = []
    report = AspectDetector.report
    monkeypatch.setattr(AspectDetector, "report", lambda self, *rest: (counts.append(1), report(self, *rest))[1])
    first = sample.get("/v1/report").json()
    assert sample.get("/v1/report").json() == first
    assert len(counts) == 1
    sample.put("/v1/project/sentences/1", json={"aspects": [1]})
    assert sample.get("/v1/report").json()["n_examples"] == first["n_examples"] + 1
    assert len(counts) == 2
