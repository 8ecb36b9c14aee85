"""Provide the models of a workload, which count what they are asked for."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import tiktoken
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import Field

from demur.similarity import NLI
from support import facts  # the tests' modules, which belong to no package
from support.fakes import Script, stage_of
from support.vectors import Told

_ENCODING = "o200k_base"


@dataclass
class Counts:
    """Hold what a run asked for, and what it allocated."""

    calls: int = 0
    """The number of requests to chat models."""
    prompt: int = 0
    """The number of tokens in the messages of these requests, by tiktoken's o200k_base."""
    reply: int = 0
    """The number of tokens in the replies."""
    pairs: int = 0
    """The number of pairs of texts that a similarity or a cross-encoder scored."""
    texts: int = 0
    """The number of texts that were embedded."""
    allocated: int = 0
    """The memory that lines of demur allocate, in kB; see `measuring`."""


class Seen:
    """Make the models of one run, and count everything that they are asked."""

    def __init__(self) -> None:
        self.counts = Counts()
        self._lock = threading.Lock()  # models are called from several threads

    def add(self, **numbers: int) -> None:
        """Add to the counts of these names."""
        with self._lock:
            for name, number in numbers.items():
                setattr(self.counts, name, getattr(self.counts, name) + number)

    def model(self, script: Script = facts.judge) -> BaseChatModel:
        """Return a chat model that replies by its script, by default as a perfect judge."""
        return _Model(script=script, add=self.add)

    def similarity(self) -> Callable[[Sequence[tuple[str, str]]], list[float]]:
        """Return a function that scores pairs."""

        def alike(pairs: Sequence[tuple[str, str]]) -> list[float]:
            self.add(pairs=len(pairs))
            return facts.alike(pairs)

        return alike

    def embeddings(self) -> Embeddings:
        """Return an embedding model whose vectors are made of a text's letters."""
        return _Vectors(self.add)

    def encoder(self) -> Any:
        """Return a cross-encoder for NLI that supports true claims and no others."""
        return _Encoder(self.add)

    def nli(self) -> NLI:
        """Return the same cross-encoder in the form that `SelfCheck` takes."""
        return NLI(self.encoder())


Add = Callable[..., None]


class _Model(BaseChatModel):
    """Reply by a script, without keeping the requests."""

    script: Script = Field(exclude=True)
    add: Add = Field(exclude=True)

    @property
    def _llm_type(self) -> str:
        return "counted"

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: Any = None,
        **kwargs: Any,
    ) -> ChatResult:
        said = self.script(stage_of(messages), messages)
        reply = AIMessage(said) if isinstance(said, str) else said
        self.add(calls=1, prompt=sum(map(_tokens, messages)), reply=_tokens(reply))
        return ChatResult(generations=[ChatGeneration(message=reply)])

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: Any = None,
        **kwargs: Any,
    ) -> ChatResult:
        return self._generate(messages)


class _Vectors(Told):
    def __init__(self, add: Add) -> None:
        super().__init__("counted")
        self._add = add

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self._add(texts=len(texts))
        return [self._vector(text) for text in texts]


class _Encoder:
    fingerprint = "counted"

    def __init__(self, add: Add) -> None:
        self._add = add
        labels = {0: "contradiction", 1: "entailment", 2: "neutral"}
        self.model = SimpleNamespace(config=SimpleNamespace(id2label=labels))

    def predict(self, pairs: Sequence[tuple[str, str]], **options: Any) -> list[list[float]]:
        self._add(pairs=len(pairs))
        held = (facts.alike([(hypothesis, hypothesis)])[0] > 0.6 for _, hypothesis in pairs)
        return [[0.02, 0.96, 0.02] if each else [0.1, 0.1, 0.8] for each in held]


def _tokens(message: BaseMessage) -> int:
    return len(_encoding().encode(str(message.text), disallowed_special=()))


@cache
def _encoding() -> tiktoken.Encoding:
    """Return the encoding from the table in LlamaIndex, because tiktoken would download its own.

    Raises:
        SystemExit: LlamaIndex is not installed.
    """
    llama_index = find_spec("llama_index.core")
    if llama_index is None or llama_index.origin is None:
        raise SystemExit(
            "tokens are counted with a table of llama-index-core, which is not installed: "
            "install requirements/dev.txt (make env-dev)"
        )
    tables = Path(llama_index.origin).parent / "_static" / "tiktoken_cache"
    os.environ["TIKTOKEN_CACHE_DIR"] = str(tables)
    return tiktoken.get_encoding(_ENCODING)
