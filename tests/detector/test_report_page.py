"""A report to share."""

from __future__ import annotations

import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np

from awatt import AspectDetector
from awatt.detector.comparison import compare
from awatt.detector.findings import typical_rows
from awatt.detector.groups import group_column
from awatt.detector.quality import CoursePoint, measure, wilson
from awatt.detector.report_page import ReportPage, _comparison, describe_detector, line_chart, report_file

EXAMPLES = {
    "food": ["The soup was cold.", "Tasty bread.", "My burger was raw."],
    "staff": ["A rude waiter.", "The waitress smiled."],
}
REVIEWS = [
    (5, "2024-01-05", "The soup was tasty. Lovely bread."),
    (1, "2024-02-09", "The waiter was rude & <b>slow</b>."),
    (5, "2024-04-11", "Great soup."),
    (1, "2024-04-20", "We left."),
]


def write_reviews(folder: Path, times: int = 6) -> Path:
    rows = [f'{stars},{day},{n},"{text}"' for n, (stars, day, text) in enumerate(REVIEWS * times)]
    path = folder / "reviews.csv"
    path.write_text("\n".join(["stars,day,id,text", *rows]))
    return path


class Tags(HTMLParser):
    """The tags that are open at the end, and all that there were."""

    def __init__(self, content: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.feed(content)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_number_of_aspects_that_are_not_shown_has_the_right_plural() -> None:
    for count, said in ((12, "intervals.</p>"), (13, "1 further aspect with"), (14, "2 further aspects with")):
        names = [f"aspect {number}" for number in range(count)]
        made = compare(group_column("stars", [1, 2] * 9), np.ones((18, count), dtype=bool), names)
        assert said in _comparison(made, dict.fromkeys(names, "red"))


def test_a_report_has_the_shares_the_comparisons_and_typical_sentences(tmp_path: Path) -> None:
    page = report_file(AspectDetector.from_examples(EXAMPLES), str(write_reviews(tmp_path)), split=True)
    found, content = page.findings, page.html()
    assert (found.n_reviews, found.n_sentences) == (24, 30)
    assert [each.name for each in found.aspects] == ["food", "staff"]  # the most frequent first
    assert found.aspects[0].reviews.value == 0.5
    assert found.together == [[18, 0], [0, 6]]
    assert {each.column for each in found.comparisons} == {"stars", "day"}  # not the id
    assert len({each.text for each in found.aspects[0].typical}) == 3  # every sentence once
    for words in (
        "By stars",
        "By day",
        "How often each aspect is mentioned",
        "2024-04",
        "fast",
        "has not been measured",
    ):
        assert words in content
    assert "<b>food</b>: in 100 % of the reviews with stars 5, in 0 % with 1." in content
    assert "rude &amp; &lt;b&gt;slow&lt;/b&gt;." in content.replace("<mark>", "").replace("</mark>", "")
    tags = Tags(content)
    assert tags.open == []
    assert not {"script", "link", "img", "iframe", "object"} & {tag for tag, _ in tags.seen}
    assert not re.findall(r"https?://|url\(|@import", content)  # nothing is loaded


def test_typical_sentences_had_every_aspect(tmp_path: Path) -> None:
    detector = AspectDetector.from_examples(EXAMPLES)
    found = report_file(detector, str(write_reviews(tmp_path)), learn=False).findings
    typical = [sentence for each in found.aspects for sentence in each.typical]
    assert typical == [detector.detect(sentence.text) for sentence in typical]
    assert {name for sentence in typical for name in sentence.words} == {"food", "staff"}


def test_what_was_measured_and_its_course_are_shown(tmp_path: Path) -> None:
    labelled = tmp_path / "labels.csv"
    labelled.write_text("text,aspects\nThe soup was salty.,food\nA kind waiter.,staff\nBye.,\n")
    detector = AspectDetector.from_examples(EXAMPLES)
    page = report_file(detector, str(write_reviews(tmp_path)), "Soups", str(labelled), learn=False)
    assert "<h1>Soups</h1>" in page.html()
    assert "Measured on 3 random sentences" in page.html()
    assert "has not been measured" not in page.html()
    truth = np.eye(2, dtype=bool)
    points = [CoursePoint(n, 86_400 * 365 * n or None, measure(truth, truth, ["food", "staff"])) for n in (1, 5)]
    with_course = ReportPage("T", page.findings, page.quality, points, (), describe_detector(detector)).html()
    assert "Over time" in with_course
    assert ">1 example<" in with_course
    assert ">5 examples<" in with_course
    assert Tags(with_course).open == []


def test_a_line_is_broken_where_there_is_no_share() -> None:
    column = group_column("day", ["2024-01-01", "2024-02-01", "2024-04-01", "2024-05-01"])
    shares = compare(column, np.ones((4, 1), dtype=bool), ["food"]).aspects[0].shares
    assert line_chart(column.groups, shares, "#000", 1.0, "food").count('fill="none"') == 2
    assert line_chart(["a"], [wilson(1, 2)], "#000", 1.0, "food").count("<circle") == 1


def test_typical_sentences_have_the_words_of_the_aspect_and_differ() -> None:
    texts = [
        "The soup was cold today.",
        "The soup was cold today!",
        "A salty soup for lunch.",
        "The bread was fresh today.",
        "The day was long for us.",
    ]
    found = np.array([[1], [1], [1], [1], [0]], dtype=bool)
    first, second, third = typical_rows(texts, found, np.ones((5, 1)), 3)[0]
    assert "soup" in texts[first]
    assert {first, second, third} == {0, 2, 3}  # the second repeats the first
    assert typical_rows(texts, np.zeros((5, 1), dtype=bool), np.ones((5, 1)))[0] == []


def test_the_command_writes_the_page(run: Callable[..., Any], tmp_path: Path) -> None:
    examples = tmp_path / "examples.jsonl"
    examples.write_text(
        '{"text": "The soup was cold.", "aspects": ["food"]}\n{"text": "Rude.", "aspects": ["staff"]}\n'
    )
    given = ("report", write_reviews(tmp_path), "--examples", examples, "--reviews", "--html", tmp_path / "out.html")
    code, out, err = run(*given)
    assert (code, out, err) == (0, "", f"{tmp_path / 'out.html'}: 24 reviews, 30 sentences\n")
    assert "<h1>reviews.csv</h1>" in (tmp_path / "out.html").read_text()
    code, _, err = run(*given)
    assert (code, "--overwrite" in err) == (2, True)
    assert '"n_reviews": 24' in run(*given, "--overwrite", "--json").out
    assert run("report", write_reviews(tmp_path), "--examples", examples).code == 2  # without --html
    assert run("report", "--examples", examples, "--title", "T").code == 2
