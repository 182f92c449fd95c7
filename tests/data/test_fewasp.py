"""FewAsp's own files are read as they are, and an error names the file and place."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from awatt.data.fewasp import DATASETS, SPLITS, Instance, read_fewasp, read_json, write_fewasp
from awatt.errors import AwattError, DataError

WriteJson = Callable[[Path, object], Path]


def test_a_file_gives_its_categories_and_instances_in_order(tmp_path: Path, write_json: WriteJson) -> None:
    content = {"soup": [[["the", "soup"], ["soup", "waiter"]], [["hot"], ["soup"]]], "waiter": [[["he"], ["waiter"]]]}
    assert read_fewasp(write_json(tmp_path / "train.json", content)) == {
        "soup": [Instance(("the", "soup"), ("soup", "waiter")), Instance(("hot",), ("soup",))],
        "waiter": [Instance(("he",), ("waiter",))],
    }


def test_writing_and_reading_gives_the_same(tmp_path: Path) -> None:
    categories = {
        "soup": [Instance(("the", "café", '"', "😀"), ("soup",))],
        "bed": [Instance(("soft",), ("bed", "soup"))],
    }
    path = tmp_path / "new" / "folder" / "val.json"
    write_fewasp(path, categories)
    assert read_fewasp(path) == categories
    assert [entry.name for entry in path.parent.iterdir()] == ["val.json"]  # nothing temporary is left


def test_a_failed_write_leaves_the_old_file_whole(tmp_path: Path) -> None:
    path = tmp_path / "val.json"
    write_fewasp(path, {"soup": [Instance(("hot",), ("soup",))]})
    before = path.read_bytes()
    with pytest.raises(TypeError):
        write_fewasp(path, {"soup": [object()]})  # type: ignore[list-item]
    assert path.read_bytes() == before


def error_of(path: Path) -> str:
    with pytest.raises(DataError) as caught:
        read_fewasp(path)
    message = str(caught.value)
    assert message.startswith(str(path))
    assert "\n" not in message
    return message.removeprefix(str(path))


def test_broken_json_names_the_line_and_character(tmp_path: Path) -> None:
    path = tmp_path / "train.json"
    path.write_text('{"soup": [\n  [["hot"], ["soup"]],\n  oops\n]}')
    assert error_of(path) == ", line 3: not JSON at character 3: Expecting value. Fix it, or download the file again."


def test_a_file_cut_short_names_the_line(tmp_path: Path) -> None:
    path = tmp_path / "train.json"
    path.write_text('{"soup": [[["hot"], ["soup"]]')
    assert error_of(path).startswith(", line 1: not JSON at character ")


def test_an_empty_file_is_not_json(tmp_path: Path) -> None:
    path = tmp_path / "train.json"
    path.touch()
    assert error_of(path).startswith(", line 1: not JSON at character 1: ")


def test_another_encoding_names_the_byte(tmp_path: Path) -> None:
    path = tmp_path / "train.json"
    path.write_bytes('{"café": []}'.encode("latin-1"))
    assert error_of(path) == ": byte 5 is not UTF-8. Save the file as UTF-8."


@pytest.mark.parametrize("content", [[], ["soup"], "soup", 7, None, {}])
def test_anything_but_a_nonempty_dict_is_refused(tmp_path: Path, write_json: WriteJson, content: object) -> None:
    message = error_of(write_json(tmp_path / "train.json", content))
    assert (
        message
        == f": found {str(content)!r}, needs a dict from category to instances. Fix it, or download the file again."
    )


@pytest.mark.parametrize("rows", [{}, "soup", 7, None])
def test_a_category_without_a_list_is_named(tmp_path: Path, write_json: WriteJson, rows: object) -> None:
    message = error_of(write_json(tmp_path / "train.json", {"bed": [[["soft"], ["bed"]]], "soup": rows}))
    assert message == f", column 'soup': needs a list of instances, found {str(rows)!r}."


@pytest.mark.parametrize(
    "row",
    [
        7,
        None,
        "ab",
        [],
        [["hot"]],
        [["hot"], ["soup"], ["more"]],
        [["hot"], "soup"],
        ["hot", ["soup"]],
        [["hot", 7], ["soup"]],
        [["hot"], [None]],
        [[], ["soup"]],
        [["hot"], []],
        {"tokens": ["hot"], "aspects": ["soup"]},
    ],
)
def test_a_malformed_instance_is_named_by_category_and_number(
    tmp_path: Path, write_json: WriteJson, row: object
) -> None:
    message = error_of(write_json(tmp_path / "train.json", {"soup": [[["hot"], ["soup"]], row]}))
    start = ", column 'soup': instance 1 must be [tokens, aspects], two lists of strings; found "
    assert message.startswith(start)
    assert message == f"{start}{str(row)[:60]!r}."


def test_a_missing_file_says_to_check_the_path(tmp_path: Path) -> None:
    with pytest.raises(AwattError) as caught:
        read_json(tmp_path / "none.json")
    assert str(caught.value) == f"{tmp_path / 'none.json'} does not exist. Check the path."


@pytest.mark.parametrize(("dataset", "each"), DATASETS.items())
def test_the_benchmark_holds_what_its_readme_says(shared: Path, dataset: str, each: int) -> None:
    folder = shared / "data" / "fewasp"
    separate = json.loads((folder / "separate.json").read_text())
    assert [len(separate[split]) for split in ("train", "validation", "test")] == [64, 16, 20]
    found = [split for split in SPLITS if (folder / dataset / f"{split}.json").is_file()]
    assert {"val", "test"} <= set(found)
    for split in found:
        groups = read_fewasp(folder / dataset / f"{split}.json")
        assert set(groups) == set(separate["validation" if split == "val" else split])
        assert {len(instances) for instances in groups.values()} == {each}
        for category, instances in groups.items():
            assert all(category in instance.aspects for instance in instances)
            assert all(set(instance.aspects) <= set(groups) for instance in instances)


@pytest.mark.parametrize(
    ("dataset", "rows", "sentences", "one"), [("FewAsp", 12_600, 12_383, 9_984), ("FewAsp(multi)", 8_000, None, 5_491)]
)
def test_the_counts_of_the_test_splits(shared: Path, dataset: str, rows: int, sentences: int | None, one: int) -> None:
    groups = read_fewasp(shared / "data" / "fewasp" / dataset / "test.json")
    instances = [instance for group in groups.values() for instance in group]
    assert len(instances) == rows
    assert sum(len(instance.aspects) == 1 for instance in instances) == one
    if sentences:
        assert len({instance.tokens for instance in instances}) == sentences
