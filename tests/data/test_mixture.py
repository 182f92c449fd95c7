"""FewAsp's proportion of single-aspect sentences, by hand and on the real data."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from awatt.data.fewasp import Instance, write_fewasp
from awatt.data.mixture import Labels, Mixture, Sentence, shares
from awatt.data.sampler import EpisodeShape
from awatt.data.stats import dataset_stats


def sentence(kind: str, number: int) -> Sentence:
    return (kind, str(number))


def labelled(one: int, several: int, kind: str = "yelp") -> Labels:
    """Sentences about soup: so many with that aspect alone, so many with another."""
    found = {sentence(f"{kind}-one", number): {"soup"} for number in range(one)}
    return found | {sentence(f"{kind}-several", number): {"soup", "bed"} for number in range(several)}


def instances(labels: Labels) -> list[Instance]:
    return [Instance(tokens, tuple(sorted(found))) for tokens, found in labels.items()]


def count(kept: list[Instance]) -> dict[str, int]:
    kinds = [instance.tokens[0] for instance in kept]
    return {kind: kinds.count(kind) for kind in sorted(set(kinds))}


def test_shares_by_hand() -> None:
    labels = labelled(1, 2)
    rows = {"soup": instances(labels), "bed": [Instance(("not", "in", "yelp"), ("bed",))]}
    # Of three rows with known labels one has a single aspect; one of four rows stands in the single-aspect file.
    assert shares(rows, labels, {("not", "in", "yelp")}) == {
        "single_aspect_share": 0.3333,
        "in_single_file_share": 0.25,
    }
    assert shares({}, labels, set()) == {"single_aspect_share": None, "in_single_file_share": None}


def test_the_share_is_the_one_of_the_category_in_all_of_yelp_aspect() -> None:
    labels = labelled(30, 70)
    pool = labelled(30, 35) | labelled(40, 0, "file")  # half of those with several aspects are held out
    kept = Mixture(labels, None, None).in_proportion("soup", instances(pool), pool, set(), np.random.default_rng(0))
    # 35 / 0.7 = 50 rows: 35 with several aspects and 15 of the 70 with one
    found = count(kept)
    assert found["yelp-several"] == 35
    assert found["yelp-one"] + found["file-one"] == 15
    assert kept == [instance for instance in instances(pool) if instance in kept]  # in the order of the pool


@pytest.mark.parametrize(("n_file", "expected"), [(40, 6), (4, 4)])
def test_as_many_come_from_the_single_aspect_file_as_in_official_validation(
    tmp_path: Path, n_file: int, expected: int
) -> None:
    labels, held = labelled(30, 70), labelled(5, 5, "val")
    rows = instances(held)
    # Of ten rows five have one aspect, and two of these stand in the single-aspect file: 40 %.
    write_fewasp(tmp_path / "mixed.json", {"soup": rows})
    write_fewasp(tmp_path / "single.json", {"soup": rows[:2]})
    mixture = Mixture(labels | held, tmp_path / "mixed.json", tmp_path / "single.json")
    assert mixture.file_share == pytest.approx(0.4)
    mixture.labels = labels
    in_file = labelled(n_file, 0, "file")
    pool = labelled(30, 35) | in_file
    kept = mixture.in_proportion("soup", instances(pool), pool, set(in_file), np.random.default_rng(0))
    assert count(kept) == {"file-one": expected, "yelp-one": 15 - expected, "yelp-several": 35}


def test_a_category_with_one_kind_only_keeps_all() -> None:
    labels, pool = labelled(3, 7), labelled(5, 0)
    mixture, random = Mixture(labels, None, None), np.random.default_rng(0)
    assert mixture.in_proportion("soup", instances(pool), pool, set(), random) == instances(pool)


def test_the_rebuilt_train_split_is_distributed_as_official_validation(real_build: Path) -> None:
    """It was not: 66 % of its rows had one aspect, 47 % stood in FewAsp(single), 2.2 % of queries had two labels."""
    splits = dataset_stats(real_build / "FewAsp", 2000, EpisodeShape(), 5)["splits"]
    assert isinstance(splits, dict)
    train, val = splits["train"], splits["val"]
    assert train["single_aspect_share"] == pytest.approx(val["single_aspect_share"], abs=0.02)
    assert train["in_single_file_share"] == pytest.approx(val["in_single_file_share"], abs=0.02)
    assert train["words_mean"] == pytest.approx(val["words_mean"], abs=0.5)
    # The paper's footnote says 4.5 %; official validation has 3.1 %, test 5.0 %.
    assert train["multi_label_query_share"] == pytest.approx(0.045, abs=0.005)
