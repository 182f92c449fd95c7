"""A corpus merges rows with the same text, and finds the file of a split in any format."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from awatt.data.corpus import Corpus, find_split, load_corpus
from awatt.errors import AwattError

WriteJson = Callable[[Path, object], Path]


def test_rows_with_the_same_text_are_merged() -> None:
    corpus = Corpus.from_rows(
        "test",
        [
            ("hot soup", ("soup",), ("soup", "table")),
            ("our table", ("table",), ()),
            ("hot soup", ("waiter",), ()),
            ("hm", (), ()),
        ],
    )
    assert corpus.split == "test"
    assert corpus.sentences == ("hot soup", "our table", "hm")
    assert corpus.aspects == ("soup", "table", "waiter")
    assert corpus.mentions.tolist() == [[True, True, True], [False, True, False], [False, False, False]]
    assert [members.tolist() for members in corpus.members] == [[0], [1], [0]]  # listed, not only mentioned


def test_a_repeated_row_counts_once() -> None:
    corpus = Corpus.from_rows("test", [("hot soup", ("soup",), ())] * 3)
    assert corpus.sentences == ("hot soup",)
    assert corpus.members[0].tolist() == [0]


def test_a_listed_aspect_is_mentioned() -> None:
    corpus = Corpus.from_rows("test", [("a", ("x", "y"), ("z",)), ("b", ("y",), ("x",))])
    for aspect, members in enumerate(corpus.members):
        assert corpus.mentions[members, aspect].all()
        assert np.all(np.diff(members) > 0)


def test_no_rows_give_an_empty_corpus() -> None:
    corpus = Corpus.from_rows("test", [])
    assert (corpus.sentences, corpus.aspects, corpus.members) == ((), (), ())
    assert corpus.mentions.shape == (0, 0)


def test_a_fewasp_split_is_loaded_by_its_categories(tmp_path: Path, write_json: WriteJson) -> None:
    content = {"soup": [[["hot", "soup"], ["soup", "bed"]]], "bed": [[["soft"], ["bed"]]]}
    write_json(tmp_path / "val.json", content)
    corpus = load_corpus(tmp_path, "val")
    assert corpus.sentences == ("hot soup", "soft")
    assert corpus.aspects == ("soup", "bed")
    assert [members.tolist() for members in corpus.members] == [[0], [1]]
    assert corpus.mentions.tolist() == [[True, True], [False, True]]


def test_a_records_split_lists_a_sentence_under_each_of_its_aspects(tmp_path: Path) -> None:
    rows = [{"text": "hot soup in bed", "aspects": ["soup", "bed"]}, {"text": "hm", "aspects": []}]
    (tmp_path / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    corpus = load_corpus(tmp_path, "train")
    assert corpus.sentences == ("hot soup in bed", "hm")
    assert corpus.aspects == ("soup", "bed")
    assert [members.tolist() for members in corpus.members] == [[0], [0]]


def test_a_csv_split_is_found_and_loaded(tmp_path: Path) -> None:
    (tmp_path / "test.csv").write_text("text,aspects\nhot soup,soup\nsoup in bed,soup|bed\n")
    assert find_split(tmp_path, "test") == tmp_path / "test.csv"
    corpus = load_corpus(tmp_path, "test")
    assert corpus.aspects == ("soup", "bed")
    assert [members.tolist() for members in corpus.members] == [[0, 1], [1]]


def test_the_benchmarks_own_format_comes_first(tmp_path: Path, write_json: WriteJson) -> None:
    (tmp_path / "test.jsonl").write_text('{"text": "a", "aspects": ["b"]}\n')
    path = write_json(tmp_path / "test.json", {"soup": [[["hot"], ["soup"]]]})
    assert find_split(tmp_path, "test") == path


def test_a_missing_split_says_what_to_put_there(tmp_path: Path) -> None:
    with pytest.raises(AwattError) as caught:
        find_split(tmp_path, "val")
    assert str(caught.value) == (
        f"{tmp_path} has no val split. Put val.json (FewAsp's format) or val.jsonl there, or build the datasets with "
        "'awatt data build'."
    )


def test_a_path_that_is_not_a_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(AwattError, match="is not a folder") as caught:
        find_split(tmp_path / "nowhere", "val")
    assert str(tmp_path / "nowhere") in str(caught.value)


def test_the_real_test_split_has_as_many_sentences_as_its_readme_says(real_build: Path) -> None:
    corpus = load_corpus(real_build / "FewAsp", "test")
    assert len(corpus.sentences) == 12_383
    assert len(corpus.aspects) == 20
    assert {len(members) for members in corpus.members} == {630}
