"""What a notebook shows: deciding words marked, and nothing of the user's text taken for HTML."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from awatt import AspectDetector

EVIL = "<script>alert('soup')</script> & <b>"


class Parsed(HTMLParser):
    """The tags, the visible text and the marked words of a piece of HTML."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.open: list[str] = []
        self.text, self.marked = "", list[str]()
        self.feed(html)
        self.close()
        assert self.open == [], "every tag is closed"

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.add(tag)
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data
        if self.open and self.open[-1] == "mark":
            self.marked.append(data)


@pytest.fixture(scope="module")
def detector() -> AspectDetector:
    examples = {
        f"food {EVIL}": ["Best dumplings ever.", "My burger was cold.", f"The soup {EVIL} needed salt."],
        "staff": ["Our waiter was rude.", "Kind staff.", "The dumplings were cold."],
    }
    return AspectDetector.from_examples(examples)


def test_the_deciding_words_of_a_sentence_are_marked(detector: AspectDetector) -> None:
    found = detector.detect("The waiter was rude.")
    shown = Parsed(found._repr_html_())
    assert shown.marked[:-1] == [word.text for word in found.words["staff"]]
    assert shown.marked[-1] == f"staff {found.scores['staff']:.2f}"
    assert re.sub(r" → .*", "", shown.text) == found.text


def test_a_sentence_without_aspects_says_none(detector: AspectDetector) -> None:
    assert Parsed(detector.detect("It was my birthday.", threshold=1.0)._repr_html_()).text.endswith("→ none")


def test_a_text_with_html_in_it_was_run_by_the_page(detector: AspectDetector) -> None:
    sentence = f"The soup {EVIL} was cold."
    for thing in (detector.detect(sentence, 0), detector.detect_review(sentence, 0), detector, detector.report()):
        shown = Parsed(thing._repr_html_())
        assert shown.tags <= {"div", "mark", "code", "table", "thead", "tbody", "tr", "th", "td", "p", "b", "ul", "li"}
        assert EVIL in shown.text
    assert EVIL in detector.detect(sentence, 0).text


def test_a_report_says_the_same_as_its_text(detector: AspectDetector) -> None:
    report = detector.report()
    shown = Parsed(report._repr_html_()).text
    for line in str(report).splitlines():
        assert "".join(line.split()) in "".join(shown.split())


def test_a_detector_shows_its_aspects(detector: AspectDetector) -> None:
    shown = Parsed(detector._repr_html_())
    assert "staff" in shown.marked
    assert "Our waiter was rude." in shown.text
    assert Parsed(AspectDetector()._repr_html_()).text == "AspectDetector()"
