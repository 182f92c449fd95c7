"""Detections as JSON: the same as of the objects."""

from __future__ import annotations

import json
from typing import Any

import pytest

from awatt import AspectDetector
from awatt.server.batching import MAX_BATCH
from awatt.server.detection_json import QUICK, QUICK_TEXT, JsonDetector, join_detections
from awatt.server.responses import Detections, to_json

EXAMPLES = {
    "food": ["The soup was salty.", "Great pasta!"],
    'the "staff" \\ ü\n': ["Our waiter was rude.", "Friendly service."],
    "price": ["Far too expensive.", "Cheap and cheerful."],
}
TEXTS = [
    "The pasta was great, and cheap.",
    'He said "soup" \\ and left.\n\tRude\x00\x1f!',
    "",
    "   ",
    "Sälty 🍜 soup, naïve wäiter\u2028.",
    "It was my birthday.",
    "The waiter " * 400,
]


@pytest.mark.parametrize("model", ["fast", "accurate"])
@pytest.mark.parametrize("words", [True, False])
@pytest.mark.parametrize("threshold", [None, 0.0, 1.0, {"food": 0.0}, "precise"])
def test_the_json_is_that_of_the_objects(model: str, words: bool, threshold: Any) -> None:
    detector = AspectDetector.from_examples(EXAMPLES, model=model)
    found = JsonDetector(detector)(TEXTS, threshold, words)
    wanted = to_json(Detections(detector.detect_many(TEXTS, threshold, words)))
    assert json.loads(join_detections(found)) == json.loads(wanted)
    assert [json.loads(each)["text"] for each in found] == TEXTS
    assert json.loads(join_detections([])) == {"detections": []}


def test_what_blocks_the_event_loop_for_long_is_not_quick() -> None:
    fast, accurate = (JsonDetector(AspectDetector.from_examples(EXAMPLES, model=name)) for name in ("fast", "accurate"))
    assert fast.is_quick(["The soup was cold."] * 400)
    assert fast.is_quick([])
    assert not fast.is_quick(["a" * (QUICK_TEXT + 1)])
    assert not fast.is_quick(["a" * 100] * MAX_BATCH)
    assert not accurate.is_quick(["The soup was cold."])
    many = JsonDetector(AspectDetector.from_names([f"aspect of {number} things" for number in range(200)]))
    assert many.is_quick(["a" * 100] * (QUICK // 210 // 100))
    assert not many.is_quick(["a" * 100] * (QUICK // 210 // 100 + 1))
