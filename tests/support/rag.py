"""Provide a small RAG application over a real Chroma and a real HTTP endpoint."""

from __future__ import annotations

import re
import uuid
import zlib
from collections.abc import Callable
from typing import Any

import chromadb
from langchain_chroma import Chroma
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.retrievers import BaseRetriever

FACTS = (
    "The Amber Tower in Lund is 84 metres tall.",
    "The Amber Tower was opened in 1911 by the harbour office.",
    "From the foot of the Amber Tower 302 steps lead to the top.",
    "The ferry to the northern islands sails at noon.",
)
QUESTION = "How tall is the Amber Tower in Lund?"
REPHRASE = "What would you search for?"
"""The prompt with which a chain with a history asks for a query before it searches."""
RIGHT = "The Amber Tower is 84 metres tall."
WRONG = "The Amber Tower is 97 metres tall."


class WordEmbeddings(Embeddings):
    """Embed texts by their words, so that a search finds shared words and is repeatable."""

    def embed_query(self, text: str) -> list[float]:
        vector = [0.0] * 256
        for word in re.findall(r"\w+", text.lower()):
            vector[zlib.crc32(word.encode()) % 256] += 1.0
        return vector

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]


def make_retriever(k: int = 2) -> BaseRetriever:
    """Return a retriever over `FACTS` in a new collection, because clients share their state."""
    store = Chroma(
        client=chromadb.EphemeralClient(),
        collection_name=f"facts-{uuid.uuid4().hex}",
        embedding_function=WordEmbeddings(),
    )
    store.add_documents([Document(fact, metadata={"number": at}) for at, fact in enumerate(FACTS)])
    return store.as_retriever(search_kwargs={"k": k})


def application(*answers: str) -> Callable[[dict[str, Any], int], str]:
    """Return the script of the endpoint, which serves the chain and the checker.

    The chain gets the answers in order, the last one again and again. For the checker, a claim is
    entailed if its number is in the reference.
    """
    coming = list(answers)

    def script(request: dict[str, Any], number: int) -> str:
        prompt = request["messages"][-1]["content"]
        if prompt == REPHRASE:
            return QUESTION
        if "<claims-" in prompt:
            reference = _tagged("reference", prompt)
            lines = _tagged("claims", prompt).splitlines()
            return "\n".join(_label(line, reference) for line in lines)
        if "<problems-" in prompt or "<answer-" not in prompt:
            return coming.pop(0) if len(coming) > 1 else coming[0]
        numbers = re.findall(r"\d+", _tagged("answer", prompt))
        return (
            "\n".join(f'("Amber Tower", "is tall in metres", "{n}")' for n in numbers)
            or "No claims"
        )

    return script


def _label(line: str, reference: str) -> str:
    at, claim = line.split(". ", 1)
    holds = set(re.findall(r"\d+", claim)) <= set(re.findall(r"\d+", reference))
    return f"{at}. {'Entailment' if holds else 'Contradiction'}"


def _tagged(tag: str, prompt: str) -> str:
    return re.findall(rf"<({tag}-\w+)>\n(.*?)\n</\1>", prompt, re.DOTALL)[-1][1]
