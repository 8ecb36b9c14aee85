"""Round the chat model, with demur's adapter in it, to weights of 8 bits for ONNX Runtime.

llama.cpp's file has about five bits for a weight, which every product has to unpack. Processors
multiply 8-bit integers several times as fast as they can do that. So the judge has a copy of the
weights: W + (alpha / rank) B A of LoRA (arXiv:2106.09685, section 4.1), each row rounded to
integers by a scale of its own. The graph that uses them is in `demur-judge`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from demur.local.cores import usable_cores

Array = NDArray[Any]

WEIGHTS = "weights.bin"
"""The file of the weights, as the graph names it."""
SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
"""The pattern by which Qwen's tokenizer splits a text before it looks for tokens."""


@dataclass(frozen=True)
class Place:
    """Say where an array stands in a file, and what it is."""

    offset: int
    kind: np.dtype[Any]
    dims: tuple[int, ...]

    @property
    def size(self) -> int:
        """Return the array's size in bytes."""
        return self.kind.itemsize * math.prod(self.dims)


_ALIGNED = 4096
"""Arrays begin at multiples of this, so that the file can be mapped into memory."""


@dataclass(frozen=True)
class Shape:
    """Hold the sizes of a model of Qwen's second generation."""

    layers: int
    width: int
    heads: int
    key_heads: int
    """The number of heads of keys and values, which groups of the other heads share."""
    head_width: int
    feed_width: int
    labels: tuple[int, ...]
    """The tokens with which a reply may begin, of which the probabilities are wanted."""
    positions: int = 8192
    """The most tokens that are read together."""
    base: float = 1e6
    """The base of the angles by which positions are told apart."""
    epsilon: float = 1e-6

    def products(self) -> dict[str, tuple[int, int]]:
        """Return the sizes (inputs, outputs) of a layer's products with weights, by name."""
        all_heads = self.heads * self.head_width
        return {
            "attention": (self.width, all_heads + 2 * self.key_heads * self.head_width),
            "output": (all_heads, self.width),
            "gate": (self.width, self.feed_width),
            "up": (self.width, self.feed_width),
            "down": (self.feed_width, self.width),
        }

    def layout(self) -> dict[str, Place]:
        """Return where each array that the graph needs stands in the file of the weights."""
        places: dict[str, Place] = {}
        offset = 0
        for name, dims in self._arrays().items():
            kind = np.dtype(np.int8 if name.endswith(".weight") else np.float32)
            places[name] = place = Place(offset, kind, dims)
            offset += -(-place.size // _ALIGNED) * _ALIGNED
        return places

    def _arrays(self) -> dict[str, tuple[int, ...]]:
        found: dict[str, tuple[int, ...]] = {
            "norm": (self.width,),
            "labels": (self.width, len(self.labels)),
            "cosines": (self.positions, self.head_width // 2),
            "sines": (self.positions, self.head_width // 2),
        }
        for layer in range(self.layers):
            for name, (inputs, outputs) in self.products().items():
                found[f"{layer}.{name}.weight"] = inputs, outputs
                found[f"{layer}.{name}.scale"] = (outputs,)
            found[f"{layer}.bias"] = (self.products()["attention"][1],)
            found[f"{layer}.attention.norm"] = found[f"{layer}.feed.norm"] = (self.width,)
        return found

    def cached(self) -> list[str]:
        """Return the names of what is kept of the tokens that were read, layer by layer."""
        return [f"{layer}.{of}" for layer in range(self.layers) for of in ("key", "value")]


QWEN_SHAPE = Shape(
    layers=28,
    width=1536,
    heads=12,
    key_heads=2,
    head_width=128,
    feed_width=8960,
    labels=(2250, 41437, 86907),  # Ent, Contr, Neutral
)
"""The sizes of Qwen2.5-Coder-1.5B, and the tokens with which demur's adapter replies."""


class Gguf:
    """Read the arrays of a GGUF file, as float32.

    Raises:
        ValueError: The file is no GGUF, or lacks an array that is asked for.
    """

    def __init__(self, path: Path) -> None:
        self._reader = _reader(path)
        self._tensors = {tensor.name: tensor for tensor in self._reader.tensors}
        self._path = path

    def __contains__(self, name: str) -> bool:
        return name in self._tensors

    def raw(self, name: str) -> tuple[Array, int]:
        """Return an array as it is stored, row by row, and the number of its kind of storage."""
        if name not in self._tensors:
            raise ValueError(f"{self._path} has no {name!r}: it is not the model that was expected")
        tensor = self._tensors[name]
        return tensor.data, int(tensor.tensor_type)

    def array(self, name: str, rows: slice | list[int] = slice(None)) -> Array:
        """Return an array, or some of its rows."""
        stored, kind = self.raw(name)
        if isinstance(rows, list) and max(rows) >= len(stored):
            raise ValueError(f"{self._path} has {len(stored)} rows of {name!r}, expected more")
        return unpacked(stored[rows], kind)

    def field(self, name: str) -> Any:
        """Return what the file says about itself under this name."""
        field = self._reader.get_field(name)
        if field is None:
            raise ValueError(f"{self._path} has no {name!r}: it is not the model that was expected")
        return field.contents()


def _reader(path: Path) -> Any:
    from gguf import GGUFReader

    class Reader(GGUFReader):
        """Read a file in a third of the time: each slice of a `memmap` takes long."""

        @property
        def data(self) -> Any:
            return self._data

        @data.setter
        def data(self, mapped: Any) -> None:
            self._data = np.asarray(mapped)

    return Reader(path)


_TOGETHER = 16
"""The number of rows that are unpacked as one. More at once take less time for each."""


def unpacked(stored: Array, kind: int) -> Array:
    """Return stored rows as float32."""
    from gguf import GGMLQuantizationType
    from gguf.quants import dequantize

    rows = stored
    if stored.ndim > 1 and len(stored) % _TOGETHER == 0:
        rows = stored.reshape(len(stored) // _TOGETHER, -1)
    found: Array = np.asarray(dequantize(rows, GGMLQuantizationType(kind)), np.float32)
    return found.reshape(len(stored), -1) if stored.ndim > 1 else found


def write_weights(base: Gguf, adapter: Gguf, shape: Shape, bits: int, path: Path) -> None:
    """Write the base model with the adapter in it, each array at its place in `shape.layout()`.

    Args:
        base: The chat model.
        adapter: The LoRA adapter, whose `lora_a` and `lora_b` are A and B.
        shape: The sizes of both.
        bits: The bits of a weight, 7 or 8. With 8, a processor that adds pairs of products in 16
            bits (x86 without VNNI) overflows.
        path: The file.

    Raises:
        ValueError: An array is missing, or has another shape.
    """
    places, alpha = shape.layout(), float(adapter.field("adapter.lora.alpha"))
    with path.open("wb") as file, ThreadPoolExecutor(usable_cores()) as pool:
        layers = pool.map(partial(_layer, base, adapter, alpha, bits), range(shape.layers))
        for arrays in chain([_outside(base, shape)], layers):
            for name, array in arrays.items():
                place = places.pop(name)
                if array.shape != place.dims:
                    raise ValueError(
                        f"{name!r} has the shape {array.shape}, expected {place.dims}: the files "
                        "are not those of the model that was expected"
                    )
                file.seek(place.offset)
                file.write(np.ascontiguousarray(array, place.kind).data)
    assert not places


def _outside(base: Gguf, shape: Shape) -> dict[str, Array]:
    """Return the arrays that no layer has."""
    words = "output.weight" if "output.weight" in base else "token_embd.weight"
    turns = shape.base ** (-np.arange(0, shape.head_width, 2) / shape.head_width)
    angles = np.outer(np.arange(shape.positions), turns)
    return {
        "norm": base.array("output_norm.weight"),
        "labels": base.array(words, [*shape.labels]).T,
        "cosines": np.cos(angles),
        "sines": np.sin(angles),
    }


_PARTS = {
    "attention": ("attn_q", "attn_k", "attn_v"),
    "output": ("attn_output",),
    "gate": ("ffn_gate",),
    "up": ("ffn_up",),
    "down": ("ffn_down",),
}
"""The arrays of llama.cpp that make up each product."""


def _layer(base: Gguf, adapter: Gguf, alpha: float, bits: int, layer: int) -> dict[str, Array]:
    """Return the arrays of one layer."""

    def adapted(part: str) -> Array:
        name = f"blk.{layer}.{part}.weight"
        plain = base.array(name)
        if f"{name}.lora_a" not in adapter:
            return plain
        down, up = adapter.array(f"{name}.lora_a"), adapter.array(f"{name}.lora_b")
        correction = up @ down
        correction *= alpha / len(down)
        correction += plain
        return correction

    found: dict[str, Array] = {
        f"{layer}.attention.norm": base.array(f"blk.{layer}.attn_norm.weight"),
        f"{layer}.feed.norm": base.array(f"blk.{layer}.ffn_norm.weight"),
        f"{layer}.bias": np.concatenate(
            [base.array(f"blk.{layer}.{part}.bias") for part in _PARTS["attention"]]
        ),
    }
    for name, parts in _PARTS.items():
        rounded, scale = _rounded(np.concatenate([adapted(part) for part in parts]), bits)
        found[f"{layer}.{name}.weight"] = _turned(rounded)
        found[f"{layer}.{name}.scale"] = scale
    return found


def _rounded(rows: Array, bits: int) -> tuple[Array, Array]:
    """Return rows of weights as integers, and the scale of each row. The rows are overwritten."""
    most = 2 ** (bits - 1) - 1
    scale = np.maximum(rows.max(axis=1), -rows.min(axis=1)) / most
    scale[scale == 0] = 1
    rows /= scale[:, np.newaxis]
    return np.rint(rows, out=rows).astype(np.int8), scale


_BLOCK = 128
"""The number of rows that are turned at once, which fit into a processor's cache."""


def _turned(rows: Array) -> Array:
    """Return rows as columns."""
    found = np.empty(rows.shape[::-1], rows.dtype)
    for start in range(0, len(rows), _BLOCK):
        found[:, start : start + _BLOCK] = rows[start : start + _BLOCK].T
    return found


def tokenizer(base: Gguf) -> Any:
    """Return the tokenizer of the chat model, of the library `tokenizers`.

    It finds no special token in a text, whatever the text says: the caller sets these by their ids.
    """
    from tokenizers import Regex, Tokenizer, models, pre_tokenizers

    vocabulary = {token: at for at, token in enumerate(base.field("tokenizer.ggml.tokens"))}
    made = Tokenizer(models.BPE(vocabulary, [*_pairs(base.field("tokenizer.ggml.merges"))]))
    bytes_of = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    split = pre_tokenizers.Split(Regex(SPLIT), "isolated")
    made.pre_tokenizer = pre_tokenizers.Sequence([split, bytes_of])
    return made


def _pairs(merges: list[str]) -> Iterator[tuple[str, str]]:
    for merge in merges:
        first, _, second = merge.partition(" ")
        yield first, second
