"""Compute sentence embeddings in this process without torch, by MiniLM on ONNX Runtime."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from langchain_core.embeddings import Embeddings
from numpy.typing import NDArray

from demur._text import replace_surrogates
from demur.local.sessions import delaying_exit, loaded, need_packages
from demur.local.weights import MINILM, MINILM_TOKENIZER, find_fetched

_TOKENIZED_AT_ONCE = 512
_LONGEST = 256
"""The most tokens of a text that the model reads, as its authors set it."""


@dataclass(frozen=True)
class MiniLM(Embeddings):
    """Embed texts with all-MiniLM-L6-v2, as vectors of 384 numbers that have length 1.

    The model reads the first 256 tokens of each text. Creating a `MiniLM` looks for the model's
    files. The first text loads them, once in each process. You can use it from several threads.

    Raises:
        MissingExtraError: ONNX Runtime or tokenizers is not installed.
        LocalModelError: The files are missing, or their sha256 is not the expected one.
        ValueError: `batch_size` is not positive.
    """

    batch_size: int = 32
    """The number of texts that are computed together; at least 1."""

    @property
    def fingerprint(self) -> str:
        """Return what identifies the model: its name and the sha256 of its weights."""
        return f"MiniLM {MINILM.sha256}"

    def __post_init__(self) -> None:
        if self.batch_size < 1:
            raise ValueError(f"batch_size must be at least 1, got {self.batch_size}")
        need_packages("chroma", "computing sentence embeddings")
        _files()

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return the vector of each text, in order."""
        tokenizer, session = loaded(*_files(), _LONGEST)
        whole = [replace_surrogates(text) for text in texts]
        encodings = [
            encoding
            for start in range(0, len(whole), _TOKENIZED_AT_ONCE)
            for encoding in delaying_exit(
                tokenizer.encode_batch, whole[start : start + _TOKENIZED_AT_ONCE]
            )
        ]
        # Texts of similar length are computed together, so that little time is lost on padding.
        order = sorted(range(len(texts)), key=lambda at: len(encodings[at].ids))
        vectors: dict[int, list[float]] = {}
        for start in range(0, len(order), self.batch_size):
            batch = order[start : start + self.batch_size]
            found = _embed(session, [encodings[at].ids for at in batch])
            vectors.update(zip(batch, found.tolist(), strict=True))
        return [vectors[at] for at in range(len(texts))]

    def embed_query(self, text: str) -> list[float]:
        """Return the vector of a text."""
        return self.embed_documents([text])[0]


def _embed(session: Any, tokens: Sequence[Sequence[int]]) -> NDArray[np.float32]:
    """Return the vectors of texts, padded to the longest one."""
    shape = len(tokens), max(map(len, tokens))
    ids, mask = np.zeros(shape, np.int64), np.zeros(shape, np.int64)  # the padding's id is 0
    for at, one in enumerate(tokens):
        ids[at, : len(one)], mask[at, : len(one)] = one, 1
    inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
    (states,) = delaying_exit(session.run, None, inputs)
    return mean_direction(states, mask)


def mean_direction(states: NDArray[np.float32], mask: NDArray[np.int64]) -> NDArray[np.float32]:
    """Return the mean of each text's token states, without padding, scaled to length 1."""
    weights = mask[..., np.newaxis].astype(np.float32)
    means = (states * weights).sum(axis=1) / weights.sum(axis=1)
    scaled: NDArray[np.float32] = means / np.linalg.norm(means, axis=1, keepdims=True)
    return scaled


def _files() -> tuple[Path, Path]:
    return find_fetched(MINILM_TOKENIZER), find_fetched(MINILM)
