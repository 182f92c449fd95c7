"""The three datasets are built as the paper says: official files as they are, the rest without a leak."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from awatt.data.fewasp import DATASETS, SPLITS, Instance, read_fewasp
from awatt.data.yelp_aspect import build, read_yelp_aspect
from awatt.errors import AwattError, DataError

WriteJson = Callable[[Path, object], Path]
WriteYelp = Callable[..., Path]
SINGLE, MULTI, MIXED = DATASETS

YELP = {
    "hot soup .": ["soup"],
    "the soup was salty .": ["soup"],
    "soft bed .": ["bed"],
    "soup in bed .": ["soup", "bed"],
    "soup by the pool .": ["soup", "pool"],
    "soup and a dog .": ["soup", "dog"],
    "our waiter swam .": ["waiter", "pool"],
    "bed , soup and staff held out by test .": ["bed", "soup", "staff"],
    "a soup held out by single val .": ["soup"],
    "listed with one aspect in single train .": ["bed", "soup"],
}


def instance(text: str, *aspects: str) -> list[list[str]]:
    return [text.split(), list(aspects)]


@pytest.fixture
def fewasp(tmp_path: Path, write_json: WriteJson) -> Path:
    """Official files of four train, val and test categories; the train files of two datasets are missing."""
    folder = tmp_path / "fewasp"
    write_json(
        folder / "separate.json", {"train": ["soup", "bed"], "validation": ["pool"], "test": ["staff", "waiter"]}
    )
    single_train = {
        "soup": [instance("hot soup .", "soup")],
        "bed": [instance("listed with one aspect in single train .", "bed"), instance("only in single train .", "bed")],
    }
    write_json(folder / SINGLE / "train.json", single_train)
    write_json(folder / SINGLE / "val.json", {"pool": [instance("a soup held out by single val .", "pool")]})
    for dataset in DATASETS:
        if dataset != SINGLE:
            write_json(folder / dataset / "val.json", {"pool": [instance("wet .", "pool")]})
        staff = [instance("bed , soup and staff held out by test .", "staff")]
        write_json(folder / dataset / "test.json", {"staff": staff, "waiter": [instance("he came .", "waiter")]})
    # Spaces that no writer of ours makes: the file must come through byte for byte.
    odd = folder / MIXED / "val.json"
    odd.write_text(odd.read_text().replace(":", "  :\n\t "))
    return folder


@pytest.fixture
def yelp(tmp_path: Path, write_yelp: WriteYelp) -> Path:
    return write_yelp(tmp_path / "yelp", YELP)


def texts(path: Path) -> dict[str, dict[str, tuple[str, ...]]]:
    """{category: {text: aspects}}"""
    return {
        category: {" ".join(found.tokens): found.aspects for found in instances}
        for category, instances in read_fewasp(path).items()
    }


def files_below(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


# reading


def test_rows_of_one_sentence_are_joined_over_files_and_cases(tmp_path: Path, write_yelp: WriteYelp) -> None:
    write_yelp(tmp_path, {"hot soup .": ["SOUP", "Waiter"], "soft bed .": ["bed"]}, "hotel.txt")
    write_yelp(tmp_path, {"hot  soup .": ["soup", "table"]}, "restaurant.txt")
    (tmp_path / "notes.md").write_text("not a data file")
    assert read_yelp_aspect(tmp_path) == {
        ("hot", "soup", "."): {"soup", "waiter", "table"},
        ("soft", "bed", "."): {"bed"},
    }


def test_quotes_and_windows_line_ends_are_plain_text(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b'r1\t" a "" b\tsoup\t 1 \r\nr2\tx " y\tbed\t0\r\n')
    assert read_yelp_aspect(tmp_path) == {('"', "a", '""', "b"): {"soup"}, ("x", '"', "y"): {"bed"}}


def test_sentence_of_200000_characters_stops_the_build(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(f"r1\t{'x' * 200_000}\tsoup\t1\n")
    assert read_yelp_aspect(tmp_path) == {("x" * 200_000,): {"soup"}}


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("just text", "'just text'"),
        ("r1\tsentence\tsoup", r"'r1\tsentence\tsoup'"),
        ("r1\tsentence\tsoup\t1\textra", r"'r1\tsentence\tsoup\t1\textra'"),
        ("r1\t \tsoup\t1", r"'r1\t \tsoup\t1'"),
        ("r1\tsentence\t\t1", r"'r1\tsentence\t\t1'"),
        ("", "''"),
    ],
)
def test_a_malformed_line_is_named_and_quoted(tmp_path: Path, line: str, shown: str) -> None:
    path = tmp_path / "a.txt"
    path.write_text(f"r0\tfine .\tsoup\t1\n{line}\nr2\tfine .\tsoup\t1\n")
    with pytest.raises(DataError) as caught:
        read_yelp_aspect(tmp_path)
    assert str(caught.value) == (
        f"{path}, line 2: found {shown}, needs four cells with tabs between: review id, sentence, aspect, polarity. "
        "Fix or remove the line."
    )


def test_another_encoding_names_the_line(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"r0\tfine .\tsoup\t1\n" * 9_999 + "r1\tcafé\tsoup\t1\n".encode("latin-1"))
    with pytest.raises(DataError) as caught:
        read_yelp_aspect(tmp_path)
    assert str(caught.value) == f"{path}, line 10000: byte 7 is not UTF-8. Save the file as UTF-8."


def test_a_folder_without_text_files_is_refused(tmp_path: Path) -> None:
    with pytest.raises(AwattError) as caught:
        read_yelp_aspect(tmp_path)
    assert str(caught.value) == f"{tmp_path} holds no .txt file. It needs Yelp_aspect files, such as restaurant.txt."


# building on official files


def test_official_files_are_taken_byte_for_byte(yelp: Path, fewasp: Path, tmp_path: Path) -> None:
    build(yelp, fewasp, tmp_path / "out")
    found = files_below(tmp_path / "out")
    official = {name: content for name, content in files_below(fewasp).items() if name != "separate.json"}
    assert {name: found[name] for name in official} == official
    rebuilt = {f"{dataset}/train.json" for dataset in (MULTI, MIXED)}
    assert set(found) == set(official) | rebuilt | {f"{dataset}/provenance.json" for dataset in DATASETS}


def test_a_rebuilt_train_split_holds_usable_sentences_and_none_of_val_or_test(
    yelp: Path, fewasp: Path, tmp_path: Path
) -> None:
    build(yelp, fewasp, tmp_path / "out")
    found = texts(tmp_path / "out" / MIXED / "train.json")
    usable = {
        "soup": {
            "hot soup .": ("soup",),
            "the soup was salty .": ("soup",),
            "soup in bed .": ("soup", "bed"),
            "soup by the pool .": ("soup",),  # labels outside the split are left out
            "soup and a dog .": ("soup",),
            "listed with one aspect in single train .": ("soup", "bed"),
        },
        "bed": {
            "soft bed .": ("bed",),
            "soup in bed .": ("soup", "bed"),
            "listed with one aspect in single train .": ("soup", "bed"),
            "only in single train .": ("bed",),
        },
    }
    for category, sentences in found.items():
        assert sentences.items() <= usable[category].items()
    # Soup: 3 of the 8 sentences of Yelp_aspect have one aspect. Usable are 2 of them and 4 others: 2 and 3.3 are taken.
    assert sum(text in ("hot soup .", "the soup was salty .") for text in found["soup"]) == 2
    assert len(found["soup"]) == 5
    # Bed: 1 of 4. Usable are 2 and 2 others: 0.7 and 2.
    assert sum(text in ("soft bed .", "only in single train .") for text in found["bed"]) == 1
    assert len(found["bed"]) == 3


def test_several_aspects_count_whether_or_not_the_split_names_them(yelp: Path, fewasp: Path, tmp_path: Path) -> None:
    build(yelp, fewasp, tmp_path / "out")
    assert texts(tmp_path / "out" / MULTI / "train.json") == {
        "soup": {
            "soup in bed .": ("soup", "bed"),
            "soup by the pool .": ("soup",),
            "soup and a dog .": ("soup",),
            "listed with one aspect in single train .": ("soup", "bed"),
        },
        "bed": {
            "soup in bed .": ("soup", "bed"),
            "listed with one aspect in single train .": ("soup", "bed"),
        },
    }


def test_single_holds_sentences_with_one_aspect_only(yelp: Path, fewasp: Path, tmp_path: Path) -> None:
    (fewasp / SINGLE / "train.json").unlink()
    build(yelp, fewasp, tmp_path / "out")
    assert texts(tmp_path / "out" / SINGLE / "train.json") == {
        "soup": {"hot soup .": ("soup",), "the soup was salty .": ("soup",)},
        "bed": {"soft bed .": ("bed",)},
    }


def test_provenance_says_what_is_official_and_what_is_rebuilt(yelp: Path, fewasp: Path, tmp_path: Path) -> None:
    given = build(yelp, fewasp, tmp_path / "out", seed=11)
    for dataset in DATASETS:
        written = json.loads((tmp_path / "out" / dataset / "provenance.json").read_text())
        assert written == {"dataset": dataset, "splits": given[dataset]}
        assert list(written["splits"]) == list(SPLITS)
    assert given[SINGLE]["train"] == {
        "source": "official",
        "categories": 2,
        "instances": 3,
        "fewest_per_category": 1,
        "categories_below_paper": 2,
        "single_aspect_share": 0.6667,  # by Yelp_aspect's labels one of the three has two aspects
        "in_single_file_share": 1.0,
    }
    assert given[MIXED]["train"] == {
        "source": "rebuilt",
        "seed": 11,
        "from": "Yelp_aspect + single train",
        "categories": 2,
        "instances": 8,
        "fewest_per_category": 3,
        "categories_below_paper": 2,
        "single_aspect_share": 0.375,
        "in_single_file_share": given[MIXED]["train"]["in_single_file_share"],  # type: ignore[index]
    }


def test_no_class_gets_more_than_the_paper_has(tmp_path: Path, fewasp: Path, write_yelp: WriteYelp) -> None:
    (fewasp / SINGLE / "train.json").unlink()
    many = {f"soup number {number} .": ["soup"] for number in range(250)} | {"soft bed .": ["bed"]}
    given = build(write_yelp(tmp_path / "many", many), fewasp, tmp_path / "out")
    found = read_fewasp(tmp_path / "out" / SINGLE / "train.json")
    assert {category: len(instances) for category, instances in found.items()} == {"soup": 200, "bed": 1}
    assert len({found.tokens for found in found["soup"]}) == 200
    assert given[SINGLE]["train"] == {
        "source": "rebuilt",
        "seed": 5,
        "from": "Yelp_aspect",
        "categories": 2,
        "instances": 201,
        "fewest_per_category": 1,
        "categories_below_paper": 1,
        "single_aspect_share": 1.0,
        "in_single_file_share": 1.0,
    }


def test_two_files_give_what_one_file_with_both_gives(tmp_path: Path, fewasp: Path, write_yelp: WriteYelp) -> None:
    items = list({f"soup number {number} .": ["soup"] for number in range(30)}.items())
    write_yelp(tmp_path / "two", dict(items[:10]), "a.txt")
    write_yelp(tmp_path / "two", dict(items[10:]), "b.txt")
    build(tmp_path / "two", fewasp, tmp_path / "out2")
    build(write_yelp(tmp_path / "one", dict(items)), fewasp, tmp_path / "out1")
    assert files_below(tmp_path / "out1") == files_below(tmp_path / "out2")


def test_official_files_without_the_split_of_categories_are_refused(yelp: Path, fewasp: Path, tmp_path: Path) -> None:
    """A train split of one's own could hold the categories of the official test split."""
    (fewasp / "separate.json").unlink()
    with pytest.raises(AwattError, match=r"separate\.json does not exist\."):
        build(yelp, fewasp, tmp_path / "out")


@pytest.mark.parametrize(
    "content", [[], {}, {"train": [], "val": [], "test": []}, {"train": 1, "validation": [], "test": []}]
)
def test_a_malformed_split_of_categories_is_named(
    yelp: Path, fewasp: Path, tmp_path: Path, write_json: WriteJson, content: object
) -> None:
    path = write_json(fewasp / "separate.json", content)
    with pytest.raises(DataError) as caught:
        build(yelp, fewasp, tmp_path / "out")
    assert str(caught.value) == (
        f"{path}: needs a dict with the lists train, validation, test. Download the file again."
    )


def test_a_malformed_official_file_is_named(yelp: Path, fewasp: Path, tmp_path: Path) -> None:
    (fewasp / MULTI / "val.json").write_text("{}")
    with pytest.raises(DataError, match=r"FewAsp\(multi\)/val\.json: found '\{\}', needs a dict"):
        build(yelp, fewasp, tmp_path / "out")


def test_a_folder_without_official_files_is_refused(yelp: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(AwattError) as caught:
        build(yelp, tmp_path / "empty", tmp_path / "out")
    assert str(caught.value) == (
        f"{tmp_path / 'empty'} holds none of FewAsp's files. It needs folders named FewAsp(single), FewAsp(multi), "
        "FewAsp with train.json, val.json or test.json. Leave --fewasp out to build everything from Yelp_aspect."
    )


# building everything


@pytest.fixture
def everything(tmp_path: Path, write_yelp: WriteYelp, hundred_aspects: Mapping[str, list[str]]) -> Path:
    build(write_yelp(tmp_path / "yelp100", hundred_aspects), None, tmp_path / "all")
    return tmp_path / "all"


def read_all(folder: Path) -> dict[tuple[str, str], dict[str, list[Instance]]]:
    return {
        (dataset, split): read_fewasp(folder / dataset / f"{split}.json") for dataset in DATASETS for split in SPLITS
    }


def sentences_by_split(folder: Path) -> dict[str, set[tuple[str, ...]]]:
    found: dict[str, set[tuple[str, ...]]] = {split: set() for split in SPLITS}
    for (_, split), groups in read_all(folder).items():
        found[split] |= {one.tokens for instances in groups.values() for one in instances}
    return found


def test_the_most_frequent_hundred_aspects_are_split_64_16_20(everything: Path) -> None:
    categories = {key: set(groups) for key, groups in read_all(everything).items()}
    for dataset in DATASETS:
        parts = [categories[dataset, split] for split in SPLITS]
        assert [len(part) for part in parts] == [64, 16, 20]
        assert set().union(*parts) == {f"aspect_{number:03d}" for number in range(100)}
        assert parts == [categories[SINGLE, split] for split in SPLITS]


def test_train_holds_sentences_of_val_and_test_when_all_is_rebuilt(everything: Path) -> None:
    """It did: train was drawn before val and test were known."""
    found = sentences_by_split(everything)
    assert not found["train"] & (found["val"] | found["test"])
    assert not found["val"] & found["test"]


def test_val_and_test_come_out_empty_when_all_is_rebuilt(everything: Path) -> None:
    """They did in the third dataset: the first two had used the sentences up."""
    for key, groups in read_all(everything).items():
        assert min(map(len, groups.values())) > 0, key


def test_each_dataset_has_its_kind_of_sentence(everything: Path, hundred_aspects: Mapping[str, list[str]]) -> None:
    for (dataset, _), groups in read_all(everything).items():
        for category, instances in groups.items():
            for one in instances:
                aspects = hundred_aspects[" ".join(one.tokens)]
                assert category in one.aspects
                assert set(one.aspects) == set(aspects) & set(groups)
                assert (len(aspects) == 1) == (dataset == SINGLE) or dataset == MIXED
    mixed = [one for group in read_all(everything)[MIXED, "train"].values() for one in group]
    assert {len(hundred_aspects[" ".join(one.tokens)]) for one in mixed} == {1, 2, 3}


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others(everything: Path, tmp_path: Path) -> None:
    build(tmp_path / "yelp100", None, tmp_path / "again")
    assert files_below(tmp_path / "again") == files_below(everything)
    build(tmp_path / "yelp100", None, tmp_path / "other", seed=6)
    for name, content in files_below(tmp_path / "other").items():
        assert content != files_below(everything)[name], name
    found = sentences_by_split(tmp_path / "other")
    assert not found["train"] & (found["val"] | found["test"])


def test_fewer_than_100_aspects_are_refused(yelp: Path, tmp_path: Path) -> None:
    with pytest.raises(AwattError) as caught:
        build(yelp, None, tmp_path / "out")
    assert str(caught.value) == "the Yelp_aspect files name 6 aspects, but the split needs 100."
    assert not (tmp_path / "out").exists()


# the real files


def test_yelp_aspect_holds_what_its_readme_says(shared: Path) -> None:
    folder = shared / "data" / "yelp_aspect"
    labels = read_yelp_aspect(folder)
    assert sum(path.read_bytes().count(b"\n") for path in folder.glob("*.txt")) == 34_485
    assert len(labels) == 21_535
    assert len(set().union(*labels.values())) == 137
    fewasp = shared / "data" / "fewasp"
    held_out = {
        found.tokens
        for path in fewasp.glob("*/*.json")
        if path.stem != "train"
        for group in read_fewasp(path).values()
        for found in group
    }
    assert len(held_out & set(labels)) == 3_316


def test_the_real_build_takes_official_files_and_rebuilds_two_train_splits(real_build: Path, shared: Path) -> None:
    official = files_below(shared / "data" / "fewasp")
    found = files_below(real_build)
    for dataset in DATASETS:
        splits = json.loads(found[f"{dataset}/provenance.json"])["splits"]
        for split in SPLITS:
            name = f"{dataset}/{split}.json"
            assert splits[split]["source"] == ("official" if name in official else "rebuilt")
            assert name not in official or found[name] == official[name]
            assert splits[split]["categories"] == {"train": 64, "val": 16, "test": 20}[split]


def test_the_real_train_splits_leak_no_sentence_and_no_category(real_build: Path) -> None:
    found = sentences_by_split(real_build)
    provenance = {name: json.loads((real_build / name / "provenance.json").read_text())["splits"] for name in DATASETS}
    held_out = found["val"] | found["test"]
    every = read_all(real_build)
    for dataset in DATASETS:
        train = every[dataset, "train"]
        if provenance[dataset]["train"]["source"] == "rebuilt":
            assert not {one.tokens for group in train.values() for one in group} & held_out
            assert all(set(one.aspects) <= set(train) for group in train.values() for one in group)
            assert min(map(len, train.values())) >= 28
            assert max(map(len, train.values())) <= DATASETS[dataset]
        assert not set(train) & (set(every[dataset, "val"]) | set(every[dataset, "test"]))
