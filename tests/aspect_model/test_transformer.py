"""A BERT-like encoder in place of the student: a tiny one with random weights."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from awatt import AspectDetector
from awatt.aspect_model.model import AspectModel
from awatt.errors import AwattError, MissingExtraError

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from awatt.aspect_model.student import teacher  # noqa: E402
from awatt.aspect_model.transformer import PieceEncoder, TransformerContext  # noqa: E402

EXAMPLES = {"food": ["the pizza was cold", "tasty soup"], "staff": ["a rude waiter", "the waitress smiled"]}
TEXTS = ["cold soup", "the waiter smiled", "nothing of the kind"]


def make_encoder(folder: Path, pieces: list[str], positions: int = 300) -> str:
    """A Hugging Face folder with random weights, whose vocabulary is these pieces in reverse."""
    torch.manual_seed(0)
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    others = [piece for piece in pieces[::-1] if piece not in special]
    ids = {piece: number for number, piece in enumerate([*special, *others])}
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    config = transformers.BertConfig(
        vocab_size=len(ids), max_position_embeddings=positions, initializer_range=0.3, **sizes
    )
    transformers.BertModel(config).save_pretrained(folder)
    tokenizer = Tokenizer(models.WordPiece(ids, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    names = {f"{name}_token": f"[{name.upper()}]" for name in ("pad", "unk", "cls", "sep", "mask")}
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, model_max_length=positions, **names
    ).save_pretrained(folder)
    return str(folder)


@pytest.fixture(scope="module")
def fast() -> AspectModel:
    return AspectModel.load()


@pytest.fixture(scope="module")
def pieces(fast: AspectModel) -> list[str]:
    vocabulary = fast.tokenizer.get_vocab()
    return sorted(vocabulary, key=vocabulary.__getitem__)


def test_the_encoder_is_given_its_own_numbers_of_the_same_pieces(
    fast: AspectModel, pieces: list[str], tmp_path: Path
) -> None:
    encoder = PieceEncoder.create(make_encoder(tmp_path, pieces), fast.tokenizer, 256)
    sentences = fast.tokenize(["cold soup", "the waiter"])
    model = transformers.BertModel.from_pretrained(tmp_path).eval()
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    found = encoder.states(sentences).split(sentences.lengths.tolist())
    for text, states in zip(("cold soup", "the waiter"), found, strict=True):
        with torch.inference_mode():
            wanted = model(**theirs(text, return_tensors="pt")).last_hidden_state[0, 1:-1]
        torch.testing.assert_close(states, wanted, atol=1e-5, rtol=1e-5)


def test_what_a_teacher_said_is_kept_in_files(
    fast: AspectModel, pieces: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(teacher, "_SHARD", 2)
    found = teacher.load_teacher(make_encoder(tmp_path / "bert", pieces), fast.tokenizer)
    sentences = fast.tokenize(TEXTS)
    shards = teacher.teach_all(found, sentences, tmp_path / "taught")
    assert [path.name for path in shards] == ["0000.npz", "0001.npz"]
    taught = teacher.read_taught(shards)
    np.testing.assert_array_equal(taught.sentences.ids, sentences.ids)
    np.testing.assert_allclose(taught.tokens, found.states(sentences).half(), atol=0.05)  # in bfloat16
    written = shards[0].stat().st_mtime_ns
    assert teacher.teach_all(found, sentences, tmp_path / "taught") == shards
    assert shards[0].stat().st_mtime_ns == written


def test_a_detector_with_an_encoder_is_saved_with_it(
    fast: AspectModel, pieces: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sample = fast.tokenize([text for texts in EXAMPLES.values() for text in texts] * 10)
    encoder = TransformerContext.create(make_encoder(tmp_path / "bert", pieces), fast.tokenizer, sample, 256)
    vectors = encoder(sample)
    assert vectors.shape == (len(sample.ids), 16)
    np.testing.assert_allclose((vectors**2).sum(-1), 1, atol=1e-5)
    assert encoder(fast.tokenize([])).shape == (0, 16)
    centre = np.zeros(256 + 16, np.float32)
    weights = fast.weights._replace(settings=fast.weights.settings._replace(centre=centre))
    model = AspectModel(fast.tokenizer, weights, fast.settings, encoder)
    model.save(tmp_path / "model")
    model.save(tmp_path / "slim", slim=True)
    detector = AspectDetector.from_examples(EXAMPLES, model=tmp_path / "model")
    found = detector.detect_many(TEXTS)
    assert found != AspectDetector.from_examples(EXAMPLES).detect_many(TEXTS)
    assert AspectDetector.from_examples(EXAMPLES, model=tmp_path / "slim").detect_many(TEXTS) == found
    assert not (tmp_path / "slim" / "tokenizer.json").exists()
    saved = detector.save_pretrained(tmp_path / "saved")
    assert AspectDetector.from_pretrained(saved).detect_many(TEXTS) == found
    (saved / "encoder.safetensors").write_bytes(b"")
    with pytest.raises(AwattError, match=r"encoder\.safetensors: does not match its sha256"):
        AspectDetector.from_pretrained(saved)
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'awatt\[transformers\]'"):
        AspectModel.load(tmp_path / "model")


def test_an_encoder_that_does_not_fit_is_an_error(fast: AspectModel, pieces: list[str], tmp_path: Path) -> None:
    with pytest.raises(AwattError, match="knows 50% of the detector's word pieces"):
        PieceEncoder.create(make_encoder(tmp_path / "half", pieces[: len(pieces) // 2]), fast.tokenizer, 256)
    with pytest.raises(AwattError, match="reads at most 198 tokens, but 256 are needed"):
        PieceEncoder.create(make_encoder(tmp_path / "short", pieces, 200), fast.tokenizer, 256)


def test_a_slim_folder_with_other_static_vectors_gave_wrong_scores(fast: AspectModel, tmp_path: Path) -> None:
    """It was read with those of "fast"."""
    stored = fast.weights.vectors
    other = fast.weights._replace(vectors=stored._replace(table=np.roll(stored.table, 1, axis=0)))
    with pytest.raises(AwattError, match="not those of the package's fast model"):
        AspectModel(fast.tokenizer, other, fast.settings).save(tmp_path / "slim", slim=True)
    assert not (tmp_path / "slim").exists()


def test_a_slim_folder_of_another_version_loaded_without_a_word(tmp_path: Path) -> None:
    AspectModel.load().save(tmp_path, slim=True)
    assert AspectModel.load(tmp_path).parts.threshold == AspectModel.load().parts.threshold
    config = json.loads((tmp_path / "config.json").read_text())
    config["base"]["sha256"] = "0" * 64
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(AwattError, match=r"from another version of it\. Train it again with 'awatt train-detector'"):
        AspectModel.load(tmp_path)
