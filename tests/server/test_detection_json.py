"""Detections as JSON: the same as of the objects."""

from __future__ import annotations

import json
from typing import Any

import pytest

from awatt import AspectDetector
from awatt.server.detection_json import JsonDetector, join_detections
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
