"""Metrics over episodes: equal to scikit-learn's, independent of the batch size, and with other thresholds."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats
from sklearn.metrics import f1_score, roc_auc_score

from awatt.aspect_model.model import AspectModel
from awatt.data.corpus import Corpus, load_corpus
from awatt.data.sampler import EpisodeShape
from awatt.errors import AwattError
from awatt.research.evaluation import evaluate
from awatt.research.run_model import RunModel
from awatt.research.scoring import measure_system, replace_threshold, score_episodes
from awatt.research.system import System, SystemConfig
from awatt.thresholds.base import Scored
from awatt.thresholds.kernel_regression import KernelRegression
from awatt.thresholds.mean_std import MeanStd
from awatt.thresholds.policy import Policy
from awatt.thresholds.radius import Radius
from awatt.thresholds.static import Static

torch.set_num_threads(1)

SHAPE = EpisodeShape(3, 2, 2)
WORDS = [f"word{number}" for number in range(20)]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A val and a test split with four aspects, and word vectors."""
    chance = np.random.default_rng(0)
    folder = tmp_path / "data"
    folder.mkdir()
    for split in ("val", "test"):
        rows = [
            {
                "text": " ".join([*chance.choice(WORDS, 1 + number % 6), str(number)]),
                "aspects": sorted({f"{split}{number % 4}", f"{split}{(number + number % 3) % 4}"}),
            }
            for number in range(48)
        ]
        (folder / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    lines = (f"{word} {' '.join(map(str, chance.normal(0, 1, 5).round(3)))}\n" for word in WORDS)
    (folder / "glove.txt").write_text("".join(lines))
    return folder


def make(data: Path, threshold: str = "static", **settings: Any) -> System:
    torch.manual_seed(0)
    values = {"encoder": {"hidden": 6, "vectors": str(data / "glove.txt")}, "threshold": settings}
    names = {"method": "proto-awatt", "encoder": "glove-cnn", "threshold": threshold, "n_way": 3}
    return System.create(SystemConfig.from_mapping(names | {"settings": values}), corpus(data).sentences)


def corpus(data: Path) -> Corpus:
    return load_corpus(data, "test")


def test_the_metrics_equal_scikit_learns(data: Path) -> None:
    system = make(data, value=0.35)
    batches = list(score_episodes(system, corpus(data), SHAPE, 12, 5))
    found = measure_system(system, batches)
    columns: dict[str, list[float]] = {"auc": [], "macro_f1": [], "argmax_f1": []}
    for scored in batches:
        for ranking, targets in zip(scored.probabilities.numpy(), scored.targets.numpy(), strict=True):
            defined = [c for c in range(3) if 0 < targets[:, c].sum() < len(targets)]
            columns["auc"].append(float(np.mean([roc_auc_score(targets[:, c], ranking[:, c]) for c in defined])))
            columns["macro_f1"].append(f1_score(targets, ranking >= np.float32(0.35), average="macro", zero_division=0))
            best = np.eye(3, dtype=bool)[ranking.argmax(1)]
            columns["argmax_f1"].append(f1_score(targets, best, average="macro", zero_division=0))
    assert found.keys() == {f"{name}{end}" for name in columns for end in ("", "_ci95")}
    for name, values in columns.items():
        assert len(values) == 12
        assert np.std(values) > 0
        assert found[name] == pytest.approx(np.mean(values), abs=1e-9)
        half_width = stats.t.ppf(0.975, 11) * np.std(values, ddof=1) / np.sqrt(12)
        assert found[f"{name}_ci95"] == pytest.approx(half_width, rel=1e-9)


@pytest.mark.parametrize("sentences", [1, 30, 100])
def test_scores_do_not_depend_on_the_batch_size(data: Path, monkeypatch: pytest.MonkeyPatch, sentences: int) -> None:
    system = make(data, "kernel-regression")
    (whole,) = score_episodes(system, corpus(data), SHAPE, 11, 5)
    monkeypatch.setattr("awatt.research.scoring._SENTENCES", sentences)
    parts = list(score_episodes(system, corpus(data), SHAPE, 11, 5))
    assert [len(part.targets) for part in parts] == {1: [1] * 11, 30: [2] * 5 + [1], 100: [8, 3]}[sentences]
    for name in ("targets", "support_targets"):
        assert torch.equal(torch.cat([getattr(part, name) for part in parts]), getattr(whole, name))
    for name in ("probabilities", "scores", "differences", "query", "support"):
        torch.testing.assert_close(
            torch.cat([getattr(part, name) for part in parts]), getattr(whole, name), rtol=1e-5, atol=1e-6
        )


def test_a_tokenized_corpus_gives_the_same_scores(data: Path) -> None:
    system = make(data)
    tokenized = system.encoder.tokenize(corpus(data).sentences)
    (whole,), (again,) = (score_episodes(system, corpus(data), SHAPE, 3, 5, given) for given in (None, tokenized))
    assert torch.equal(whole.scores, again.scores)


def test_evaluation_switches_to_eval_mode_and_computes_no_gradients(data: Path) -> None:
    system = make(data).train()
    (scored,) = score_episodes(system, corpus(data), SHAPE, 2, 5)
    assert not system.training
    assert not scored.scores.requires_grad


def test_episodes_with_off_topic_queries_are_scored(data: Path) -> None:
    system = make(data, value=0.3)
    shape = EpisodeShape(3, 2, 2, none_rate=0.25)
    (scored,) = score_episodes(system, corpus(data), shape, 4, 5)
    assert scored.targets.shape == (4, 8, 3)
    assert not scored.targets[:, 6:].any()
    found = measure_system(system, [scored])
    assert 0 < found["macro_f1"] < 1
    # By hand: the last two queries of each episode are off-topic.
    best, selected = scored.probabilities.amax(-1), scored.probabilities >= 0.3
    wins = best[:, :6, None] > best[:, None, 6:]
    assert found["none_auroc"] == pytest.approx(wins.double().mean().item())
    assert found["false_aspects_per_100"] == pytest.approx(100 * selected[:, 6:].sum().item() / 8)
    assert {"none_auroc_ci95", "false_aspects_per_100_ci95"} <= found.keys()


@pytest.mark.parametrize("threshold", ["policy", "kernel-regression", "mean-std", "radius", "acceptance"])
def test_off_topic_queries_are_recognised_by_the_thresholds_evidence(data: Path, threshold: str) -> None:
    system = make(data, threshold)
    shape = EpisodeShape(3, 2, 2, none_rate=0.25)
    (scored,) = score_episodes(system, corpus(data), shape, 4, 5)
    if system.threshold.calibrated:
        system.threshold.calibrate([scored])
    evidence, selected = system.threshold.evidence(scored), system.threshold.select(scored)
    # If the threshold is one number, or part of the evidence, selected aspects have more evidence than the others.
    assert selected.sum() == 0 or evidence[selected].min() >= evidence.flatten().sort().values[-selected.sum()]
    best = evidence.amax(-1)
    wins = (best[:, :6, None] > best[:, None, 6:]).double() + (best[:, :6, None] == best[:, None, 6:]).double() / 2
    found = measure_system(system, [scored])
    assert found["none_auroc"] == pytest.approx(wins.mean().item())
    assert ("ece" in found) == (threshold == "acceptance")


# ---- another threshold


def scored_with(system: System, data: Path) -> Scored:
    (scored,) = score_episodes(system, corpus(data), SHAPE, 10, 5)
    return scored


def test_a_number_becomes_a_static_threshold(data: Path) -> None:
    system = make(data, "policy")
    scored = scored_with(system, data)
    replace_threshold(system, "0.4", data, SHAPE, 5)
    assert isinstance(system.threshold, Static)
    assert torch.equal(system.threshold.select(scored), scored.probabilities >= 0.4)


def test_static_is_the_default_for_the_number_of_aspects(data: Path) -> None:
    system = make(data, "policy")
    replace_threshold(system, "static", data, EpisodeShape(4, 2, 2), 5)
    assert isinstance(system.threshold, Static)
    assert system.threshold.config.value == -1
    assert system.threshold.n_way == 4


@pytest.mark.parametrize(
    ("name", "kind"), [("kernel-regression", KernelRegression), ("mean-std", MeanStd), ("radius", Radius)]
)
def test_a_calibrated_threshold_uses_the_val_split(
    data: Path, monkeypatch: pytest.MonkeyPatch, name: str, kind: type[Any]
) -> None:
    monkeypatch.setattr("awatt.research.scoring._CALIBRATION_EPISODES", 40)
    system = make(data)
    replace_threshold(system, name, data, SHAPE, 5)
    threshold = kind(kind.config_type(), 3, 6)
    before = {key: value.clone() for key, value in threshold.state_dict().items()}
    threshold.calibrate(list(score_episodes(system, load_corpus(data, "val"), SHAPE, 40, 5)))
    assert isinstance(system.threshold, kind)
    found = system.threshold.state_dict()
    assert {key: value.item() for key, value in found.items()} == {
        key: value.item() for key, value in threshold.state_dict().items()
    }
    assert any(not torch.equal(found[key], before[key]) for key in before)


def test_a_trained_threshold_is_kept_and_cannot_be_given_to_another_run(data: Path) -> None:
    system = make(data, "policy")
    own = system.threshold
    replace_threshold(system, "policy", data, SHAPE, 5)
    assert system.threshold is own
    assert isinstance(own, Policy)
    with pytest.raises(AwattError, match=r"the policy threshold is trained with its model\. Train a run with --thres"):
        replace_threshold(make(data), "policy", data, SHAPE, 5)


def test_acceptance_is_recalibrated_for_these_episodes(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("awatt.research.scoring._CALIBRATION_EPISODES", 40)
    system = make(data, "acceptance")
    own, seen = system.threshold, []
    monkeypatch.setattr(type(own), "calibrate", lambda self, validation: seen.extend(validation))
    replace_threshold(system, "acceptance", data, EpisodeShape(3, 2, 2, none_rate=0.3), 5)
    assert system.threshold is own
    assert sum(len(scored.targets) for scored in seen) == 40
    assert all(not scored.targets[:, 6:].any() and scored.targets.shape[1:] == (9, 3) for scored in seen)
    with pytest.raises(AwattError, match=r"the acceptance threshold is trained with its model\. Train a run with"):
        replace_threshold(make(data), "acceptance", data, SHAPE, 5)


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ("statik", "there is no threshold 'statik'. Choose one of: static, policy, kernel-regression, mean-std, "),
        ("", "there is no threshold ''. Choose one of"),
        ("1.5", "the threshold is 1.5, needs a number from 0 to 1, or the name of a threshold."),
        ("nan", "the threshold is nan, needs a number from 0 to 1, or the name of a threshold."),
    ],
)
def test_an_unknown_threshold_is_an_error(data: Path, wanted: str, message: str) -> None:
    system = make(data)
    own = system.threshold
    with pytest.raises(AwattError) as caught:
        replace_threshold(system, wanted, data, SHAPE, 5)
    assert str(caught.value).startswith(message)
    assert system.threshold is own


def test_another_threshold_is_for_one_evaluation(data: Path) -> None:
    model = RunModel(make(data), data)
    model.system.trained_with = {"episode": {"n_way": 3, "n_shot": 2, "n_query": 2}, "seed": 1}
    before = evaluate(model, data, episodes=4)
    high = evaluate(model, data, episodes=4, threshold="0.9")
    assert (before["threshold"], high["threshold"]) == ("static", "0.9")
    assert high["macro_f1"] != before["macro_f1"]
    after = evaluate(model, data, episodes=4)
    assert {**after, "seconds": 0} == {**before, "seconds": 0}


def test_a_mean_std_threshold_decided_for_another_number_of_aspects(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("awatt.research.scoring._CALIBRATION_EPISODES", 4)
    model = RunModel(make(data, "mean-std"), data)
    model.system.trained_with = {"episode": {"n_way": 3, "n_shot": 2, "n_query": 2}, "seed": 1}
    with pytest.raises(
        AwattError, match=r"calibrated with 3 aspects, the episodes have 4\. Add --threshold mean-std to"
    ):
        evaluate(model, data, episodes=4, n_way=4)
    assert evaluate(model, data, episodes=4, n_shot=1)["threshold"] == "mean-std"
    for threshold in ("mean-std", "static"):
        assert evaluate(model, data, episodes=4, threshold=threshold, n_way=4)["threshold"] == threshold


def test_a_policy_still_advises_its_own_number_of_aspects(data: Path) -> None:
    model = RunModel(make(data, "policy"), data)
    model.system.trained_with = {"episode": {"n_way": 3, "n_shot": 2, "n_query": 2}, "seed": 1}
    with pytest.raises(AwattError, match=r"was trained for 3 aspects, found 4\. Evaluate with --n-way 3, or use"):
        evaluate(model, data, episodes=4, n_way=4)


@pytest.mark.parametrize("broken", [{}, {"episode": 5, "seed": 1}, {"episode": {"n_way": 3}, "seed": "x"}, {"seed": 1}])
def test_a_run_that_does_not_say_its_episodes_is_an_error(data: Path, broken: dict[str, Any]) -> None:
    model = RunModel(make(data), data)
    model.system.trained_with = broken
    with pytest.raises(AwattError, match="does not say which episodes it was trained with"):
        evaluate(model, data)


def test_the_bundled_model_decides_with_the_threshold_that_was_asked_for(data: Path) -> None:
    """With 20 examples per aspect its labels would calibrate another one."""
    texts = [{"text": f"{word} {number}", "aspects": [word]} for word in ("food", "price") for number in range(30)]
    (data / "test.jsonl").write_text("".join(json.dumps(row) + "\n" for row in texts))
    model, shape = AspectModel.load(), {"n_way": 2, "n_shot": 20, "n_query": 5}
    assert evaluate(model, data, episodes=1, threshold="0", **shape)["macro_f1"] == pytest.approx(2 / 3)
    assert evaluate(model, data, episodes=1, **shape)["macro_f1"] == 1
