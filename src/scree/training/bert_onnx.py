"""Write a BERT sentence encoder as an int8 ONNX graph for one CPU core.

The graph takes the token ids of one window, `input_ids` (1, tokens) int64, and returns `embedding` (1, dim) float32 of
unit length: mean pooling over all tokens, [CLS] and [SEP] included, and L2 normalisation are inside. There is no
attention mask and no padding, because scree runs one window at a time: activations are quantised at run time by the
range of the whole tensor, so a neighbour in a batch would change the result. Several rows of equal length are
accepted.

The graph is written by hand and not traced, so that it is small, that the same weights give the same bytes, and that
every operator is the one measured to be fastest. It refuses any architecture but plain BERT.

Sources: Devlin et al. 2019 (BERT, post-layer normalisation); Reimers and Gurevych 2019 (mean pooling).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from scree.errors import EncoderError

if TYPE_CHECKING:
    from numpy.typing import NDArray

# The first opset with LayerNormalization as one operator, and the IR version of its time: any ONNX Runtime from 1.13.
OPSET = 17
IR_VERSION = 8

# Domain of the fused operators (attention, dynamically quantised product, Gelu) that come with ONNX Runtime.
FUSED = "com.microsoft"

# Weights use 7 of 8 bits ("reduced range"): on x86 without VNNI the products of an 8-bit weight and an 8-bit activation
# are added up in 16 bits, which 2 * 127 * 255 overflows and 2 * 63 * 255 does not.
MAX_WEIGHT_LEVEL = 63

# Rows of the embedding table are only looked up, never multiplied, so they use the whole signed byte.
MAX_ROW_LEVEL = 127


@dataclass(frozen=True, slots=True)
class BertShape:
    """What the weights do not say about themselves."""

    layers: int
    heads: int
    epsilon: float

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> BertShape:
        """Read the shape from the `config.json` of a BERT model.

        Raises:
            EncoderError: the model is no BERT with absolute positions and exact Gelu.
        """
        expected = {"model_type": "bert", "hidden_act": "gelu"}
        for key, value in expected.items():
            if config.get(key) != value:
                raise EncoderError(f"Cannot export this model: {key} is {config.get(key)!r}, not {value!r}.")
        if config.get("position_embedding_type", "absolute") != "absolute":
            raise EncoderError("Cannot export this model: its positions are not absolute.")
        return cls(config["num_hidden_layers"], config["num_attention_heads"], config["layer_norm_eps"])


def quantise(matrix: NDArray[np.float32], axis: int, levels: int) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Return `matrix` as integers in ±`levels` and the scales that bring it back, one scale along `axis` each.

    Symmetric: a scale is the largest magnitude divided by `levels`, and a zero stays a zero.
    """
    largest = np.abs(matrix).max(axis=axis, keepdims=True)
    scales = (np.where(largest == 0, 1, largest) / levels).astype(np.float32)
    return np.rint(matrix / scales).astype(np.int8), scales


def bert_graph(weights: Mapping[str, NDArray[np.float32]], shape: BertShape, *, int8: bool = True) -> bytes:
    """Return the serialised ONNX model.

    Args:
        weights: float32 tensors by their names in a Hugging Face BERT checkpoint, without a leading `bert.`.
        shape: the number of layers and heads, and epsilon of layer normalisation.
        int8: quantise weights per output channel, embedding rows per row, activations at run time; else all float32,
            which is for comparison.

    Raises:
        EncoderError: a tensor is missing.
    """
    try:
        return _BertWriter(weights, shape, int8).model()
    except KeyError as error:
        raise EncoderError(f"Cannot export this model: it has no tensor {error}.") from error


class _BertWriter:
    """Collects the nodes and constants of one graph; a value is known by the name its node gives it."""

    def __init__(self, weights: Mapping[str, NDArray[np.float32]], shape: BertShape, int8: bool) -> None:
        self._weights = weights
        self._shape = shape
        self._int8 = int8
        self._nodes: list[Any] = []
        self._constants: list[Any] = []

    def model(self) -> bytes:
        from onnx import TensorProto, helper

        value = self._embed_tokens()
        for layer in range(self._shape.layers):
            value = self._layer(layer, value)
        pooled = self._node("ReduceMean", [value], "pooled", axes=[1], keepdims=0)
        self._node("LpNormalization", [pooled], "embedding", axis=-1, p=2)
        dimension = self._weights["embeddings.word_embeddings.weight"].shape[1]
        graph = helper.make_graph(
            self._nodes,
            "sentence encoder",
            [helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["windows", "tokens"])],
            [helper.make_tensor_value_info("embedding", TensorProto.FLOAT, ["windows", dimension])],
            self._constants,
        )
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid(FUSED, 1)]
        model = helper.make_model(graph, producer_name="scree", opset_imports=opsets, ir_version=IR_VERSION)
        return bytes(model.SerializeToString(deterministic=True))

    def _embed_tokens(self) -> str:
        words = self._weights["embeddings.word_embeddings.weight"]
        if self._int8:
            rows, scales = quantise(words, 1, MAX_ROW_LEVEL)
            row = self._node("Gather", [self._constant("words", rows), "input_ids"], "words.row")
            row = self._node("Cast", [row], "words.float", to=1)
            scale = self._node("Gather", [self._constant("words.scales", scales), "input_ids"], "words.scale")
            word = self._node("Mul", [row, scale], "words.embedding")
        else:
            word = self._node("Gather", [self._constant("words", words), "input_ids"], "words.embedding")
        # Every token is of segment 0, so that its embedding is the same everywhere and joins the positions'.
        positions = self._weights["embeddings.position_embeddings.weight"]
        positions = positions + self._weights["embeddings.token_type_embeddings.weight"][0]
        zero = self._constant("zero", np.zeros(1, np.int64))
        tokens = self._node("Shape", ["input_ids"], "tokens", start=1, end=2)
        position = self._node("Slice", [self._constant("positions", positions), zero, tokens, zero], "positions.used")
        return self._add_and_normalise(word, position, "embeddings.LayerNorm")

    def _layer(self, layer: int, value: str) -> str:
        at = f"encoder.layer.{layer}."
        attended = self._attention(at + "attention.self", value)
        attended = self._linear(at + "attention.output.dense", attended)
        value = self._add_and_normalise(attended, value, at + "attention.output.LayerNorm")
        inner = self._linear(at + "intermediate.dense", value)
        inner = self._node("Gelu", [inner], at + "gelu", domain=FUSED)
        inner = self._linear(at + "output.dense", inner)
        return self._add_and_normalise(inner, value, at + "output.LayerNorm")

    def _attention(self, name: str, value: str) -> str:
        parts = [f"{name}.{part}" for part in ("query", "key", "value")]
        matrix = np.concatenate([self._weights[f"{part}.weight"].T for part in parts], axis=1)
        bias = self._constant(f"{name}.bias", np.concatenate([self._weights[f"{part}.bias"] for part in parts]))
        heads = self._shape.heads
        if not self._int8:
            inputs = [value, self._constant(f"{name}.weight", matrix), bias]
            return self._node("Attention", inputs, name, domain=FUSED, num_heads=heads)
        weight, weight_scale = self._quantised(name, matrix)
        integers, scale, zero = f"{name}.integers", f"{name}.scale", f"{name}.zero"
        self._node("DynamicQuantizeLinear", [value], integers, scale, zero)
        # The empty name stands for the mask that is not needed.
        inputs = [integers, weight, bias, scale, weight_scale, "", zero]
        return self._node("QAttention", inputs, name, domain=FUSED, num_heads=heads)

    def _linear(self, name: str, value: str) -> str:
        matrix = self._weights[f"{name}.weight"].T
        bias = self._constant(f"{name}.bias", self._weights[f"{name}.bias"])
        if not self._int8:
            product = self._node("MatMul", [value, self._constant(f"{name}.weight", matrix)], f"{name}.product")
            return self._node("Add", [product, bias], name)
        inputs = [value, *self._quantised(name, matrix), "", bias]
        return self._node("DynamicQuantizeMatMul", inputs, name, domain=FUSED)

    def _quantised(self, name: str, matrix: NDArray[np.float32]) -> tuple[str, str]:
        """Add `matrix` (inputs, outputs) with one scale for each output."""
        integers, scales = quantise(matrix, 0, MAX_WEIGHT_LEVEL)
        return self._constant(f"{name}.weight", integers), self._constant(f"{name}.weight.scales", scales[0])

    def _add_and_normalise(self, value: str, residual: str, name: str) -> str:
        # Not SkipLayerNormalization, which does both: its CPU kernel takes five times as long as these two.
        total = self._node("Add", [value, residual], f"{name}.sum")
        scale = self._constant(f"{name}.weight", self._weights[f"{name}.weight"])
        bias = self._constant(f"{name}.bias", self._weights[f"{name}.bias"])
        return self._node("LayerNormalization", [total, scale, bias], name, axis=-1, epsilon=self._shape.epsilon)

    def _constant(self, name: str, array: NDArray[Any]) -> str:
        from onnx import numpy_helper

        self._constants.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def _node(self, operator: str, inputs: list[str], *outputs: str, domain: str = "", **attributes: Any) -> str:
        from onnx import helper

        self._nodes.append(
            helper.make_node(operator, inputs, list(outputs), name=outputs[0], domain=domain, **attributes)
        )
        return outputs[0]
