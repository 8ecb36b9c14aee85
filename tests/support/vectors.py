"""Embed texts without a model, by the numbers at their start."""

from __future__ import annotations

from langchain_core.embeddings import Embeddings


class Told(Embeddings):
    """Embed "1 0 | why?" as [1, 0], and texts without numbers by their letters."""

    def __init__(self, fingerprint: str = "told") -> None:
        self.fingerprint = fingerprint
        self.texts: list[str] = []

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.texts += texts
        return [self._vector(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]

    def _vector(self, text: str) -> list[float]:
        numbers, bar, _ = text.partition("|")
        if bar:
            return [float(number) for number in numbers.split()]
        return [1.0 + text.count("a"), 1.0 + text.count("e")]
