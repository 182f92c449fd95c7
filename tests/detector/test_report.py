"""The report and the suggestions of what to label next."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from awatt import AspectDetector
from awatt.data.corpus import load_sample
from awatt.detector.examples import Examples
from awatt.detector.report import Expectation, Report
from awatt.errors import AwattError

EXAMPLES = {
    "food": [
        "the pizza was delicious",
        "a delicious pizza",
        "delicious pizza",
        "such delicious pizza",
        "pizza, delicious",
    ],
    "staff": ["the waiter was rude", "a rude waiter", "rude waiter", "such a rude waiter", "the rude waiter"],
}


def test_good_examples_make_a_good_report() -> None:
    parts: list[tuple[int, int]] = []
    report = AspectDetector.from_examples(EXAMPLES).report(lambda *part: parts.append(part))
    assert parts == [(done, 5) for done in range(5)]
    assert [(aspect.name, aspect.examples) for aspect in report.aspects] == [("food", 5), ("staff", 5)]
    assert report.f1 > 0.9
    assert report.f1_interval[0] <= report.f1 <= report.f1_interval[1]
    assert report.suspects == []
    assert report.left_out == 2
    assert "10 examples, left out 2 at a time" in str(report)
    assert report.expected_f1 is None  # neither reviews nor off-topic examples
    assert "cannot be estimated yet" in str(report)


def test_a_report_leaves_out_nothing_again_that_learning_has_left_out(tmp_path: Path) -> None:
    texts, parts = load_sample().sentences, list[tuple[int, int]]()
    detector = AspectDetector.from_examples({**EXAMPLES, None: texts[:30]}, reviews=texts[30:90])
    report = detector.report(lambda *part: parts.append(part))
    detector.save_pretrained(tmp_path / "saved")
    assert AspectDetector.from_pretrained(tmp_path / "saved").report(lambda *part: parts.append(part)) == report
    assert parts == []


def test_a_mislabelled_example_is_reported_first() -> None:
    wrong = "a very rude waiter"
    detector = AspectDetector.from_examples({**EXAMPLES, "food": [*EXAMPLES["food"], wrong]})
    suspect = detector.report().suspects[0]
    assert (suspect.text, suspect.aspects) == (wrong, ("food",))
    assert suspect.scores["staff"] > suspect.scores["food"]
    assert wrong in str(detector.report())


def test_confusable_aspects_are_reported() -> None:
    same = {"staff": EXAMPLES["staff"], "service": [f"{text} today" for text in EXAMPLES["staff"]], **EXAMPLES}
    report = AspectDetector.from_examples(same, threshold=0.05).report()
    assert {"staff", "service"} in [set(pair.aspects) for pair in report.confusions]
    assert "Confusable aspects:" in str(report)


def test_an_aspect_with_few_examples_is_reported_as_weak() -> None:
    report = AspectDetector.from_examples({**EXAMPLES, "parking": ["no parking"], "music": ["loud", "quiet"]}).report()
    lines = str(report).splitlines()
    assert "weak: 1 example, which cannot be checked" in next(line for line in lines if line.startswith("parking"))
    assert "weak: 2 examples" in next(line for line in lines if line.startswith("music"))


def test_one_example_cannot_tell_how_good_it_is() -> None:
    one = AspectDetector.from_examples({"food": ["pizza"]}).report()
    assert "cannot be estimated yet" in str(one)
    assert "On the examples" not in str(one)
    only = AspectDetector.from_examples({"food": ["pizza"], "staff": ["waiter"]}).report()
    assert only.f1_interval == (0.0, 1.0)
    assert "cannot be checked" in str(only)


def test_an_f1_that_is_not_known_was_printed_with_an_interval() -> None:
    one_each = {"food": ["Tasty soup"], "service": ["Rude waiter"], None: ["It was my birthday", "My dog sleeps"]}
    report = AspectDetector.from_examples(one_each).report()
    assert (report.f1, report.f1_interval) == (None, (0.0, 1.0))
    assert "On the examples" not in str(report)


def test_many_examples_are_left_out_in_groups() -> None:
    report = AspectDetector.from_examples({"food": [f"pizza {n}" for n in range(250)], "staff": ["waiter"]}).report()
    assert report.left_out == 51
    assert "251 examples, left out 51 at a time" in str(report)


def test_off_topic_examples_are_checked_too() -> None:
    detector = AspectDetector().fit(
        [*EXAMPLES["food"], "what a day", "a delicious pizza it was"], [["food"]] * 5 + [[], []]
    )
    assert [suspect.text for suspect in detector.report().suspects][:1] == ["a delicious pizza it was"]


def test_suggestions_are_uncertain_and_different() -> None:
    detector = AspectDetector.from_examples(EXAMPLES)
    texts = [*(f"the tea was lukewarm{'!' * (n % 2)}" for n in range(20)), "the bill", "", "a rude waiter", "we parked"]
    found = detector.suggest(texts, 3)
    assert len(found) == 3
    assert len({suggestion.text for suggestion in found}) == 3
    assert all(texts[suggestion.index] == suggestion.text for suggestion in found)
    assert {"", "a rude waiter"}.isdisjoint(suggestion.text for suggestion in found)
    assert detector.suggest([], 3) == []
    assert len(detector.suggest(["one", "one"], 5)) == 1
    with pytest.raises(AwattError, match="k is 0, but needs a whole number, at least 1"):
        detector.suggest(texts, 0)


def test_precomputed_scores_give_the_same_suggestions() -> None:
    from awatt.detector.detector import AspectDetector
    from awatt.detector.suggest import make_suggestions

    detector = AspectDetector.from_examples({"food": ["Tasty soup.", "Cold pasta."], "service": ["A rude waiter."]})
    texts = ["The bread was stale.", "Nobody came to our table.", "We left early.", "Lovely view."]
    assert make_suggestions(detector, texts, 3, detector.predict_proba(texts)) == make_suggestions(detector, texts, 3)


def test_what_to_expect_on_the_file() -> None:
    sample = load_sample()
    names = ["food", "service", "bed", "screen"]
    labels = sample.mentions[:, [sample.aspects.index(name) for name in names]]
    rows = np.arange(0, len(labels), 2)
    detector = AspectDetector(classes=names).fit(
        [sample.sentences[row] for row in rows], labels[rows].astype(int), reviews=sample.sentences[1::2]
    )
    report = detector.report()
    expected = report.expected_f1
    assert expected is not None
    assert 0 <= expected.low < expected.value < expected.high <= 1
    assert f"Expect an F1 of about {expected.value:.2f}" in str(report)
    assert report.n_reviews == len(sample.sentences[1::2])
    truth, found = labels[1::2], detector.predictions(sample.sentences[1::2]).accepted
    measured = np.mean(2 * (truth & found).sum(0) / (truth.sum(0) + found.sum(0)))
    assert expected.low <= measured <= expected.high
    json.dumps(asdict(report))


def test_a_report_counts_only_the_reviews_that_were_used() -> None:
    labelled = {name: texts[:2] for name, texts in EXAMPLES.items()}
    reviews = load_sample().sentences[:12]
    used = AspectDetector.from_examples(labelled, reviews=[*reviews, *labelled["food"], *labelled["staff"]])
    assert used.report().n_reviews == 12  # those with labels are left out
    assert AspectDetector.from_examples(labelled, reviews=reviews[:9]).report().n_reviews == 0  # too few
    assert AspectDetector.from_examples(labelled).report().n_reviews == 0


def test_labelling_the_whole_file_took_the_file_away() -> None:
    """With fewer than ten unlabelled sentences left there was no file: less was found, and nothing was estimated."""
    sample = load_sample()
    texts, mentions = sample.sentences[:80], sample.mentions[:80]
    columns = np.flatnonzero(mentions.sum(0) >= 5)
    names, labels = [sample.aspects[column] for column in columns], mentions[:, columns].astype(int)
    most, all_of_it = (
        AspectDetector(classes=names).fit(texts[:count], labels[:count], reviews=texts) for count in (70, 80)
    )
    assert [each.report().n_reviews for each in (most, all_of_it)] == [80, 80]
    assert None not in [each.report().expected_f1 for each in (most, all_of_it)]
    np.testing.assert_allclose(most.thresholds(), all_of_it.thresholds(), atol=0.1)
    assert "on your reviews, of which 80 sentences were looked at" in str(all_of_it.report())


def test_a_report_of_aspects_that_cannot_be_known_was_a_traceback() -> None:
    report = AspectDetector.from_examples(Examples.from_mapping({"42": []})).report()
    assert [aspect.known for aspect in report.aspects] == [False]


def test_one_sentence_and_one_example_are_singular() -> None:
    expected = Expectation(0.5, 0.4, 0.6)
    lines = Report([], [], [], 0.5, (0.1, 0.9), 1, 1, expected, 1).expectations()
    assert lines[0].endswith("on your reviews, of which 1 sentence was looked at.")
    assert "; 1 example, left out one at a time" in lines[1]
    several = Report([], [], [], 0.5, (0.1, 0.9), 2, 1, expected, 2).expectations()
    assert several[0].endswith("of which 2 sentences were looked at.")
    assert "; 2 examples, left out" in several[1]


def test_names_alone_have_a_report() -> None:
    report = AspectDetector.from_names(["food", "service"]).report()
    assert report.n_examples == 0
    assert "cannot be estimated yet" in str(report)
    assert "found by its name alone" in str(report)


def test_an_aspect_that_is_never_found_is_not_called_found_by_its_name() -> None:
    report = AspectDetector.from_examples({"food": ["Tasty soup.", "Cold pasta."]}).add_aspect("価格", []).report()
    assert [aspect.known for aspect in report.aspects] == [True, False]
    assert "never found by its name; add an example" in str(report)
    assert "found by its name alone" not in str(report)


def test_a_report_on_fifteen_aspects_leaves_out_five_groups_not_each_example() -> None:
    sample = load_sample()
    examples = {
        name: [sample.sentences[row] for row in np.flatnonzero(column)[:5]]
        for name, column in zip(sample.aspects[:15], sample.mentions.T, strict=False)
    }
    detector = AspectDetector.from_examples(examples, reviews=sample.sentences)
    parts: list[tuple[int, int]] = []
    report = detector.report(lambda *part: parts.append(part))
    assert parts == [(done, 5) for done in range(5)]
    assert report.left_out == -(-report.n_examples // 5)


def test_what_single_examples_cannot_show_is_unknown_and_not_a_number() -> None:
    report = AspectDetector.from_examples({"food": ["cold soup"], "staff": ["a rude waiter"]}).report()
    assert report.f1 is None
    assert [(each.recall, each.precision, each.f1) for each in report.aspects] == [(None, None, None)] * 2
    mixed = AspectDetector.from_examples({"food": ["cold soup", "tasty soup"], "staff": ["a rude waiter"]}).report()
    assert mixed.f1 is not None
    assert [each.f1 is None for each in mixed.aspects] == [False, True]
