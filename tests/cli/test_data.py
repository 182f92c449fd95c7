"""``awatt data``: its output, and one clear line for each kind of malformed file."""

import io
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]
WriteJson = Callable[[Path, object], Path]
WriteYelp = Callable[..., Path]
SMALL = ("--n-way", 2, "--n-shot", 2, "--n-query", 2, "--episodes", 20)


def one_line(outcome: Any, expected: int = 2) -> str:
    """The single stderr line of a failed command, without its ``awatt: `` prefix."""
    code, _, err = outcome
    assert code == expected
    assert err.count("\n") == 1
    assert err.endswith("\n")
    assert "Traceback" not in err
    assert err.startswith("awatt: ")
    return str(err.removeprefix("awatt: ").rstrip("\n"))


# build


def test_build_writes_three_datasets_and_prints_the_source_of_each_split(
    run: Run, tmp_path: Path, write_yelp: WriteYelp, hundred_aspects: Mapping[str, list[str]]
) -> None:
    yelp, out = write_yelp(tmp_path / "yelp", hundred_aspects), tmp_path / "out"
    outcome = run("data", "build", yelp, "--out", out)
    assert (outcome.code, outcome.out) == (0, f"{out}\n")
    lines = [line.split() for line in outcome.err.splitlines()]
    assert [line[:3] for line in lines] == [
        [dataset, split, "rebuilt"]
        for dataset in ("FewAsp(single)", "FewAsp(multi)", "FewAsp")
        for split in ("train", "val", "test")
    ]
    assert sorted(path.name for path in (out / "FewAsp").iterdir()) == [
        "provenance.json",
        "test.json",
        "train.json",
        "val.json",
    ]


def test_build_uses_the_seed(
    run: Run, tmp_path: Path, write_yelp: WriteYelp, hundred_aspects: Mapping[str, list[str]]
) -> None:
    yelp = write_yelp(tmp_path / "yelp", hundred_aspects)
    for name, seed in (("a", 7), ("b", 7), ("c", 8)):
        assert run("data", "build", yelp, "--out", tmp_path / name, "--seed", seed).code == 0
    first, again, other = ((tmp_path / name / "FewAsp" / "train.json").read_bytes() for name in "abc")
    assert first == again != other


def test_build_replaces_nothing_unasked(
    run: Run, tmp_path: Path, write_yelp: WriteYelp, hundred_aspects: Mapping[str, list[str]]
) -> None:
    yelp, out = write_yelp(tmp_path / "yelp", hundred_aspects), tmp_path / "out"
    (out / "FewAsp").mkdir(parents=True)
    (out / "FewAsp" / "train.json").write_text("precious")
    line = one_line(run("data", "build", yelp, "--out", out))
    assert line == f"{out / 'FewAsp'}: already exists. Use --overwrite to build it anew, or choose another --out."
    assert (out / "FewAsp" / "train.json").read_text() == "precious"
    assert run("data", "build", yelp, "--out", out, "--overwrite").code == 0


def test_build_with_a_malformed_yelp_file_is_a_one_line_error(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "yelp" / "hotel.txt"
    path.parent.mkdir()
    path.write_text("r1\tfine .\tsoup\t1\nno tabs here\n")
    line = one_line(run("data", "build", path.parent, "--out", tmp_path / "out"))
    assert line.startswith(f"{path}, line 2: found 'no tabs here', needs four cells")
    assert not (tmp_path / "out").exists()


def test_build_with_a_file_as_output_is_a_one_line_error(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.write_text("precious")
    assert run("data", "build", tmp_path, "--out", out) == (
        2,
        "",
        f"awatt: {out}: this is a file, but a folder is needed. Choose another place.\n",
    )
    assert out.read_text() == "precious"


def test_build_with_a_missing_folder_is_a_one_line_error(run: Run, tmp_path: Path) -> None:
    line = one_line(run("data", "build", tmp_path / "nowhere", "--out", tmp_path / "out"))
    assert line.startswith(f"{tmp_path / 'nowhere'} holds no .txt file.")


# stats


@pytest.fixture
def dataset(tmp_path: Path, write_json: WriteJson) -> Path:
    groups = {name: [[[name, str(number)], [name]] for number in range(6)] for name in ("soup", "bed", "pool")}
    write_json(tmp_path / "set" / "test.json", groups)
    return tmp_path / "set"


def test_stats_with_json_print_only_json(run: Run, dataset: Path) -> None:
    code, out, err = run("data", "stats", dataset, "--json", *SMALL)
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert list(found) == ["splits", "provenance"]
    assert list(found["splits"]) == ["test"]
    assert found["splits"]["test"]["classes"] == 3
    assert found["splits"]["test"]["instances"] == 18
    assert found["splits"]["test"]["episodes"] == 20


def test_stats_without_json_print_a_table(run: Run, dataset: Path) -> None:
    code, out, err = run("data", "stats", dataset, *SMALL)
    assert (code, err) == (0, "")
    assert "multi label query share" in out
    assert "0.00%" in out


def test_stats_say_what_the_build_knows_of_some_splits(run: Run, dataset: Path, write_json: WriteJson) -> None:
    write_json(dataset / "val.json", json.loads((dataset / "test.json").read_text()))
    write_json(dataset / "provenance.json", {"splits": {"val": {"single_aspect_share": 0.362}}})
    code, out, _ = run("data", "stats", dataset, *SMALL)
    (line,) = (line for line in out.splitlines() if "single aspect share" in line)
    assert code == 0
    assert "36.20%" in line
    assert "unknown" in line


def test_stats_of_the_installed_command(run_script: Run, dataset: Path) -> None:
    code, out, err = run_script("data", "stats", dataset, "--json", *SMALL)
    assert (code, err) == (0, "")
    assert json.loads(out)["splits"]["test"]["sentences"] == 18


def test_stats_of_the_real_datasets_match_the_readme(run: Run, real_build: Path) -> None:
    code, out, _ = run("data", "stats", real_build / "FewAsp", "--json", "--episodes", 500)
    assert code == 0
    found = json.loads(out)
    test = found["splits"]["test"]
    assert (test["instances"], test["sentences"], test["one_aspect_rows"]) == (12_600, 12_383, 9_984)
    assert 100 * test["multi_label_query_share"] == pytest.approx(5.1, abs=1.0)
    assert {split: entry["source"] for split, entry in found["provenance"]["splits"].items()}["test"] == "official"


def test_stats_of_malformed_json_are_a_one_line_error(run_script: Run, dataset: Path) -> None:
    path = dataset / "test.json"
    path.write_text('{"soup": [\n[["hot"], oops]]}')
    line = one_line(run_script("data", "stats", dataset))
    assert line == f"{path}, line 2: not JSON at character 11: Expecting value. Fix it, or download the file again."


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"soup": 1}', '{"soup": [1]}', '{"so\\nup": [1]}'])
def test_stats_of_any_malformed_json_are_a_one_line_error(run: Run, dataset: Path, content: str) -> None:
    (dataset / "test.json").write_text(content)
    assert one_line(run("data", "stats", dataset)).startswith(str(dataset / "test.json"))


def test_stats_of_a_folder_without_splits_are_a_one_line_error(run: Run, tmp_path: Path) -> None:
    assert "has no train split" in one_line(run("data", "stats", tmp_path))


def test_stats_of_too_few_sentences_are_a_one_line_error(run: Run, dataset: Path) -> None:
    assert one_line(run("data", "stats", dataset, "--n-way", 2)) == (
        "aspect 'soup' has 6 sentences, but 5-shot with 5 queries needs 10. Add 4, or lower --n-shot or --n-query."
    )


def test_a_seed_of_20_digits_ended_in_a_traceback(run: Run, dataset: Path) -> None:
    """numpy could not represent it."""
    line = one_line(run("data", "stats", dataset, *SMALL, "--seed", 2**64))
    assert line == f"the seed is {2**64}, needs a whole number from 0 to 2**64 - 1."


# check

GOOD = {
    "a.jsonl": '{"text": "hot soup", "aspects": ["soup"]}\n{"text": "soup in bed", "aspects": ["soup", "bed"]}\n'
    '{"text": "hm", "aspects": []}\n',
    "a.csv": "text,aspects\nhot soup,soup\nsoup in bed,soup|bed\nhm,\n",
    "a.tsv": "text\taspects\nhot soup\tsoup\nsoup in bed\tsoup|bed\nhm\t\n",
}


@pytest.mark.parametrize(("name", "content"), GOOD.items())
def test_check_counts_the_sentences_of_each_aspect(run: Run, tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content)
    code, out, err = run("data", "check", tmp_path / name)
    assert (code, err) == (0, "")
    assert out.splitlines()[0] == "3 rows read, 0 unreadable, 0 with empty text, 1 without an aspect"
    assert [line.split() for line in out.splitlines()[1:]] == [["2", "soup"], ["1", "bed"]]


def test_check_reads_the_json_that_examples_may_be(run: Run, tmp_path: Path) -> None:
    (path := tmp_path / "a.json").write_text('{"soup": ["hot soup", "cold soup"], "bed": ["a hard bed", "hot soup"]}')
    code, out, _ = run("data", "check", path)
    assert (code, out.splitlines()[0][:10]) == (0, "3 rows rea")
    assert [line.split() for line in out.splitlines()[1:]] == [["2", "soup"], ["2", "bed"]]


@pytest.mark.parametrize("content", ["text,aspects\nhot soup,soup\n", "text,labels\nhot soup,\n"])
def test_check_notices_a_wrong_aspects_column(run: Run, tmp_path: Path, content: str) -> None:
    (path := tmp_path / "a.csv").write_text(content)
    code, _, err = run("data", "check", path, "--aspects-column", "labels")
    assert (code, err) == (2, f"awatt: {path}: no row has aspects in the column 'labels'. Check --aspects-column.\n")


def test_check_uses_the_column_options(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("review,labels\nhot soup,soup\n")
    code, out, _ = run("data", "check", path, "--text-column", "review", "--aspects-column", "labels")
    assert code == 0
    assert out.splitlines()[1].split() == ["1", "soup"]


def test_check_advised_a_format_that_it_had_no_option_for(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    for options, line in (((), "Add --format csv"), (("--format", "csv"), "1 row read, 0 unreadable")):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"text,aspects\nhot soup,soup\n"), "utf-8"))
        _, out, err = run("data", "check", "-", *options)
        assert line in out + err


BAD = {
    "a.jsonl": ('{"text": "hot soup", "aspects": ["soup"]}\n{"text": oops}\n', ", line 2: "),
    "b.jsonl": ('{"text": "fine"}\n{"text": 7}\n', ", line 2, column 'text': "),
    "a.csv": ("text,aspects\nhot soup,soup\na,b,c,d\n", ", line 3: "),
    "b.csv": ("review,aspects\nhot soup,soup\n", ", line 1, column 'text': "),
    "a.tsv": ("text\taspects\nhot\tsoup\textra\n", ", line 2: "),
    "a.json": ('[{"text": "hot soup"}]', ": "),
}


@pytest.mark.parametrize("name", BAD)
def test_check_of_a_malformed_file_is_a_one_line_error_with_its_place(run: Run, tmp_path: Path, name: str) -> None:
    content, place = BAD[name]
    (tmp_path / name).write_text(content)
    code = 2 if name in ("b.csv", "a.json") else 3  # the whole file, or some rows
    assert one_line(run("data", "check", tmp_path / name), code).startswith(f"{tmp_path / name}{place}")


@pytest.mark.parametrize("name", ["a.jsonl", "a.csv", "a.json"])
def test_the_installed_command_reports_a_malformed_file_too(run_script: Run, tmp_path: Path, name: str) -> None:
    content, place = BAD[name]
    (tmp_path / name).write_text(content)
    code = 2 if name == "a.json" else 3
    assert one_line(run_script("data", "check", tmp_path / name), code).startswith(f"{tmp_path / name}{place}")


def test_check_lists_every_unreadable_row_and_reads_the_rest(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('oops\n{"text": "hot soup", "aspects": ["soup"]}\nagain\n')
    code, out, err = run("data", "check", path)
    assert code == 3  # as detect has it
    assert [line.partition(": ")[2].split(":")[0] for line in err.splitlines()] == [
        f"{path}, line 1",
        f"{path}, line 3",
    ]
    assert out.startswith("1 row read, 2 unreadable")


def test_check_of_a_missing_file_is_a_one_line_error(run: Run, tmp_path: Path) -> None:
    assert one_line(run("data", "check", tmp_path / "none.jsonl")).startswith(str(tmp_path / "none.jsonl"))
