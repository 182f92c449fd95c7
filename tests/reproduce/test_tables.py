"""Tables: means, intervals, daggers, quoted numbers, and the output formats."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from awatt.reproduce.formats import Measured, Table, as_csv, latex, markdown, markdown_lines
from awatt.reproduce.statistics import statistics_path
from awatt.reproduce.suites import VARIANTS, Run
from awatt.reproduce.tables import headline, rows, table

Write = Callable[..., None]


@pytest.fixture
def results(tmp_path: Path) -> Path:
    return tmp_path / "results"


def texts(row: tuple[object, ...]) -> list[str]:
    return [str(cell) for cell in row]


def test_several_seeds_have_an_interval_over_the_seeds_and_a_rebuilt_split_is_named(
    results: Path, write_result: Write
) -> None:
    runs = [Run("FewAsp", 5, 5, "imp", seed) for seed in (5, 10)]
    for run, f1 in zip(runs, (0.70, 0.72), strict=True):
        write_result(run, 0.9, f1, "rebuilt")
    # Student's t with one degree of freedom: 12.706 * sqrt(2) / sqrt(2) = 12.71
    (row,) = rows(runs, results)
    assert texts(row[:2]) == ["FewAsp 5-way 5-shot (rebuilt train)", "imp"]
    assert texts(row[2:5]) == ["0.9000 ± 0.0000", "0.8995", "+0.0005"]
    assert texts(row[5:]) == ["71.00 ± 12.71", "68.96", "+2.04", "5 10", "seeds"]


def test_one_seed_has_the_interval_over_its_episodes_and_says_so(results: Path, write_result: Write) -> None:
    run = Run("FewAsp(single)", 10, 5, "proto-awatt", 5, variant="w/o QA")
    write_result(run, 0.95, 0.69)
    (row,) = rows([run], results)
    assert texts(row[:2]) == ["FewAsp(single) 10-way 5-shot", "proto-awatt w/o QA"]
    assert texts(row[2:5]) == ["0.9500 ± 0.0020", "0.9541", "-0.0041"]
    assert texts(row[5:]) == ["69.00 ± 0.50", "69.61", "-0.61", "5", "episodes"]


def awatt(seed: int) -> Run:
    return Run("FewAsp", 5, 5, "proto-awatt", seed, threshold="policy")


def test_daggers_come_from_a_paired_test_over_common_seeds(results: Path, write_result: Write) -> None:
    seeds = (5, 10, 15)
    for seed, f1, prototypical, hatt in zip(
        seeds, (0.80, 0.82, 0.84), (0.70, 0.721, 0.739), (0.79, 0.75, 0.90), strict=True
    ):
        write_result(awatt(seed), 0.9, f1)
        write_result(Run("FewAsp", 5, 5, "prototypical", seed), 0.95, prototypical)
        write_result(Run("FewAsp", 5, 5, "proto-hatt", seed), 0.9, hatt)
    found = rows([awatt(seed) for seed in seeds], results)[0]
    # F1 is significantly above Prototypical but not above Proto-HATT; the AUC is below the former, equal to the latter.
    assert str(found[2]) == "0.9000 ± 0.0000"
    assert str(found[5]).endswith("†")


def test_one_common_seed_gives_no_dagger(results: Path, write_result: Write) -> None:
    for seed in (5, 10):
        write_result(awatt(seed), 0.9, 0.9)
    write_result(Run("FewAsp", 5, 5, "prototypical", 5), 0.1, 0.1)
    assert not {"†", "‡"} & set("".join(texts(rows([awatt(5), awatt(10)], results)[0])))


def test_the_rows_of_an_ablation_have_the_same_seeds(results: Path, write_result: Write) -> None:
    def run(variant: str, seed: int) -> Run:
        threshold, settings = VARIANTS[variant]
        return Run("FewAsp", 10, 5, "proto-awatt", seed, threshold=threshold, settings=settings, variant=variant)

    for seed, f1 in ((5, 0.6), (10, 0.7), (15, 0.8)):
        write_result(run("full", seed), 0.9, f1)
    for seed in (10, 15, 20):
        write_result(run("w/o SA", seed), 0.9, 0.5)
    whole, part = (texts(row) for row in table("table-ablation", results).rows)
    assert whole[5].startswith("75.00 ± ")
    assert whole[8] == part[8] == "10 15"
    assert [texts(row)[8] for row in rows([run("full", 5), run("w/o SA", 10)], results, same_seeds=True)] == ["5", "10"]


def test_the_encoder_table_names_every_encoder_and_quotes_those_without_results(
    results: Path, write_result: Write
) -> None:
    assert table("table-encoders", results).rows == ()
    write_result(Run("FewAsp", 10, 5, "proto-hatt", 5))
    write_result(Run("FewAsp", 10, 5, "proto-hatt", 5, "glove-lstm"))
    write_result(Run("FewAsp", 10, 5, "proto-awatt", 5, "transformer", variant="w/o DT"))
    found = [texts(row) for row in table("table-encoders", results).rows]
    assert [(row[1], row[6]) for row in found] == [
        ("proto-hatt (GloVe + CNN)", "57.26"),
        ("proto-hatt (GloVe + LSTM)", "59.46"),
        ("proto-awatt w/o DT (all-MiniLM-L6-v2, rescaled)", ""),
        ("proto-hatt (BERT)", "57.33"),
        ("proto-awatt (BERT)", "70.09"),
        ("proto-hatt (DistilBERT)", "59.57"),
        ("proto-awatt (DistilBERT)", "70.23"),
    ]
    assert {row[-1] for row in found[3:]} == {"quoted only"}


def test_the_statistics_come_from_their_file(results: Path) -> None:
    assert table("table-statistics", results).rows == ()
    split = {
        "classes": 64,
        "instances": 9782,
        "instances_a_class_min": 28,
        "instances_a_class_max": 400,
        "multi_label_query_share": 0.0668,
        "second_common_aspect_share": 0.0039,
    }
    content = {"splits": {"train": split}, "provenance": {"splits": {"train": {"source": "rebuilt"}}}}
    results.mkdir()
    statistics_path(results).write_text(json.dumps({"FewAsp(multi)": content}), "utf-8")
    assert table("table-statistics", results).rows == (
        ("FewAsp(multi)", "64", "100", "28 to 400", "400", "9782", "40000", "rebuilt", "6.68 %", "0.39 %"),
    )


def test_the_headline_shows_the_quoted_number_after_ours(results: Path, write_result: Write) -> None:
    write_result(awatt(5), 0.9, 0.75, "rebuilt")
    assert headline(results).rows == (
        ("FewAsp (rebuilt train)", "proto-awatt", "75.00 *75.37*", "– *80.16*", "– *65.65*", "– *69.70*"),
    )


def test_the_headline_left_out_other_seeds(results: Path, write_result: Write) -> None:
    write_result(awatt(7), 0.9, 0.75)
    assert headline(results).rows[0][:3] == ("FewAsp", "proto-awatt", "75.00 *75.37*")


TABLE = Table(
    "A & B",
    ("method", "F1", "quoted F1"),
    (("w/o W_i", Measured(71.0, 1.25, 2, "†‡"), "68.96"), ("50 %", "", "")),
    ("Δ is 1 %.",),
)


def test_markdown_sets_quoted_numbers_in_italics() -> None:
    assert markdown_lines(TABLE).splitlines() == [
        "| method | F1 | quoted F1 |",
        "|---|---|---|",
        "| w/o W_i | 71.00 ± 1.25†‡ | *68.96* |",
        "| 50 % |  |  |",
    ]
    assert markdown(TABLE).startswith("# A & B\n\n|")
    assert markdown(TABLE).endswith("\n\nΔ is 1 %.\n")


def test_csv_has_separate_columns_for_mean_width_and_marks() -> None:
    assert list(csv.reader(as_csv(TABLE).splitlines())) == [
        ["method", "F1", "F1 ±", "F1 marks", "quoted F1"],
        ["w/o W_i", "71.00", "1.25", "†‡", "68.96"],
        ["50 %", "", "", "", ""],
    ]


def test_latex_escapes_special_characters() -> None:
    found = latex(TABLE)
    assert r"w/o W\_i & 71.00 $\pm$ 1.25$^\dagger$$^\ddagger$ & \emph{68.96} \\" in found
    assert r"\caption{A \& B. $\Delta$ is 1 \%.}" in found
