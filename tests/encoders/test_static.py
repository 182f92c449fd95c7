"""Static vectors: any model2vec folder, errors in it, and the real one where it is available."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from safetensors.numpy import load_file

from awatt.arrays import Sentences
from awatt.encoders import Encoder
from awatt.encoders.base import Encoded
from awatt.encoders.static import StaticConfig, StaticEncoder, read_model2vec
from awatt.errors import AwattError, DataError

Make = Callable[..., Encoder]
Folder = Callable[..., Path]


@pytest.mark.parametrize("changes", [{}, {"hidden": 0}, {"window": 3}, {"hidden": 20}], ids=str)
def test_a_batch_equals_its_sentences_alone(
    make: Make, texts: tuple[str, ...], alone: Callable[[Encoder, Sentences], torch.Tensor], changes: dict[str, int]
) -> None:
    encoder = make("static", **changes)
    sentences = encoder.tokenize(texts)
    assert encoder.dim == {0: 8}.get(changes.get("hidden", 6), changes.get("hidden", 6))
    assert encoder(sentences).shape == (len(sentences.ids), encoder.dim)
    torch.testing.assert_close(encoder(sentences), alone(encoder, sentences), rtol=1e-5, atol=1e-5)


def test_it_is_initialised_to_the_vectors_of_the_table(make: Make) -> None:
    encoder = make("static", hidden=8, sentence=5.0, word=1.0)
    sentences = encoder.tokenize(["the food was good", "clean"])
    vectors = encoder.table.weight[torch.from_numpy(sentences.ids)]
    for own, found in zip(vectors.split([4, 1]), encoder(sentences).split([4, 1]), strict=True):
        scale = own.square().sum(-1).mean().sqrt()
        torch.testing.assert_close(found, 5 * F.normalize(own.mean(0), dim=0) + own / scale)


def test_tokens_are_the_texts_own_with_offsets(make: Make) -> None:
    encoder = make("static")
    text = "The room was unclean ☃"
    found = encoder.tokenizer.encode(text)
    assert found.tokens == ["the", "room", "was", "un", "##clean", "[UNK]"]
    assert [text[start:end] for start, end in found.offsets] == ["The", "room", "was", "un", "clean", "☃"]
    assert encoder.tokenize([text]).ids.tolist() == found.ids
    long = encoder.tokenize(["the " * 200])
    assert long.lengths.tolist() == [128]


def test_an_unknown_token_does_not_turn_its_sentence(make: Make) -> None:
    encoder = make("static")
    sentences = encoder.tokenize(["good food", "good ☃ ☃ food", "", "☃"])
    directions = F.normalize(Encoded(encoder(sentences), sentences.lengths).mean(), dim=-1)
    torch.testing.assert_close(directions[0], directions[1])
    assert directions[2:].tolist() == [[0.0] * 6] * 2


def test_a_frozen_table_has_no_gradient_and_a_trained_one_a_sparse_one(make: Make) -> None:
    for frozen in (True, False):
        encoder = make("static", frozen=frozen)
        sentences = encoder.tokenize(["the food", "the ☃"])
        encoder(sentences).sum(-1).square().sum().backward()
        gradient = encoder.table.weight.grad
        assert (gradient is None) == frozen
        if gradient is not None:
            assert gradient.coalesce().indices()[0].tolist() == sorted(set(sentences.ids.tolist()))
            assert bool(gradient.coalesce().values().isfinite().all())


def test_shared_and_weighted_vectors(tmp_path: Path, model2vec_folder: Folder) -> None:
    plain = load_file(model2vec_folder(tmp_path / "plain") / "model.safetensors")["embeddings"]
    count = len(plain)
    mapping, weights = np.arange(count) // 2, np.linspace(0.5, 2, count)
    folder = model2vec_folder(tmp_path / "more", embeddings=plain[: count // 2 + 1], mapping=mapping, weights=weights)
    _, vectors, unknown = read_model2vec(folder)
    wanted = plain[mapping] * weights[:, None]
    assert unknown == 1
    assert vectors[unknown].tolist() == [0] * 8
    np.testing.assert_allclose(vectors[2:] / vectors[2, 0], wanted[2:] / wanted[2, 0], rtol=1e-4)


def test_errors_in_a_folder(tmp_path: Path, model2vec_folder: Folder) -> None:
    with pytest.raises(AwattError, match=r"does not exist. Run: hf download minishlab/potion-base-8M --local-dir"):
        read_model2vec(tmp_path / "nowhere")
    folder = model2vec_folder(tmp_path / "one")
    (folder / "tokenizer.json").write_text("{}")
    with pytest.raises(DataError, match=r"tokenizer.json: is not a tokenizer"):
        read_model2vec(folder)
    (folder / "model.safetensors").write_bytes(b"nothing")
    with pytest.raises(DataError, match="is not a model2vec file"):
        read_model2vec(folder)
    (folder / "tokenizer.json").unlink()
    with pytest.raises(AwattError, match=r"tokenizer.json does not exist"):
        read_model2vec(folder)
    short = model2vec_folder(tmp_path / "short", embeddings=np.ones((3, 8), np.float32))
    with pytest.raises(DataError, match=r"has 3 vectors, tokenizer.json 27 tokens"):
        read_model2vec(short)


def test_a_window_needs_a_map() -> None:
    with pytest.raises(AwattError, match=r"encoder.window is 3 without a map"):
        StaticConfig(hidden=0, window=3)


def test_the_default_is_potion_in_the_shared_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("AWATT_SHARED", str(tmp_path))
    with pytest.raises(AwattError, match=str(tmp_path / "weights" / "potion-base-8M" / "model.safetensors")):
        StaticEncoder.create(StaticConfig(), [])
    monkeypatch.delenv("AWATT_SHARED")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(AwattError, match=r"^\.\./shared/weights/potion-base-8M"):
        StaticEncoder.create(StaticConfig(), [])


def test_potion_finds_similar_sentences(shared: Path) -> None:
    encoder = StaticEncoder.create(StaticConfig(folder=str(shared / "weights" / "potion-base-8M")), [])
    sentences = encoder.tokenize(["our waiter was friendly", "the waitress was nice", "parking costs a fortune"])
    one, like, unlike = F.normalize(Encoded(encoder(sentences), sentences.lengths).mean(), dim=-1)
    assert one @ like > 0.5 > 0.2 > one @ unlike
