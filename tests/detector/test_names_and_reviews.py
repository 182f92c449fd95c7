"""Names without examples, off-topic examples, the file as evidence, aims in words, and labels that count."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from awatt import AspectDetector
from awatt.data.corpus import load_sample
from awatt.detector.examples import Examples
from awatt.detector.opening import open_detector, parse_names
from awatt.detector.reviews import read_reviews, read_sample, sample_reviews
from awatt.errors import AwattError
from awatt.records.source import raise_error

SAMPLE = load_sample()
REVIEWS = list(SAMPLE.sentences)
EXAMPLES = {"food": ["The pizza was cold.", "Tasty soup."], "service": ["A rude waiter.", "The waitress smiled."]}
TABLE = type("Table", (list,), {"columns": ["text"]})(["text"])  # iterates over its headers
TEXTS = ["The soup was cold.", "Our waiter was rude.", "We came on a Monday."]


# ---- names


def test_names_alone_detect() -> None:
    detector = AspectDetector.from_names(["food", "service"], reviews=REVIEWS)
    assert detector.aspects == ("food", "service")
    assert detector.detect("The food was great.").aspects == ["food"]
    assert detector.counts_.tolist() == [0, 0]
    assert AspectDetector.from_names(["food"]).detect("The food was great.").aspects == ["food"]


def test_a_name_stands_beside_examples() -> None:
    detector = AspectDetector.from_examples({**EXAMPLES, "parking": []}, reviews=REVIEWS)
    assert detector.detect("We never found parking.").aspects == ["parking"]
    assert detector.add_aspect("music", []).detect("The music was loud.").scores["music"] > 0.3


def test_the_threshold_rises_with_the_examples_while_no_label_calibrates() -> None:
    examples = {"parking": [], "food": ["Tasty soup."], "service": ["A rude waiter.", "She smiled."], "bed": []}
    examples["bed"] += ["A soft bed.", "The mattress sagged.", "Hard pillows."]
    detector = AspectDetector.from_examples(examples, reviews=REVIEWS)
    # log-odds of 0.12 and 0.2 are -1.9924 and -1.3863; a third of the way with each example
    assert detector.thresholds() == pytest.approx([0.12, 0.14302, 0.16960, 0.2], abs=1e-4)
    assert AspectDetector.from_examples(examples).thresholds() == pytest.approx(detector.thresholds())


def test_names_that_say_nothing_are_refused() -> None:
    with pytest.raises(AwattError, match="aspect '7' has no example, and its name has no known word"):
        AspectDetector.from_names(["food", "7"])
    with pytest.raises(AwattError, match="aspect 'ምግብ' has no example, and its name has no known word"):
        AspectDetector.from_names(["food", "ምግብ"])  # none of its letters is known
    with pytest.raises(AwattError, match="a list of names is needed"):
        AspectDetector.from_names("food")


@pytest.mark.parametrize("command", ["detect", "explain", "report"])
def test_aspects_on_the_command_line(
    command: str, run: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "reviews.txt").write_text("\n".join(TEXTS))
    given = {"detect": ("reviews.txt",), "explain": ("The food was great.",), "report": ()}[command]
    done = run(command, *given, "--aspects", "food, service")
    assert done.code == 0
    assert "food" in done.out
    assert run(command, *given, "--aspects", " , ").code == 2


@pytest.mark.parametrize("given", ['"waiting time, queue",price', '["waiting time, queue", " price"]'])
def test_a_name_with_a_comma_was_split(given: str) -> None:
    assert parse_names(given) == ["waiting time, queue", "price"]


@pytest.mark.parametrize("given", ['"waiting time, queue', '["waiting time"', '["price", 7]', '"waiting" time', "[]"])
def test_broken_quotes_in_names_are_refused(given: str) -> None:
    with pytest.raises(AwattError, match=r"--aspects is .* with commas between them are needed: battery,screen or '"):
        parse_names(given)


# ---- off-topic sentences and what cannot be learned from


def test_off_topic_sentences_in_every_form() -> None:
    mapping = AspectDetector.from_examples({**EXAMPLES, None: ["My dog sleeps."]})
    pairs = [(text, [aspect]) for aspect, texts in EXAMPLES.items() for text in texts] + [("My dog sleeps.", [])]
    records = AspectDetector.from_examples([{"text": text, "aspects": aspects} for text, aspects in pairs])
    lists = AspectDetector().fit([text for text, _ in pairs], [aspects for _, aspects in pairs])
    matrix = np.array([[aspect in aspects for aspect in EXAMPLES] for _, aspects in pairs], dtype=int)
    indicators = AspectDetector(classes=list(EXAMPLES)).fit([text for text, _ in pairs], matrix)
    for detector in (mapping, records, lists, indicators):
        assert detector.examples.labels.sum(1).tolist() == [1, 1, 1, 1, 0]
        np.testing.assert_array_equal(detector.predict_proba(TEXTS), mapping.predict_proba(TEXTS))
    without = AspectDetector.from_examples(EXAMPLES)
    alike = ["My dog slept all day."]
    assert mapping.predict_proba(alike).max() < without.predict_proba(alike).max()


def test_examples_that_teach_nothing_are_said() -> None:
    with pytest.raises(AwattError, match="every example mentions both 'food' and 'service'"):
        AspectDetector.from_examples({"food": ["Good pizza, nice waiter."], "service": ["Good pizza, nice waiter."]})
    with pytest.raises(AwattError, match="has no words"):
        AspectDetector.from_examples({"1": ["!!!"], "food": ["Good pizza."]})


def test_emoji_alone_do_not_break_the_examples(tmp_path: Path) -> None:
    given = {"food": ["Good pizza.", "😋"], "service": ["A rude waiter."], None: ["👍👍👍"]}
    detector = AspectDetector.from_examples(given)
    assert detector.examples.texts == ("Good pizza.", "😋", "A rude waiter.", "👍👍👍")
    rows = [{"text": text, "aspects": list(aspects)} for text, aspects in detector.examples.pairs()]
    path = tmp_path / "examples.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    opened = open_detector(path, None)
    fitted = AspectDetector().fit([row["text"] for row in rows], [row["aspects"] for row in rows])
    for other in (opened, fitted):
        np.testing.assert_array_equal(other.predict_proba(TEXTS), detector.predict_proba(TEXTS))


def test_off_topic_sentences_are_added_under_none() -> None:
    whole = AspectDetector.from_examples({**EXAMPLES, None: ["My dog sleeps."]})
    added = AspectDetector.from_examples(EXAMPLES).add_examples(None, ["My dog sleeps."])
    assert added.aspects == tuple(EXAMPLES)
    assert added.examples.pairs()[-1] == ("My dog sleeps.", ())
    np.testing.assert_array_equal(added.predict_proba(TEXTS), whole.predict_proba(TEXTS))
    with pytest.raises(AwattError, match="has no examples yet"):
        AspectDetector().add_examples(None, ["My dog sleeps."])
    with pytest.raises(AwattError, match=r"named null, but needs a name such as 'food'.*add_examples\(None"):
        added.add_aspect(None, ["My dog sleeps."])  # type: ignore[arg-type]


# ---- the file


def test_the_file_moves_the_thresholds() -> None:
    alone = AspectDetector.from_examples(EXAMPLES)
    with_file = AspectDetector.from_examples(EXAMPLES, reviews=REVIEWS)
    assert not np.array_equal(with_file.predict_proba(TEXTS), alone.predict_proba(TEXTS))
    labels = {**EXAMPLES, None: list(REVIEWS[:40:2])}
    with_labels = AspectDetector.from_examples(labels, reviews=REVIEWS[40:])
    assert with_labels.thresholds().tolist() != with_file.thresholds().tolist()
    few = AspectDetector.from_examples(EXAMPLES, reviews=REVIEWS[:3])
    np.testing.assert_array_equal(few.predict_proba(TEXTS), alone.predict_proba(TEXTS))


@pytest.mark.parametrize(
    ("reviews", "message"),
    [
        (TABLE, r"^found a table, but a list of texts is needed\. Give one of its columns\.$"),
        ({"text": REVIEWS}, r"^found a dictionary, but a list of texts is needed\. Give one of its values\.$"),
        (Path("rev.csv"), r"^found \w+\('rev.csv'\), but a list of texts is needed\. Give the texts themselves\.$"),
        ("rev.csv", r"^found the single text 'rev.csv', but .* of a file, give the texts\.$"),
        (b"rev.csv", r"^found b'rev.csv', but a list of texts is needed\."),
        (3, r"^found 3, but a list of texts is needed\."),
    ],
    ids=["table", "dictionary", "path", "text", "bytes", "number"],
)
def test_the_names_of_columns_were_learned_from_as_reviews(reviews: Any, message: str) -> None:
    detector = AspectDetector.from_examples(EXAMPLES)
    for learn in (
        lambda: AspectDetector.from_examples(EXAMPLES, reviews=reviews),
        lambda: AspectDetector.from_names(["food"], reviews=reviews),
        lambda: AspectDetector().fit(TEXTS, [["food"], ["service"], []], reviews=reviews),
        lambda: detector.use_reviews(reviews),
        lambda: detector.detect_many(reviews),
    ):
        with pytest.raises(AwattError, match=message):
            learn()
    with pytest.raises(AwattError, match=message.replace("texts", "names")):
        AspectDetector.from_names(reviews)


def test_reviews_may_come_from_a_generator() -> None:
    listed = AspectDetector.from_examples(EXAMPLES, reviews=REVIEWS)
    generated = AspectDetector.from_examples(EXAMPLES, reviews=(text for text in REVIEWS))
    np.testing.assert_array_equal(generated.predict_proba(TEXTS), listed.predict_proba(TEXTS))


@pytest.mark.parametrize("n_examples", [60, 1100])  # the second: some are chosen to compare with, some for their words
def test_scores_depended_on_the_order_of_aspects_and_examples(n_examples: int) -> None:
    sample = load_sample()
    names = ["food", "service", "bed", "screen"]
    mentioned = sample.mentions[:, [sample.aspects.index(name) for name in names]]
    pairs = []
    for number in range(n_examples):
        turn, row = divmod(2 * number, 120)
        found = [name for name, mentions in zip(names, mentioned[row], strict=True) if mentions]
        pairs.append((f"{sample.sentences[row]} {turn or ''}", found))
    scores = []
    for of_examples, of_names in ((1, 1), (-1, 1), (-1, -1)):
        examples = Examples.from_pairs(pairs[::of_examples], names[::of_names])
        detector = AspectDetector.from_examples(examples, reviews=sample.sentences[:300])
        scores.append(detector.predict_proba(sample.sentences[1:120:2])[:, ::of_names])
    np.testing.assert_array_equal(scores[0], scores[1])
    np.testing.assert_allclose(scores[0], scores[2], atol=1e-4)  # sums in single precision


def test_the_file_is_kept_when_examples_are_added() -> None:
    step = AspectDetector.from_examples({"food": EXAMPLES["food"], "service": EXAMPLES["service"][:1]}, reviews=REVIEWS)
    step.add_examples("service", EXAMPLES["service"][1:])
    whole = AspectDetector.from_examples(EXAMPLES, reviews=REVIEWS)
    np.testing.assert_array_equal(step.predict_proba(TEXTS), whole.predict_proba(TEXTS))
    rows = [text for texts in EXAMPLES.values() for text in texts]
    fitted = whole.fit(rows, [["food"], ["food"], ["service"], ["service"]])
    assert fitted.reviews is None  # fit begins anew


def test_the_file_is_saved_with_the_examples_only(tmp_path: Path) -> None:
    detector = AspectDetector.from_examples(EXAMPLES, reviews=REVIEWS)
    whole = AspectDetector.from_pretrained(detector.save_pretrained(tmp_path / "whole"))
    np.testing.assert_array_equal(whole.predict_proba(TEXTS), detector.predict_proba(TEXTS))
    np.testing.assert_array_equal(whole.thresholds(), detector.thresholds())
    added = whole.add_examples("food", ["Delicious cake."])
    np.testing.assert_array_equal(
        added.predict_proba(TEXTS), detector.add_examples("food", ["Delicious cake."]).predict_proba(TEXTS)
    )
    bare = detector.save_pretrained(tmp_path / "bare", examples=False)
    assert not (bare / "reviews.safetensors").exists()
    np.testing.assert_array_equal(
        AspectDetector.from_pretrained(bare).predict_proba(TEXTS), detector.predict_proba(TEXTS)
    )


def test_a_score_never_depends_on_the_batch() -> None:
    detector = AspectDetector.from_examples(EXAMPLES, reviews=REVIEWS)
    together = detector.predict_proba(REVIEWS[:60])
    alone = np.concatenate([detector.predict_proba([text]) for text in REVIEWS[:60]])
    np.testing.assert_allclose(together, alone, atol=1e-7)


def test_a_sample_is_spread_over_the_file() -> None:
    assert sample_reviews(["a", "b", "c", "d", "e"], 3) == ["a", "c", "e"]
    assert sample_reviews(["a", " a ", "...", "", "b"]) == ["a", "b"]


def test_suggest_and_the_page_learned_from_another_sample_than_detect(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They took the first sentences of the file, detection those of its first rows."""
    monkeypatch.setattr("awatt.detector.reviews.FIRST_ROWS", 2)
    path = tmp_path / "reviews.txt"
    path.write_text("The soup was cold. Nobody came.\nWe sat outside.\nThe bill was wrong.\n")
    found = read_reviews(str(path), "text", None, split=True)
    assert found.sample == ["The soup was cold.", "Nobody came.", "We sat outside."]
    assert found.sample == read_sample(str(path), "text", split=True, on_error=raise_error)
    assert [number for _, number in found.sentences(split=True)] == [0, 0, 1, 2]


def test_reviews_are_read_only_as_far_as_they_are_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("awatt.detector.detector.FIRST_ROWS", 20)
    left = iter(f"{REVIEWS[0]} {number}" for number in range(100))
    detector = AspectDetector.from_examples(EXAMPLES, reviews=left)
    assert detector.reviews is not None
    assert len(detector.reviews.lengths) == 20
    assert next(left).endswith(" 20")
    with pytest.raises(AwattError, match="found the single text 'soup', but a list of texts is needed"):
        AspectDetector.from_examples(EXAMPLES, reviews="soup")


def test_the_command_takes_its_input_for_the_file(
    run: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("reviews.txt").write_text("\n".join(REVIEWS), encoding="utf-8")
    Path("examples.json").write_text(json.dumps(EXAMPLES))
    given = ("--examples", "examples.json", "--quiet")
    assert run("detect", "reviews.txt", *given, "--out", "found.jsonl").code == 0
    found = [json.loads(line) for line in Path("found.jsonl").read_text("utf-8").splitlines()]
    direct = AspectDetector.from_examples(EXAMPLES, reviews=REVIEWS)
    assert [row["aspects"] for row in found] == [each.aspects for each in direct.detect_many(REVIEWS)]
    assert found[0]["scores"] == direct.detect(REVIEWS[0]).scores


def test_a_pipe_is_its_own_sample(run: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("examples.json").write_text(json.dumps(EXAMPLES))
    stream = io.TextIOWrapper(io.BytesIO("\n".join(REVIEWS).encode()), encoding="utf-8")
    monkeypatch.setattr("sys.stdin", stream)
    done = run("detect", "-", "--format", "txt", "--examples", "examples.json", "--quiet")
    found = [json.loads(line)["aspects"] for line in done.out.splitlines()]
    direct = AspectDetector.from_examples(EXAMPLES, reviews=REVIEWS)
    assert found == [each.aspects for each in direct.detect_many(REVIEWS)]


# ---- aims


def test_aims_in_words() -> None:
    detector = AspectDetector.from_examples(EXAMPLES, reviews=REVIEWS)
    cuts = {aim: detector.thresholds(aim) for aim in ("balanced", "precise", "thorough", "auto")}
    np.testing.assert_array_equal(cuts["auto"], cuts["balanced"])
    assert (cuts["thorough"] <= cuts["balanced"]).all()
    assert (cuts["balanced"] <= cuts["precise"]).all()
    mixed = detector.thresholds({"service": "precise"})
    assert mixed.tolist() == [cuts["balanced"][0], cuts["precise"][1]]
    found = [int(detector.predictions(REVIEWS, aim).accepted.sum()) for aim in ("precise", "balanced", "thorough")]
    assert found == sorted(found)


def test_an_aim_that_does_not_exist_names_all() -> None:
    detector = AspectDetector.from_examples(EXAMPLES)
    with pytest.raises(AwattError, match="'bold', but one of these is needed: balanced, precise, thorough, auto"):
        detector.thresholds("bold")
    with pytest.raises(AwattError, match="mode paper has one of its own"):
        AspectDetector.from_examples(EXAMPLES, mode="paper", threshold="precise").detect("x")


# ---- labels


def _macro_f1(truth: Any, found: Any) -> float:
    right, total = (truth & found).sum(0), truth.sum(0) + found.sum(0)
    return float((2 * right / np.maximum(total, 1)).mean())


def test_more_labels_never_make_it_worse_on_average() -> None:
    """Many draws from the sample: 3 examples per aspect, then 30 and 120 more sentences as they come."""
    names = ["food", "service", "bed", "screen"]
    labels = SAMPLE.mentions[:, [SAMPLE.aspects.index(name) for name in names]]
    reached = []
    for seed in range(8):
        order = np.random.default_rng(seed).permutation(len(REVIEWS))
        test, rest = order[:150], order[150:]
        chosen = np.unique(np.concatenate([rest[labels[rest, column]][:3] for column in range(len(names))]))
        others = rest[~np.isin(rest, chosen)]
        row = []
        for count in (0, 30, 120):
            given = np.concatenate([chosen, others[:count]])
            detector = AspectDetector(classes=names).fit(
                [REVIEWS[number] for number in given], labels[given].astype(int), [REVIEWS[n] for n in test]
            )
            found = detector.predictions([REVIEWS[number] for number in test]).accepted
            row.append(_macro_f1(labels[test], found))
        reached.append(row)
    few, more, most = np.mean(reached, 0)
    assert few < more + 0.005
    assert more < most + 0.005
    assert most > few + 0.01


def test_an_aspect_alone_is_not_found_everywhere() -> None:
    rows = [json.loads(line) for line in (files("awatt.data") / "sample.jsonl").read_text("utf-8").splitlines()]
    laptops = [row for row in rows if row["domain"] == "laptop"]
    texts, found, true = [row["text"] for row in laptops], 0, 0
    for aspect in sorted({aspect for row in laptops for aspect in row["aspects"]}):
        mentions = [row["text"] for row in laptops if aspect in row["aspects"]]
        detector = AspectDetector.from_examples({aspect: mentions[:5]}, reviews=texts)
        found += sum(bool(each.aspects) for each in detector.detect_many(texts))
        true += len(mentions)
    assert true / 2 < found < 1.5 * true


def test_a_sentence_that_was_corrected_to_none_kept_its_aspect() -> None:
    detector = AspectDetector.from_examples({"food": ["Tasty soup.", "My keys."], "staff": ["Rude waiter."]})
    detector.add_examples(None, ["My keys."])
    assert ("My keys.", ()) in detector.examples.pairs()
    detector.add_examples("food", ["My keys."])
    assert ("My keys.", ("food",)) in detector.examples.pairs()
    detector.add_examples("staff", ["My keys."])
    assert ("My keys.", ("food", "staff")) in detector.examples.pairs()


def test_fit_scored_what_teaches_nothing() -> None:
    with pytest.raises(AwattError, match="every example mentions both"):
        AspectDetector().fit(["The soup was cold.", "The waiter was rude."], np.ones((2, 2), dtype=int))
    with pytest.raises(AwattError, match="has no words"):
        AspectDetector().fit(["!!!", "???"], [["\U0001f355"], []])


def test_natural_mistakes_are_named() -> None:
    detector = AspectDetector.from_names(["food", "staff"])
    with pytest.raises(AwattError, match=r"found 2 texts, but one is needed\. Use detect_many"):
        detector.detect(["Tasty soup.", "Rude waiter."])  # type: ignore[arg-type]
    with pytest.raises(AwattError, match="found a table, but a list of texts is needed"):
        detector.predict(TABLE)
