"""Read prompts with the judge: a language model of 8 bits on ONNX Runtime.

llama.cpp writes the answers, and could judge with the adapter, too; but its wheels are built for
old processors, and this is several times as quick (docs/performance.md).
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from demur._system import Recent, lock
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
"""The most tokens of which keys and values are kept: 0.23 GB."""
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


def first_token(logprobs: Mapping[str, float]) -> dict[str, Any]:
    """Return the likeliest of some tokens, and all of them, as OpenAI's protocol tells them."""
    likely = [{"token": token, "logprob": value} for token, value in logprobs.items()]
    return {**max(likely, key=itemgetter("logprob")), "top_logprobs": likely}


class Decoder:
    """Judge by a model that reads a prompt, and replies with one of a few tokens.

    You can use it from several threads, which take turns: each prompt uses all cores. What the last
    prompts had before their last paragraph, such as references, is not read again. It is always
    read by itself, so that a reply depends on nothing but its prompt, to the last digit.
    """

    def __init__(self, folder: Path, shape: Shape) -> None:
        self._folder, self._shape = folder, shape
        self._turn = lock()
        self._heads: Recent[list[Array]] = Recent(_KEPT)
        """Keys and values of beginnings of prompts."""

    def judge(self, messages: Sequence[tuple[str, str]]) -> Judged:
        """Return the reply to messages, each a role and a text.

        Raises:
            ValueError: There are more tokens than the model can read.
            LocalModelError: The files cannot be loaded.
        """
        encoder, session = loaded(self._folder / TOKENIZER, self._folder / MODEL, at_once=1)
        head, rest = _prompt(encoder, messages)
        tokens = len(head) + len(rest)
        if tokens > self._shape.positions:
            raise ValueError(
                f"the prompt has {tokens} tokens, and the judge reads at most "
                f"{self._shape.positions}: split the texts, or choose smaller windows"
            )
        key = repr(head)
        with self._turn:
            known = self._heads.get([key]).get(key)
            past = known or self._read(session, head, self._nothing)[1]
            self._heads.put(key, past, len(head))
            logits, _ = self._read(session, rest, past)
        shifted = logits[0].astype(float) - logits[0].max()
        logprobs = shifted - math.log(np.exp(shifted).sum())
        labels = map(encoder.id_to_token, self._shape.labels)
        cached = len(head) if known else 0
        return Judged(dict(zip(labels, logprobs.tolist(), strict=True)), tokens, cached)

    @property
    def _nothing(self) -> list[Array]:
        """Return keys and values of no token."""
        shape = 1, self._shape.key_heads, 0, self._shape.head_width
        return [np.zeros(shape, np.float32)] * len(self._shape.cached())

    def _read(
        self, session: Any, ids: Sequence[int], past: list[Array]
    ) -> tuple[Array, list[Array]]:
        """Return the logits of the last token, and keys and values of all tokens until then."""
        logits = np.empty((0, 0), np.float32)
        for start in range(0, len(ids), _AT_ONCE):
            logits, past = self._run(session, ids[start : start + _AT_ONCE], past)
        return logits, past

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


def _prompt(encoder: Any, messages: Sequence[tuple[str, str]]) -> tuple[list[int], list[int]]:
    """Return the tokens of messages in Qwen's chat template, up to where the reply begins.

    A text that spells a token of the template stays text: the tokenizer does not know it as one.

    Returns:
        The tokens before the last paragraph, and the others.
    """
    begin, end = encoder.token_to_id(_BEGIN), encoder.token_to_id(_END)
    texts = [f"{role}\n{text}" for role, text in messages]
    *told, reply, line = delaying_exit(encoder.encode_batch, [*texts, "assistant\n", "\n"])
    ids: list[int] = []
    before = 0
    for text, encoding in zip(texts, told, strict=True):
        paragraph = text.rfind("\n\n") + 2
        before = len(ids) + 1 + sum(start < paragraph for start, _ in encoding.offsets)
        ids += [begin, *encoding.ids, end, *line.ids]
    ids += [begin, *reply.ids]
    return ids[:before], ids[before:]
