"""Settings from --set and TOML, and errors that say what is valid."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from awatt.config import build, choose, parse_overrides, read_toml
from awatt.errors import AwattError, DataError


@dataclass(frozen=True)
class Settings:
    """One field of each type that a settings class has."""

    count: int = 1
    rate: float = 0.5
    flag: bool = False
    name: str = ""
    rates: tuple[float, ...] = (1.0,)


@dataclass(frozen=True)
class Nothing:
    """A class without settings."""


@pytest.mark.parametrize(
    ("item", "value"),
    [
        ("s.x=10", 10),
        ("s.x=-3", -3),
        ("s.x=1e-4", 1e-4),
        ("s.x=2.0", 2.0),
        ("s.x=true", True),
        ("s.x=false", False),
        ("s.x=True", "True"),  # not TOML, so a string
        ("s.x=a word", "a word"),
        ('s.x="quoted = 1"', "quoted = 1"),
        ("s.x=/some/glove.6B.50d.txt", "/some/glove.6B.50d.txt"),
        ("s.x=[0.1, 1]", [0.1, 1]),
        ("s.x=", ""),
        ("s.x=a=b", "a=b"),
        (" s.x = 4", 4),
    ],
)
def test_an_override_is_parsed(item: str, value: object) -> None:
    (found,) = parse_overrides([item])["s"].values()
    assert found == value
    assert type(found) is type(value)


def test_overrides_are_grouped_by_section_and_the_last_one_wins() -> None:
    found = parse_overrides(["model.e_m=5", "training.patience=2", "model.other=x", "model.e_m=25"])
    assert found == {"model": {"e_m": 25, "other": "x"}, "training": {"patience": 2}}
    assert parse_overrides([]) == {}


@pytest.mark.parametrize("item", ["model.e_m", "e_m=5", ".e_m=5", "model.=5", "=5", "", "model"])
def test_an_override_of_another_form_is_refused(item: str) -> None:
    with pytest.raises(AwattError, match=r"--set needs section\.field=value, for example model\.e_m=10") as caught:
        parse_overrides([item])
    assert repr(item) in str(caught.value)


def test_settings_are_built_from_plain_values() -> None:
    found = build(Settings, {"count": 3, "rate": 2, "flag": True, "name": "x", "rates": [1, 0.5]}, "model")
    assert found == Settings(3, 2.0, True, "x", (1.0, 0.5))
    assert type(found.rate) is float
    assert [type(rate) for rate in found.rates] == [float, float]
    assert build(Settings, {}, "model") == Settings()


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"count": 1.5}, "setting 'model.count' is 1.5, needs int."),
        ({"count": "3"}, "setting 'model.count' is '3', needs int."),
        ({"count": True}, "setting 'model.count' is True, needs int."),
        ({"rate": True}, "setting 'model.rate' is True, needs float."),
        ({"rate": "fast"}, "setting 'model.rate' is 'fast', needs float."),
        ({"flag": 1}, "setting 'model.flag' is 1, needs bool."),
        ({"flag": "True"}, "setting 'model.flag' is 'True', needs bool."),
        ({"name": 5}, "setting 'model.name' is 5, needs str."),
        ({"rates": 0.5}, "setting 'model.rates' is 0.5, needs tuple"),
        ({"rates": [0.5, "x"]}, "setting 'model.rates' is 'x', needs float."),
        ({"count": None}, "setting 'model.count' is None, needs int."),
    ],
)
def test_a_wrong_type_is_refused_with_the_right_one(values: dict[str, object], message: str) -> None:
    with pytest.raises(AwattError) as caught:
        build(Settings, values, "model")
    assert str(caught.value).startswith(message)


def test_an_unknown_field_lists_the_valid_ones() -> None:
    with pytest.raises(AwattError) as caught:
        build(Settings, {"cuont": 3}, "model")
    valid = "model.count, model.rate, model.flag, model.name, model.rates"
    assert str(caught.value) == f"there is no setting 'model.cuont'. Valid here: {valid}."
    with pytest.raises(AwattError, match=r"there is no setting 'model\.x'\. Valid here: nothing\."):
        build(Nothing, {"x": 3}, "model")


def test_a_name_is_chosen_or_the_valid_ones_are_listed() -> None:
    kinds = {"one": 1, "two": 2}
    assert choose(kinds, "two", "method") == 2
    with pytest.raises(AwattError) as caught:
        choose(kinds, "three", "method")
    assert str(caught.value) == "there is no method 'three'. Choose one of: one, two."


def test_a_toml_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "run.toml"
    path.write_text('method = "proto-awatt"\n[model]\ne_m = 5\n', "utf-8")
    assert read_toml(path) == {"method": "proto-awatt", "model": {"e_m": 5}}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"[model\ne_m = 5", "line 1"),
        (b"e_m = \n", "line 1"),
        (b"name = '\xff'", "utf-8"),
        (b"a = 1\nb = \n", "line 2"),
    ],
)
def test_an_error_in_a_toml_file_names_the_file(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "run.toml"
    path.write_bytes(content)
    with pytest.raises(DataError) as caught:
        read_toml(path)
    assert str(caught.value).startswith(f"{path}: not TOML: ")
    assert words in str(caught.value)


def test_a_missing_toml_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(AwattError, match=r"none\.toml does not exist\. Check the path after --config"):
        read_toml(tmp_path / "none.toml")


def test_numbers_that_no_float_can_hold_are_refused() -> None:
    for value in (10**400, -(10**400), float("inf"), float("nan")):
        with pytest.raises(AwattError, match="needs a finite number"):
            build(Settings, {"rate": value}, "model")
    assert parse_overrides(["model.e_m=" + "[" * 100_000])["model"]["e_m"] == "[" * 100_000
