"""The columns of reviews, with their values in groups that can be filtered by and compared: stars, cities, months."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

MAX_GROUPS = 30  # more bars do not fit a chart
MAX_PERIODS = 48  # on a line
RANGES = 5  # of a column with many different numbers, with about the same number of reviews each
MIN_REVIEWS = 10  # of a value that is a group of its own, where there are too many values for all to be one
MAX_CHARACTERS = 200  # of a value: enough to recognise it
#: a year and a month, and perhaps a day and a time; with a dot and without a day it is a number, such as 1049.5
DATE = re.compile(r"(\d{4})(?:[-/]|\.(?=\d+\D))(0?[1-9]|1[0-2])([-/.](0?[1-9]|[12]\d|3[01])(\D.*)?)?")
OTHER = "(other)"
#: in a column of numbers or dates, these in any case mean that there is no value
MISSING = frozenset(("n/a", "na", "nan", "null", "none", "-", "--", "?"))

Kind = Literal["time", "groups", "free"]


@dataclass(frozen=True)
class Column:
    """A column and the group of each review, -1 where the review has no value.

    ``kind`` is *time* (periods without a gap, in order), *groups* (values or ranges), or *free*: every value is a group
    of its own, as for names and numbers that identify a review, and comparing them says nothing.
    """

    name: str
    kind: Kind
    groups: list[str]
    places: list[int]

    @property
    def comparable(self) -> bool:
        """Whether comparing its groups is meaningful."""
        return self.kind != "free" and len(set(self.places) - {-1}) > 1


def group_columns(rows: Sequence[Mapping[str, object]]) -> list[Column]:
    """All columns of the reviews in their order, without those that have no value anywhere."""
    names = dict.fromkeys(name for row in rows for name in row)
    made = (group_column(name, (row.get(name) for row in rows)) for name in names)
    return [column for column in made if column.groups]


def group_column(name: str, values: Iterable[object]) -> Column:
    """The column with its values in groups: dates by period, many numbers by range, many texts by frequency."""
    texts = [_text(value) for value in values]
    kind, groups, place_of = _group(_without_missing(Counter(text for text in texts if text)))
    return Column(name, kind, groups, [place_of.get(text, -1) for text in texts])


def _without_missing(counts: Counter[str]) -> Mapping[str, int]:
    """The values without the words for a missing one, if all others are numbers or all are dates."""
    rest = {value: count for value, count in counts.items() if value.lower() not in MISSING}
    return rest if rest and (all(map(is_number, rest)) or all(map(is_date, rest))) else counts


def _text(value: object) -> str:
    if value is None or isinstance(value, list | dict):
        return ""
    if isinstance(value, float):
        return "" if value != value else f"{value:.15g}"
    return str(value).strip()[:MAX_CHARACTERS]


def _group(counts: Mapping[str, int]) -> tuple[Kind, list[str], dict[str, int]]:
    """The kind, the groups in their order, and the number of each value's group."""
    values = sorted(counts, key=_sorting_key)
    own = {value: number for number, value in enumerate(values)}
    if counts and all(map(is_date, counts)):
        return "time", *_periods(values)
    if counts and max(counts.values()) == 1 and len(counts) > 2 and not _are_measures(values):
        return "free", values, own
    if len(counts) <= MAX_GROUPS:
        return "groups", values, own
    if all(map(is_number, values)):
        return "groups", *_ranges(counts)
    frequent = [
        value for value in sorted(counts, key=lambda each: (-counts[each], each)) if counts[value] >= MIN_REVIEWS
    ]
    if len(frequent) < 2:
        return "free", values, own
    kept = sorted(frequent[: MAX_GROUPS - 1], key=own.__getitem__)
    place_of = {value: number for number, value in enumerate(kept)}
    return "groups", [*kept, OTHER], {value: place_of.get(value, len(kept)) for value in values}


def _are_measures(values: Sequence[str]) -> bool:
    """Whether these different values are numbers with decimals, such as prices, not numbers of rows."""
    numbers = [_number(value) for value in values]
    return all(number is not None for number in numbers) and any(number != int(number or 0) for number in numbers)


def _periods(values: Sequence[str]) -> tuple[list[str], dict[str, int]]:
    """By month; where there is one month only by day, where there are too many by quarter, by year or by more years."""
    found = {value: DATE.fullmatch(value) for value in values}
    dates = {v: (int(m[1]), int(m[2]), int(m[4] or 1)) for v, m in found.items() if m}

    def spread(
        number_of: Callable[[int, int, int], int], name_of: Callable[[int], str]
    ) -> tuple[list[str], dict[str, int]]:
        numbers = {value: number_of(*date) for value, date in dates.items()}
        first, last = min(numbers.values()), max(numbers.values())
        return [name_of(n) for n in range(first, last + 1)], {value: n - first for value, n in numbers.items()}

    months = spread(lambda y, m, d: 12 * y + m - 1, lambda n: f"{n // 12}-{n % 12 + 1:02}")
    if len(months[0]) == 1:
        return spread(lambda y, m, d: d, lambda n: f"{months[0][0]}-{n:02}")
    if len(months[0]) <= MAX_PERIODS:
        return months
    quarters = spread(lambda y, m, d: 4 * y + (m - 1) // 3, lambda n: f"{n // 4} Q{n % 4 + 1}")
    if len(quarters[0]) <= MAX_PERIODS:
        return quarters
    first, last = min(dates.values())[0], max(dates.values())[0]
    # Many, because a date such as 1900-01-01 often stands for none.
    years = next(step for step in (1, 10, 100, 1000) if last // step - first // step < MAX_PERIODS)
    return spread(
        lambda y, m, d: y // years, lambda n: str(n) if years == 1 else f"{n * years} to {n * years + years - 1}"
    )


def _ranges(counts: Mapping[str, int]) -> tuple[list[str], dict[str, int]]:
    """Ranges of numbers, each named after its lowest and highest value."""
    number_of = {value: float(value) for value in counts}
    numbers = np.array(sorted(number_of[value] for value, count in counts.items() for _ in range(count)))
    edges = np.unique(numbers[[len(numbers) * part // RANGES for part in range(1, RANGES)]])
    places = {value: int(np.searchsorted(edges, number, side="right")) for value, number in number_of.items()}
    members: dict[int, list[float]] = {}
    for value, place in places.items():
        members.setdefault(place, []).append(number_of[value])
    ends = [end for _, each in sorted(members.items()) for end in (min(each), max(each))]
    # Six digits, if they tell different numbers apart.
    digits = 6 if len({f"{end:.6g}" for end in ends}) == len(set(ends)) and max(map(abs, ends)) < 1e6 else 15
    names = [f"{low:.{digits}g} to {high:.{digits}g}" for low, high in zip(ends[::2], ends[1::2], strict=True)]
    number_of_place = {place: number for number, place in enumerate(sorted(members))}
    return names, {value: number_of_place[place] for value, place in places.items()}


def is_number(value: str) -> bool:
    """Whether it is a finite number."""
    return _number(value) is not None


def is_date(value: str) -> bool:
    """Whether it is a date, or a year and a month."""
    return DATE.fullmatch(value) is not None


def _number(value: str) -> float | None:
    try:
        number = float(value)
    except ValueError:
        return None
    return number if np.isfinite(number) else None


def _sorting_key(value: str) -> tuple[bool, float, str]:
    """Numbers by size, then everything else by its letters."""
    number = _number(value)
    return number is None, number or 0.0, value
