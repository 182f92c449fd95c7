"""Shares of aspects by the groups of a column."""

from __future__ import annotations

import numpy as np
import pytest

from awatt.detector.comparison import Tally, compare
from awatt.detector.groups import MAX_GROUPS, OTHER, Column, group_column, group_columns


def groups(*values: object) -> tuple[str, list[str], list[int]]:
    made = group_column("column", values)
    return made.kind, made.groups, made.places


def test_shares_are_counted_per_group_and_what_differs_most_comes_first() -> None:
    column = group_column("stars", ["10", "10", "10", "2", "2", "2", None])
    found = np.array([[1, 1], [0, 1], [1, 1], [1, 0], [0, 0], [1, 0], [1, 1]], dtype=bool)
    made = compare(column, found, ["food", "price"])
    assert (made.groups, made.counts) == (["2", "10"], [3, 3])  # numbers by size; no value is no group
    assert [each.name for each in made.aspects] == ["price", "food"]
    assert [each.strength for each in made.aspects] == [1.0, 0.0]
    assert [share.value for share in made.aspects[0].shares if share] == [0.0, 1.0]
    assert [round(share.value, 4) for share in made.aspects[1].shares if share] == [0.6667, 0.6667]
    assert all(share and share.low < share.high for each in made.aspects for share in each.shares)
    assert str(made).splitlines()[:3] == [
        "price by stars",
        "  2          3    0.0% (0.0% to 56.1%)",
        "  10         3  100.0% (43.9% to 100.0%)",
    ]


def test_strength_is_the_v_of_cramer() -> None:
    stats = pytest.importorskip("scipy.stats")
    rng = np.random.default_rng(0)
    places, found = rng.integers(4, size=300), rng.random((300, 2)) < 0.3
    made = compare(Column("c", "groups", list("abcd"), places.tolist()), found, ["one", "two"])
    for column, name in enumerate(("one", "two")):
        counts = [[sum((places == g) & (found[:, column] == f)) for g in range(4)] for f in (True, False)]
        wanted = stats.contingency.association(np.array(counts), method="cramer")
        assert next(a.strength for a in made.aspects if a.name == name) == pytest.approx(wanted, abs=1e-4)


def test_an_aspect_in_every_review_differs_nowhere() -> None:
    found = np.array([[1, 1], [1, 0]], dtype=bool)
    assert [each.name for each in compare(group_column("a", "xy"), found, ["all", "some"]).aspects] == ["some", "all"]


def test_dates_become_periods_without_a_gap() -> None:
    assert groups("2024-01-31", "2024/3/1", None) == ("time", ["2024-01", "2024-02", "2024-03"], [0, 2, -1])
    assert groups("2024.01.31", "2024.3.1 10:00")[1] == ["2024-01", "2024-02", "2024-03"]
    assert groups("2024-02-03T10:00", "2024-02-01 9:00")[1] == ["2024-02-01", "2024-02-02", "2024-02-03"]
    assert groups("2015-01-01", "2024-12-31")[1][:2] == ["2015 Q1", "2015 Q2"]
    assert groups("1990-01-01", "2024-12-31")[1][:2] == ["1990", "1991"]
    assert groups("1900-01-01", "2024-12-31")[1][::12] == ["1900 to 1909", "2020 to 2029"]
    assert groups("0001-01-01", "2024-12-31")[1][::20] == ["0 to 99", "2000 to 2099"]
    empty = compare(group_column("day", ["2024-01-31", "2024-03-01"]), np.ones((2, 1), dtype=bool), ["food"])
    assert (empty.counts, empty.aspects[0].shares[1]) == ([1, 0, 1], None)
    assert "2024-02         0       -" in str(empty)


def test_prices_of_four_digits_were_read_as_dates() -> None:
    assert groups(1049.5, 1100.1, 1049.5) == ("groups", ["1049.5", "1100.1"], [0, 1, 0])


def test_many_numbers_become_ranges_and_many_texts_the_most_frequent() -> None:
    kind, names, places = groups(*(number / 4 for number in range(100)))
    assert (kind, names) == ("groups", ["0 to 4.75", "5 to 9.75", "10 to 14.75", "15 to 19.75", "20 to 24.75"])
    assert np.bincount(places).tolist() == [20] * 5
    kind, names, places = groups(*(20240101 + number // 2 for number in range(100)))  # alike in their first digits
    assert (kind, names[0], names[-1]) == ("groups", "20240101 to 20240110", "20240141 to 20240150")
    assert np.bincount(places).tolist() == [20] * 5
    cities = [f"city {number % 40}" if number < 800 else "village " + str(number) for number in range(850)]
    kind, names, places = groups(*cities)
    assert (kind, len(names), names[-1]) == ("groups", MAX_GROUPS, OTHER)
    assert places.count(MAX_GROUPS - 1) == 850 - 20 * (MAX_GROUPS - 1)
    assert groups(*["cheap"] * 90, *range(100))[0] == "free"  # no second value is frequent


def test_values_that_identify_a_review_cannot_be_compared() -> None:
    rows = [{"stars": n % 2, "city": "Bonn", "id": n, "tags": [n], "price": n + 0.5, "none": ""} for n in range(40)]
    columns = {column.name: column for column in group_columns(rows)}
    assert list(columns) == ["stars", "city", "id", "price"]  # a list or nothing is no value
    assert [name for name, column in columns.items() if column.comparable] == ["stars", "price"]
    assert columns["id"].kind == "free"
    assert columns["id"].groups[:3] == ["0", "1", "2"]


@pytest.mark.parametrize("word", ["n/a", "NA", "nan", "NULL", "None", "-", "--", "?", "", None, float("nan")])
def test_one_cell_without_a_number_turned_a_column_of_numbers_into_text(word: object) -> None:
    kind, names, places = groups(*(number / 4 for number in range(59)), word)
    assert (kind, len(names), places[-1]) == ("groups", 5, -1)
    assert groups("yes", "no", "?") == ("free", ["?", "no", "yes"], [2, 1, 0])  # of words it may be one


@pytest.mark.parametrize("word", ["n/a", "-", "unknown"])
def test_one_cell_without_a_date_turned_a_column_of_dates_into_text(word: str) -> None:
    dates = [f"2024-{month:02}-{day:02}" for month in (1, 2, 3) for day in range(1, 21)]
    tally = Tally(["date"], ["food"])
    tally.add({"date": [*dates, word]}, np.ones((61, 1), dtype=bool))
    if word == "unknown":  # it may mean something
        assert tally.others() == {"date": "dates, but also 'unknown'"}
    else:
        assert groups(*dates, word)[:2] == ("time", ["2024-01", "2024-02", "2024-03"])
        assert [each.counts for each in tally.comparisons()] == [[20, 20, 20]]


def test_a_column_that_is_not_compared_says_what_it_has() -> None:
    names = ("city", "id", "blank", "word", "stars", "price", "some", "dashes")
    tally = Tally(names, ["food"])
    rows = range(100)
    values = {"city": ["Bonn"] * 100, "id": list(rows), "blank": [""] * 100, "stars": [n % 5 for n in rows]}
    values["word"] = [f"w{n // 2}" for n in rows]
    values["price"] = [f"{n / 4}" if n < 95 else f"about {n}" for n in rows]
    values["some"] = [f"name {n}" if n < 40 else "" for n in rows]
    values["dashes"] = ["-"] * 100
    tally.add(values, np.ones((100, 1), dtype=bool))
    assert tally.others() == {
        "city": "only one value",
        "id": "a different value in every row",
        "blank": "no value",
        "word": "too many different values",
        "price": "numbers, but also 'about 95'",
        "some": "a different value in every row that has one",
        "dashes": "only one value",
    }
