"""Write the graph with which demur runs the adapted model on ONNX Runtime, without any weights.

The weights are made on the user's machine, from the chat model's file and the adapter
(`demur.local.eight_bits`), and the graph says where each stands. So the file is small, and lies in
`demur-judge`.

All products with weights are of 8-bit integers: each token's numbers are scaled by the largest of
them, and each output's weights by the largest of theirs. Integers are added without rounding, so a
token's numbers do not depend on the tokens that are computed beside it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from onnx import GraphProto, ModelProto, TensorProto, helper

from demur.local import QWEN_SHAPE, WEIGHTS, Place, Shape

_CONTRIB = "com.microsoft"
_OPSETS = {"": 18, _CONTRIB: 1}
_IR = 10
_LEAST = 1e-9
"""The least scale of a token, so that one of zeros does not divide by zero."""


def save_graph(path: Path, shape: Shape = QWEN_SHAPE) -> None:
    """Write the graph of a model of this shape.

    Its inputs, for T tokens after P tokens that were read before:

    - `embeddings` (T, width), float32;
    - `rows` (1,) with T, `last` (n,) with the tokens whose logits are wanted, int64;
    - `seqlens` (1,) with P + T - 1, `total` () with P + T, int32;
    - `past.LAYER.key` and `past.LAYER.value` (1, key heads, P, head width), float32.

    Its outputs are `logits` (n, labels), and `present.LAYER.key` and `.value`, which are the past
    of the tokens that follow.
    """
    model = _Graph(shape).model()
    path.write_bytes(model.SerializeToString(deterministic=True))


class _Graph:
    """Collect the nodes of the graph."""

    def __init__(self, shape: Shape) -> None:
        self._shape = shape
        self._nodes: list[Any] = []
        self._constants: list[TensorProto] = []
        self._made = 0

    def model(self) -> ModelProto:
        """Return the whole graph as a model."""
        shape, value = self._shape, helper.make_tensor_value_info
        self._constant("one", TensorProto.FLOAT, [], [1.0])
        self._constant("step", TensorProto.FLOAT, [], [1 / 127])
        self._constant("least", TensorProto.FLOAT, [], [_LEAST])
        self._constant("middle", TensorProto.UINT8, [], [128])
        self._constant("axis0", TensorProto.INT64, [1], [0])
        self._constant("axis1", TensorProto.INT64, [1], [1])
        middle = helper.make_tensor("value", TensorProto.UINT8, [1], [128])
        self._nodes.append(helper.make_node("ConstantOfShape", ["rows"], ["middles"], value=middle))
        self._logits()
        floats, past, present = TensorProto.FLOAT, [], []
        for name in shape.cached():
            dims = [1, shape.key_heads, None, shape.head_width]
            past.append(value(f"past.{name}", floats, dims))
            present.append(value(f"present.{name}", floats, dims))
        inputs = [
            value("embeddings", floats, [None, shape.width]),
            value("rows", TensorProto.INT64, [1]),
            value("last", TensorProto.INT64, [None]),
            value("seqlens", TensorProto.INT32, [1]),
            value("total", TensorProto.INT32, []),
        ]
        outputs = [value("logits", floats, [None, len(shape.labels)])]
        graph: GraphProto = helper.make_graph(
            self._nodes,
            "judge",
            inputs + past,
            outputs + present,
            [*self._constants, *(_weight(*one) for one in shape.layout().items())],
        )
        opsets = [helper.make_opsetid(*one) for one in _OPSETS.items()]
        return helper.make_model(graph, opset_imports=opsets, ir_version=_IR)

    def _logits(self) -> None:
        shape = self._shape
        states = "embeddings"
        normed = self._node(
            "SimplifiedLayerNormalization",
            [states, "0.attention.norm"],
            axis=-1,
            epsilon=shape.epsilon,
        )
        for layer in range(shape.layers):
            attended = self._attention(layer, normed)
            states, normed = self._added(states, attended, f"{layer}.feed.norm")
            read = self._quantized(normed)
            gate = self._node(
                "QuickGelu", [self._product(f"{layer}.gate", read)], _CONTRIB, alpha=1.0
            )
            up = self._product(f"{layer}.up", read)
            fed = self._product(f"{layer}.down", self._quantized(self._node("Mul", [gate, up])))
            if layer + 1 < shape.layers:
                states, normed = self._added(states, fed, f"{layer + 1}.attention.norm")
            else:
                states = self._node("Add", [states, fed])
        wanted = self._node("Gather", [states, "last"], axis=0)
        normed = self._node(
            "SimplifiedLayerNormalization", [wanted, "norm"], axis=-1, epsilon=shape.epsilon
        )
        self._nodes.append(helper.make_node("MatMul", [normed, "labels"], ["logits"]))

    def _attention(self, layer: int, normed: str) -> str:
        """Add the attention of a layer, which also turns queries and keys by their position."""
        shape = self._shape
        product = self._product(f"{layer}.attention", self._quantized(normed))
        asked = self._node("Unsqueeze", [self._node("Add", [product, f"{layer}.bias"]), "axis0"])
        attended = self._name()
        past, present = (
            [f"{of}.{layer}.{one}" for one in ("key", "value")] for of in ("past", "present")
        )
        self._nodes.append(
            helper.make_node(
                "GroupQueryAttention",
                [asked, "", "", *past, "seqlens", "total", "cosines", "sines"],
                [attended, *present],
                domain=_CONTRIB,
                num_heads=shape.heads,
                kv_num_heads=shape.key_heads,
                do_rotary=1,
            )
        )
        flat = self._node("Squeeze", [attended, "axis0"])
        return self._product(f"{layer}.output", self._quantized(flat))

    def _added(self, states: str, more: str, norm: str) -> tuple[str, str]:
        """Add `more` to the states, and return the sum as it is and normalized."""
        normed, added = self._name(), self._name()
        self._nodes.append(
            helper.make_node(
                "SkipSimplifiedLayerNormalization",
                [states, more, norm],
                [normed, "", "", added],
                domain=_CONTRIB,
                epsilon=self._shape.epsilon,
            )
        )
        return added, normed

    def _quantized(self, states: str) -> tuple[str, str]:
        """Return the states as integers around 128, and the scale of each row."""
        most = self._node("ReduceMax", [self._node("Abs", [states]), "axis1"], keepdims=1)
        scales = self._node("Max", [self._node("Mul", [most, "step"]), "least"])
        flat = self._node("Squeeze", [scales, "axis1"])
        return self._node("QuantizeLinear", [states, flat, "middles"], axis=0), scales

    def _product(self, name: str, read: tuple[str, str]) -> str:
        integers, scales = read
        inputs = [integers, f"{name}.weight", "one", f"{name}.scale", "middle"]
        return self._node("Mul", [self._node("MatMulIntegerToFloat", inputs, _CONTRIB), scales])

    def _node(self, kind: str, inputs: list[str], domain: str = "", **attributes: Any) -> str:
        name = self._name()
        self._nodes.append(helper.make_node(kind, inputs, [name], domain=domain, **attributes))
        return name

    def _name(self) -> str:
        self._made += 1
        return f"value{self._made}"

    def _constant(self, name: str, kind: int, dims: list[int], values: list[float]) -> None:
        self._constants.append(helper.make_tensor(name, kind, dims, values))


def _weight(name: str, place: Place) -> TensorProto:
    """Return a weight that stands in a file beside the graph."""
    kind = helper.np_dtype_to_tensor_dtype(place.kind)
    tensor = TensorProto(name=name, data_type=kind, dims=place.dims)
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in {"location": WEIGHTS, "offset": place.offset, "length": place.size}.items():
        tensor.external_data.add(key=key, value=str(value))
    return tensor
