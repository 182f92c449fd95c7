"""Proto-AWATT against a literal reading of the paper's equations, word by word, and against numbers by hand."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from awatt.encoders.base import Block
from awatt.errors import AwattError
from awatt.models.proto_awatt import ProtoAwatt, ProtoAwattConfig
from awatt.research.training import squared_error
from awatt.thresholds.base import Scored

torch.set_num_threads(1)

ABLATIONS = {
    "whole": ProtoAwattConfig(e_m=3),
    "whole, linear": ProtoAwattConfig(e_m=3, form="linear"),
    "w/o SA": ProtoAwattConfig(support_attention=False),
    "w/o W^i": ProtoAwattConfig(attention_matrix=False),
    "w/o QA": ProtoAwattConfig(e_m=3, query_attention=False),
    "w/o SA and QA": ProtoAwattConfig(support_attention=False, query_attention=False),
}


def make(config: ProtoAwattConfig, dim: int = 4, seed: int = 0) -> ProtoAwatt:
    """In double precision, with weights that are not small: the equations must agree to many digits."""
    torch.manual_seed(seed)
    model = ProtoAwatt(dim, config).double()
    for value in model.parameters():
        nn.init.normal_(value, 0, 0.7)
    return model


def summarise(model: ProtoAwatt, support: Block) -> Tensor:
    return model.summarise(support.pack())


def scores(model: ProtoAwatt, query: Block, prototypes: Tensor) -> Tensor:
    return model.scores(query.pack(), prototypes)


def represent(model: ProtoAwatt, query: Block, prototypes: Tensor) -> Tensor:
    return model.represent(query.pack(), prototypes)


def draw(*shape: int, dim: int = 4, length: int = 6, seed: int = 1) -> Block:
    """Sentences of 1 to ``length`` words, at least one of each extreme; garbage where the mask is False."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, length + 1, size=shape)
    lengths.flat[0], lengths.flat[-1] = 1, length
    mask = np.arange(length) < lengths[..., None]
    tokens = np.where(mask[..., None], rng.normal(0, 1, (*shape, length, dim)), 55.0)
    return Block(torch.from_numpy(tokens), torch.from_numpy(mask))


def words(sentences: Block, *place: int) -> Tensor:
    """The valid words of one sentence, H. (length, dim)"""
    return sentences.tokens[place][sentences.mask[place]]


# ---- the paper, read literally: one class, one sentence, one word at a time


def literal_matrix(model: ProtoAwatt, v: Tensor) -> Tensor:
    """Eq. 3: W^i. (dim, dim)"""
    weight, bias, e_m = model.weight.data, model.bias.data, model.config.e_m
    if model.config.form == "printed":
        repeated = torch.stack([v] * e_m)  # v repeated e_M times, (e_M, d)
        return weight @ repeated + bias[:, None]
    layer = nn.Linear(e_m, len(v)).double()
    layer.load_state_dict({"weight": weight, "bias": bias})
    found: Tensor = layer(torch.stack([v] * e_m, dim=1))  # (d, e_M) -> (d, d)
    return found.detach()


def literal_prototype(model: ProtoAwatt, instances: list[Tensor]) -> Tensor:
    """Eq. 2 to 5 for one class, with the whole d x d attention matrix."""
    config = model.config
    every_word = [word for instance in instances for word in instance]
    v = torch.stack(every_word).sum(0) / len(every_word)  # Eq. 2
    dim = len(v)
    denoised = []
    for instance in instances:
        if not config.support_attention:
            denoised.append(sum(word for word in instance) / len(instance))
            continue
        matrix = torch.eye(dim, dtype=torch.float64)
        if config.attention_matrix:
            matrix = literal_matrix(model, v)
        attention = [float(v @ torch.tanh(word @ matrix)) for word in instance]  # Eq. 4
        total = sum(math.exp(value) for value in attention)
        denoised.append(sum(math.exp(value) / total * word for value, word in zip(attention, instance, strict=True)))
    return torch.stack([torch.as_tensor(one) for one in denoised]).mean(0)  # Eq. 5


def literal_query(model: ProtoAwatt, sentence: Tensor, prototype: Tensor) -> Tensor:
    """Eq. 6 for one query and one prototype."""
    if not model.config.query_attention:
        return sentence.mean(0)
    attention = [float(prototype @ torch.tanh(word)) for word in sentence]
    total = sum(math.exp(value) for value in attention)
    weighted = [math.exp(value) / total * word for value, word in zip(attention, sentence, strict=True)]
    return torch.stack(weighted).sum(0)


@pytest.mark.parametrize("name", ABLATIONS)
@pytest.mark.parametrize(("n_way", "n_shot"), [(3, 2), (1, 3), (2, 1), (1, 1)])
def test_the_equations_are_followed(name: str, n_way: int, n_shot: int) -> None:
    model = make(ABLATIONS[name])
    support, query = draw(n_way, n_shot), draw(5, seed=2)
    prototypes = summarise(model, support)
    expected = torch.stack(
        [literal_prototype(model, [words(support, i, j) for j in range(n_shot)]) for i in range(n_way)]
    )
    torch.testing.assert_close(prototypes, expected, rtol=1e-9, atol=1e-12)
    literal = [[literal_query(model, words(query, q), r) for r in expected] for q in range(5)]
    represented = represent(model, query, prototypes).expand(5, n_way, 4)
    torch.testing.assert_close(represented, torch.stack([torch.stack(row) for row in literal]), rtol=1e-9, atol=1e-12)
    # The ranking: softmax over the negative squared distances.
    distances = [
        [
            sum((x - y) ** 2 for x, y in zip(r.tolist(), r_q.tolist(), strict=True))
            for r, r_q in zip(expected, row, strict=True)
        ]
        for row in literal
    ]
    ranking = [[math.exp(-d) / sum(math.exp(-other) for other in row) for d in row] for row in distances]
    torch.testing.assert_close(
        model.normalise(scores(model, query, prototypes)), torch.tensor(ranking, dtype=torch.float64)
    )


# ---- by hand


def sentences(rows: list[Any]) -> Block:
    """Words of one dimension: ``[[0, 3], [0]]`` is a class of two sentences."""
    length = max(len(row) for row in rows)
    tokens = torch.tensor([[*row, *[9.0] * (length - len(row))] for row in rows], dtype=torch.float64)
    mask = torch.tensor([[place < len(row) for place in range(length)] for row in rows])
    return Block(tokens[..., None], mask)


def test_support_attention_by_hand() -> None:
    model = make(ProtoAwattConfig(e_m=2), dim=1)
    model.weight.data[:] = torch.tensor([[0.2, 0.3]])
    model.bias.data[:] = 0.1
    one_class = sentences([[0.0, 3.0], [0.0]])
    # v = (0 + 3 + 0) / 3 = 1 over words (over sentences it would be 0.75); W^i = 1 * (0.2 + 0.3) + 0.1 = 0.6
    # tanh(0) = 0, tanh(3 * 0.6) = 0.946806; softmax: 1 and 2.577463 of 3.577463, so beta = 0.279527, 0.720473
    # r_1 = 3 * 0.720473 = 2.161418, r_2 = 0, r = 1.080709
    prototype = summarise(model, Block(one_class.tokens[None], one_class.mask[None]))
    assert prototype.item() == pytest.approx(1.080709, abs=2e-6)


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        # v = (0.5, 1), w = (0.4, 0.6).
        # W^i = [[0.4 * 0.5 + 0.1, 0.4 * 1 + 0.1], [0.6 * 0.5 - 0.2, 0.6 * 1 - 0.2]] = [[0.3, 0.5], [0.1, 0.4]]
        # v tanh(0.3, 0.5) = 0.607773, v tanh(0.2, 0.8) = 0.762724; beta = 0.461340, 0.538660
        ("printed", [0.461340, 1.077321]),
        # W^i = [[0.5 * 0.4 + 0.1, 0.5 * 0.6 - 0.2], [1 * 0.4 + 0.1, 1 * 0.6 - 0.2]] = [[0.3, 0.1], [0.5, 0.4]]
        # v tanh(0.3, 0.1) = 0.245324, v tanh(1, 0.8) = 1.044834; beta = 0.310130, 0.689870
        ("linear", [0.310130, 1.379739]),
    ],
)
def test_both_forms_of_equation_3_by_hand(form: str, expected: list[float]) -> None:
    model = make(ProtoAwattConfig(e_m=2, form=form), dim=2)
    model.weight.data[:] = torch.tensor([[0.1, 0.3], [0.1, 0.5]])
    model.bias.data[:] = torch.tensor([0.1, -0.2])
    # One class with one sentence of two words, (1, 0) and (0, 2).
    words_of_class = torch.tensor([[1.0, 0.0], [0.0, 2.0]], dtype=torch.float64)[None, None]
    prototype = summarise(model, Block(words_of_class, torch.ones(1, 1, 2, dtype=torch.bool)))
    assert prototype.flatten().tolist() == pytest.approx(expected, abs=2e-6)


@pytest.mark.parametrize(("form", "sees"), [("printed", False), ("linear", True)])
def test_only_the_linear_form_attends_by_similarity_to_the_common_aspect(form: str, sees: bool) -> None:
    """As printed, H W^i depends on H only through H w and H b: words that agree in both get the same attention."""
    model = make(ProtoAwattConfig(e_m=1, form=form), dim=3)
    model.weight.data[:] = torch.tensor([[1.0], [0.0], [0.0]])
    model.bias.data[:] = torch.tensor([0.5, 0.0, 0.0])
    # The common aspect is along the second dimension, where w and b are zero.
    one_class = torch.tensor([[1.0, 4.0, 0.0], [1.0, 0.0, 0.0]], dtype=torch.float64)[None, None]
    prototype = summarise(model, Block(one_class, torch.ones(1, 1, 2, dtype=torch.bool)))
    assert (prototype[0, 1].item() == pytest.approx(2.0)) != sees  # 2 is the plain mean of 4 and 0


def test_query_attention_by_hand() -> None:
    model = make(ProtoAwattConfig(), dim=1)
    query, prototypes = sentences([[0.0, 3.0]]), torch.tensor([[1.0], [-2.0]], dtype=torch.float64)
    # r = 1: tanh(0) = 0, tanh(3) = 0.995055; 1 and 2.704873 of 3.704873; r_q = 3 * 0.730085 = 2.190255
    # r = -2: 0 and -1.990110; 1 and 0.136681 of 1.136681; r_q = 3 * 0.120245 = 0.360736
    found = represent(model, query, prototypes)
    assert found.flatten().tolist() == pytest.approx([2.190255, 0.360736], abs=2e-6)
    # (1 - 2.190255)^2 = 1.416707 and (-2 - 0.360736)^2 = 5.573074
    assert scores(model, query, prototypes).flatten().tolist() == pytest.approx([-1.416707, -5.573074], abs=1e-5)


def test_the_ranking_is_a_softmax_over_negative_squared_distances() -> None:
    model = make(ProtoAwattConfig(), dim=2)
    query = Block(torch.zeros(1, 1, 2, dtype=torch.float64), torch.ones(1, 1, dtype=torch.bool))
    prototypes = torch.tensor([[1.0, 0.0], [1.0, 1.0]], dtype=torch.float64)
    # squared distances 1 and 2: e^-1 / (e^-1 + e^-2); plain ones would give 0.602
    ranking = model.normalise(scores(model, query, prototypes))[0]
    assert ranking.tolist() == pytest.approx([0.731059, 0.268941], abs=1e-6)


@pytest.mark.parametrize(
    ("targets", "expected"),
    [
        ([[True, False, False]], 0.26),  # (0.6 - 1)^2 + 0.3^2 + 0.1^2
        ([[True, True, False]], 0.06),  # the target is 0.5, 0.5, 0: 0.1^2 + 0.2^2 + 0.1^2
        ([[False, False, False]], 0.46),  # the target is zero: 0.6^2 + 0.3^2 + 0.1^2
        ([[True, True, False], [False, False, False]], 0.26),  # the mean over queries, the sum over classes
    ],
)
def test_the_loss_by_hand(targets: list[list[bool]], expected: float) -> None:
    ranking = torch.tensor([[[0.6, 0.3, 0.1]] * len(targets)])
    nothing = torch.zeros(0)
    scored = Scored(ranking, ranking, None, nothing, torch.tensor([targets]))
    assert squared_error(scored).item() == pytest.approx(expected, abs=1e-6)


# ---- the ablations


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("whole", {"weight", "bias"}),
        ("whole, linear", {"weight", "bias"}),
        ("w/o SA", set()),
        ("w/o W^i", set()),
        ("w/o QA", {"weight", "bias"}),
        ("w/o SA and QA", set()),
    ],
)
def test_an_ablation_has_no_parameter_that_it_does_not_use(name: str, wanted: set[str]) -> None:
    model = make(ABLATIONS[name])
    assert {name for name, _ in model.named_parameters()} == wanted
    found = scores(model, draw(5, seed=2), summarise(model, draw(3, 2)))
    if wanted:
        found.square().sum().backward()
    for value in model.parameters():
        assert value.grad is not None
        assert value.grad.abs().min() > 0


def test_every_ablation_differs_from_every_other() -> None:
    support, query = draw(3, 2), draw(5, seed=2)
    found = [scores(model, query, summarise(model, support)) for model in map(make, ABLATIONS.values())]
    for i, one in enumerate(found):
        for other in found[:i]:
            assert (one - other).abs().max() > 1e-3


@pytest.mark.parametrize("e_m", [1, 5, 10, 25, 50])
def test_the_vector_is_repeated_e_m_times(e_m: int) -> None:
    model = ProtoAwatt(7, ProtoAwattConfig(e_m=e_m))
    assert model.weight.shape == (7, e_m)
    assert model.bias.shape == (7,)


def test_parameters_are_initialised_as_in_the_appendix() -> None:
    torch.manual_seed(0)
    model = ProtoAwatt(400, ProtoAwattConfig(e_m=50))
    for value in model.parameters():
        assert value.mean().item() == pytest.approx(0, abs=0.02)
        assert value.std().item() == pytest.approx(0.1, rel=0.1)


def test_e_m_must_be_at_least_one() -> None:
    with pytest.raises(AwattError, match=r"model\.e_m is 0, needs at least 1"):
        ProtoAwattConfig(e_m=0)


def test_an_unknown_form_of_equation_3_is_refused() -> None:
    with pytest.raises(AwattError, match=r"model\.form is 'other', needs one of: printed, linear"):
        ProtoAwattConfig(form="other")


# ---- shapes, padding, batches


def concatenated(block: Block, other: Block) -> Block:
    """Both along the first dimension; the shorter sentences are padded with garbage."""
    length = max(block.mask.shape[-1], other.mask.shape[-1])
    parts = []
    for one in (block, other):
        missing = (0, length - one.mask.shape[-1])
        parts.append((pad(one.tokens, (0, 0, *missing), value=1e3), pad(one.mask, missing)))
    return Block(*(torch.cat(pair) for pair in zip(*parts, strict=True)))


@pytest.mark.parametrize("name", ABLATIONS)
def test_longer_sentences_in_the_batch_change_no_score(name: str) -> None:
    model, support, query = make(ABLATIONS[name]), draw(3, 2), draw(5, seed=2)
    plain = scores(model, query, summarise(model, support))
    prototypes = summarise(model, concatenated(support, draw(1, 2, length=15, seed=3)))[:3]
    padded = scores(model, concatenated(query, draw(2, length=20, seed=4)), prototypes)[:5]
    torch.testing.assert_close(padded, plain, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", ABLATIONS)
def test_a_batch_of_episodes_is_scored_as_one_by_one(name: str) -> None:
    model, support, query = make(ABLATIONS[name]), draw(4, 3, 2), draw(4, 5, seed=2)
    together = scores(model, query, summarise(model, support))
    assert together.shape == (4, 5, 3)
    for episode, found in enumerate(together):
        alone = summarise(model, Block(support.tokens[episode], support.mask[episode]))
        queries = Block(query.tokens[episode], query.mask[episode])
        torch.testing.assert_close(scores(model, queries, alone), found, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", ABLATIONS)
def test_a_single_class_has_probability_one(name: str) -> None:
    model = make(ABLATIONS[name])
    ranking = model.normalise(scores(model, draw(5, seed=2), summarise(model, draw(1, 2))))
    assert ranking.tolist() == [[1.0]] * 5


@pytest.mark.parametrize("name", ABLATIONS)
def test_one_example_of_one_word_is_its_own_prototype(name: str) -> None:
    model = make(ABLATIONS[name])
    support = Block(torch.randn(3, 1, 1, 4, dtype=torch.float64), torch.ones(3, 1, 1, dtype=torch.bool))
    prototypes = summarise(model, support)
    torch.testing.assert_close(prototypes, support.tokens[:, 0, 0])
    # A query of that one word has distance zero.
    query = Block(support.tokens[:, 0], support.mask[:, 0])
    torch.testing.assert_close(scores(model, query, prototypes).diagonal(), torch.zeros(3, dtype=torch.float64))
