"""Read prompts with the judge: a language model of 8 bits on ONNX Runtime.

llama.cpp writes the answers, and could judge with the adapter, too; but its wheels are built for
old processors, and this is several times as quick (docs/performance.md).
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from demur._system import lock
from demur.local.eight_bits import Array, Shape, unpacked
from demur.local.sessions import delaying_exit, loaded

MODEL, TOKENIZER, EMBEDDINGS = "judge.onnx", "tokenizer.json", "embeddings.npy"
"""The files of a judge. The last one has the tokens' vectors, as the chat model's file stores them.
"""
MADE = "made.json"
"""The file that says what was made, written last."""
_AT_ONCE = 512
"""The most tokens of a run. More would need more memory, and save no time."""
_KEPT = 4096
"""The most tokens of which keys and values are kept, for prompts that begin alike: 0.23 GB."""
_BEGIN, _END = "<|im_start|>", "<|im_end|>"


@dataclass(frozen=True)
class Judged:
    """Hold what a judge replies to a prompt."""

    logprobs: dict[str, float]
    """The log-probability of each token with which a reply may begin, among these tokens."""
    tokens: int
    """The number of the prompt's tokens."""
    cached: int
    """How many of them were not read, because an earlier prompt began with the same."""


class Decoder:
    """Judge by a model that reads a prompt, and replies with one of a few tokens.

    You can use it from several threads, which take turns: each prompt uses all cores. A reply does
    not depend on what was read before.
    """

    def __init__(self, folder: Path, shape: Shape) -> None:
        self._folder, self._shape = folder, shape
        self._turn = lock()
        self._read: list[tuple[list[int], list[Array]]] = []
        """The prompts that were read, the last one first: their tokens, keys and values."""

    def judge(self, messages: Sequence[tuple[str, str]]) -> Judged:
        """Return the reply to messages, each a role and a text.

        Raises:
            ValueError: There are more tokens than the model can read.
            LocalModelError: The files cannot be loaded.
        """
        encoder, session = loaded(self._folder / TOKENIZER, self._folder / MODEL, at_once=1)
        ids = _prompt(encoder, messages)
        if len(ids) > self._shape.positions:
            raise ValueError(
                f"the prompt has {len(ids)} tokens, and the judge reads at most "
                f"{self._shape.positions}: split the texts, or choose smaller windows"
            )
        with self._turn:
            past, cached = self._begun(ids)
            for start in range(cached, len(ids), _AT_ONCE):
                logits, past = self._run(session, ids[start : start + _AT_ONCE], past)
            self._keep(ids, past)
        shifted = logits[0].astype(float) - logits[0].max()
        logprobs = shifted - math.log(np.exp(shifted).sum())
        tokens = map(encoder.id_to_token, self._shape.labels)
        return Judged(dict(zip(tokens, logprobs.tolist(), strict=True)), len(ids), cached)

    def _begun(self, ids: Sequence[int]) -> tuple[list[Array], int]:
        """Return keys and values of the beginning that was read before, and its length."""
        shape = self._shape
        nothing = np.zeros((1, shape.key_heads, 0, shape.head_width), np.float32)
        shared, past = max(
            ((_shared(ids, read), past) for read, past in self._read),
            key=lambda one: one[0],
            default=(0, [nothing] * len(shape.cached())),
        )
        return [np.ascontiguousarray(one[:, :, :shared]) for one in past], shared

    def _keep(self, ids: list[int], past: list[Array]) -> None:
        """Keep what was read, in place of prompts that are mostly its beginning."""
        others = [one for one in self._read if 2 * _shared(ids, one[0]) <= len(one[0])]
        self._read = [(ids, past), *others]
        while len(self._read) > 1 and sum(len(read) for read, _ in self._read) > _KEPT:
            self._read.pop()

    def _run(
        self, session: Any, ids: Sequence[int], past: Sequence[Array]
    ) -> tuple[Array, list[Array]]:
        """Return the logits of the last token, and keys and values of all tokens until then."""
        new, before = len(ids), past[0].shape[2]
        inputs = {
            "embeddings": self._vectors(ids),
            "rows": np.array([new], np.int64),
            "last": np.array([new - 1], np.int64),
            "seqlens": np.array([before + new - 1], np.int32),
            "total": np.array(before + new, np.int32),
        }
        inputs |= {
            f"past.{name}": one for name, one in zip(self._shape.cached(), past, strict=True)
        }
        logits, *present = session.run(None, inputs)
        return logits, present

    def _vectors(self, ids: Sequence[int]) -> Array:
        rows, kind = self._embeddings
        different, places = np.unique(ids, return_inverse=True)
        found: Array = unpacked(rows[different], kind)[places]
        return found

    @cached_property
    def _embeddings(self) -> tuple[Array, int]:
        """Return the vectors of all tokens, mapped from the file, and their kind of storage."""
        kind = json.loads((self._folder / MADE).read_text())["kind"]
        return np.load(self._folder / EMBEDDINGS, mmap_mode="r"), kind


def _shared(ids: Sequence[int], read: Sequence[int]) -> int:
    """Return how many tokens two prompts share at their beginning, without the last of `ids`."""
    length = 0
    for one, other in zip(ids[:-1], read, strict=False):
        if one != other:
            break
        length += 1
    return length


def _prompt(encoder: Any, messages: Sequence[tuple[str, str]]) -> list[int]:
    """Return the tokens of messages in Qwen's chat template, up to where the reply begins.

    A text that spells a token of the template stays text: the tokenizer does not know it as one.
    """
    begin, end = encoder.token_to_id(_BEGIN), encoder.token_to_id(_END)
    texts = [f"{role}\n{text}" for role, text in messages]
    encoded = delaying_exit(encoder.encode_batch, [*texts, "assistant\n", "\n"])
    *told, reply, line = [one.ids for one in encoded]
    found: list[int] = []
    for ids in told:
        found += [begin, *ids, end, *line]
    return [*found, begin, *reply]
