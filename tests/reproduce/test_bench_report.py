"""What `awatt bench` prints."""

import copy
import json
from pathlib import Path

import pytest

from awatt.cli.research import _print_bench
from awatt.reproduce.bench_report import regressions

COMMITTED = json.loads((Path(__file__).parents[2] / "results" / "bench.json").read_text("utf-8"))


def test_tables_fit_80_columns_and_headings_are_whole(capsys: pytest.CaptureFixture[str]) -> None:
    _print_bench({**COMMITTED, "encoding": [*COMMITTED["encoding"], {"encoder": "bert", "left_out": "not here"}]})
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 80
    assert "…" not in out
    assert "evaluate/s" in out
    assert "bert: not here" in out


def test_a_ratio_that_became_worse_is_named_with_both_figures() -> None:
    now = copy.deepcopy(COMMITTED)
    assert regressions(now, COMMITTED) == []
    now["episodes"][0]["train_ratio_to_floor"] *= 1.2
    now["processes"]["two_processes_speed_up"] /= 1.1  # within 15 %
    now["metrics_against_scikit_learn"]["macro_f1_times_faster"] *= 0.5
    worse = regressions(now, COMMITTED)
    assert [line.partition(":")[0] for line in worse] == [
        "train glove-cnn 5x5, time / floor",
        "macro_f1, times as fast as scikit-learn",
    ]
    assert "(20% worse)" in worse[0]
    assert f"was {COMMITTED['episodes'][0]['train_ratio_to_floor']:.3g} " in worse[0]
