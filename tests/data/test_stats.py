"""The numbers of a dataset: by hand on a tiny one, as the data's README says on the real ones."""

from collections.abc import Callable
from math import comb, sqrt
from pathlib import Path

import pytest

from awatt.data.corpus import Corpus, load_corpus
from awatt.data.sampler import EpisodeShape
from awatt.data.stats import corpus_stats, dataset_stats, episode_stats
from awatt.errors import AwattError

WriteJson = Callable[[Path, object], Path]


def rows_of(**sizes: int) -> dict[str, list[list[list[str]]]]:
    return {name: [[[name, str(number)], [name]] for number in range(size)] for name, size in sizes.items()}


def test_counts_of_a_corpus_by_hand() -> None:
    corpus = Corpus.from_rows(
        "test",
        [
            ("one two three", ("soup",), ("bed",)),
            ("one two", ("soup",), ()),
            ("one", ("soup", "bed"), ()),
            ("a b c d e f g h i j", ("bed",), ()),
            ("nothing at all", (), ()),
        ],
    )
    found = corpus_stats(corpus)
    assert found == {
        "classes": 2,
        "instances": 5,
        "instances_a_class_min": 2,
        "instances_a_class_max": 3,
        "sentences": 5,
        "one_aspect_rows": 2,
        "multi_aspect_share": pytest.approx(3 / 5),
        "words_mean": pytest.approx((3 + 2 + 1 + 1 + 10) / 5),
        "words_median": 2.0,
        "words_p95": pytest.approx(3 + (10 - 3) * 0.8),
        "words_max": 10,
    }


def test_episode_shares_are_zero_and_one_where_they_must_be() -> None:
    apart = Corpus.from_rows("test", [(f"{name} {n}", (name,), ()) for name in "abc" for n in range(4)])
    found = episode_stats(apart, 30, EpisodeShape(2, 2, 2), 5)
    assert found == {
        "episodes": 30,
        "n_way": 2,
        "n_shot": 2,
        "multi_label_query_share": 0.0,
        "second_common_aspect_share": 0.0,
    }
    together = Corpus.from_rows("test", [(f"s {n}", ("a", "b"), ()) for n in range(8)])
    found = episode_stats(together, 30, EpisodeShape(2, 2, 2), 5)
    assert found["multi_label_query_share"] == 1.0
    assert found["second_common_aspect_share"] == 1.0


def test_episode_shares_do_not_depend_on_how_episodes_are_batched(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [(f"{name} {n}", (name,), ("abc"[n % 3],)) for name in "abc" for n in range(12)]
    corpus = Corpus.from_rows("test", rows)
    whole = episode_stats(corpus, 105, EpisodeShape(2, 2, 2), 5)
    monkeypatch.setattr("awatt.data.stats._BATCH", 10)
    parts = episode_stats(corpus, 105, EpisodeShape(2, 2, 2), 5)
    assert parts == pytest.approx(whole)
    assert 0 < whole["multi_label_query_share"] < 1


def test_stats_cover_the_splits_that_are_there(tmp_path: Path, write_json: WriteJson) -> None:
    write_json(tmp_path / "val.json", rows_of(soup=4, bed=5))
    write_json(tmp_path / "provenance.json", {"splits": {"val": {"source": "official"}}})
    found = dataset_stats(tmp_path, 10, EpisodeShape(2, 2, 2), 5)
    assert list(found["splits"]) == ["val"]  # type: ignore[call-overload]
    assert found["provenance"] == {"splits": {"val": {"source": "official"}}}


def test_shares_that_only_the_build_knows_come_from_its_provenance(tmp_path: Path, write_json: WriteJson) -> None:
    for split in ("val", "test"):
        write_json(tmp_path / f"{split}.json", rows_of(soup=4, bed=5))
    known = {"single_aspect_share": 0.36, "in_single_file_share": None}
    write_json(tmp_path / "provenance.json", {"splits": {"val": {"source": "official"} | known}})
    splits = dataset_stats(tmp_path, 10, EpisodeShape(2, 2, 2), 5)["splits"]
    assert isinstance(splits, dict)
    assert splits["val"]["single_aspect_share"] == 0.36
    assert "in_single_file_share" not in splits["val"]
    assert "single_aspect_share" not in splits["test"]


def test_a_dataset_without_provenance_says_so(tmp_path: Path, write_json: WriteJson) -> None:
    write_json(tmp_path / "test.json", rows_of(soup=4, bed=5))
    assert dataset_stats(tmp_path, 10, EpisodeShape(2, 2, 2), 5)["provenance"] is None


def test_a_folder_without_any_split_is_refused(tmp_path: Path) -> None:
    with pytest.raises(AwattError, match="has no train split"):
        dataset_stats(tmp_path, 10, EpisodeShape(), 5)


@pytest.mark.parametrize("content", ["", '{"text": "no aspect at all"}\n'])
def test_stats_of_a_split_without_aspects_end_in_a_traceback(tmp_path: Path, content: str) -> None:
    """They did; now the refusal names what is missing."""
    (tmp_path / "test.jsonl").write_text(content)
    with pytest.raises(AwattError) as caught:
        dataset_stats(tmp_path, 10, EpisodeShape(), 5)
    assert str(caught.value) == "the test split has 0 aspects, but 5-way needs 5. Add aspects or lower --n-way."


@pytest.mark.parametrize(
    ("dataset", "counts"),
    [
        ("FewAsp", {"classes": 20, "instances": 12_600, "sentences": 12_383, "one_aspect_rows": 9_984}),
        ("FewAsp(multi)", {"classes": 20, "instances": 8_000, "one_aspect_rows": 5_491}),
    ],
)
def test_the_real_counts_agree_with_the_readme(real_build: Path, dataset: str, counts: dict[str, int]) -> None:
    found = corpus_stats(load_corpus(real_build / dataset, "test"))
    assert {name: found[name] for name in counts} == counts


@pytest.mark.parametrize(
    ("dataset", "n_way", "percent"),
    [("FewAsp", 5, 5.1), ("FewAsp(multi)", 5, 7.6), ("FewAsp", 10, 10.8), ("FewAsp(multi)", 10, 16.5)],
)
def test_the_real_share_of_multi_label_queries_agrees_with_the_readme(
    real_build: Path, dataset: str, n_way: int, percent: float
) -> None:
    corpus = load_corpus(real_build / dataset, "test")
    found = episode_stats(corpus, 1000, EpisodeShape(n_way, 5, 5), 5)
    assert 100 * found["multi_label_query_share"] == pytest.approx(percent, abs=1.0)


@pytest.mark.parametrize("dataset", ["FewAsp", "FewAsp(multi)"])
def test_the_real_share_of_second_common_aspects_agrees_with_counting(real_build: Path, dataset: str) -> None:
    """The oracle counts instead of sampling. The paper's "less than 0.086 %" is no bound to test: FewAsp's test split
    has 0.09 % by counting, and 10,000 episodes give 0.06 to 0.10 % by the seed (8 seeds).
    """
    corpus = load_corpus(real_build / dataset, "test")
    shares = []
    for aspect, members in enumerate(corpus.members):
        others = corpus.mentions[members].sum(0).tolist()
        others[aspect] = 0
        shares.append(sum(comb(count, 5) for count in others) / comb(len(members), 5))
    expected = sum(shares) / len(shares)
    found = episode_stats(corpus, 2000, EpisodeShape(5, 5, 5), 5)["second_common_aspect_share"]
    assert found == pytest.approx(expected, abs=5 * sqrt(expected / (2000 * 5)))
