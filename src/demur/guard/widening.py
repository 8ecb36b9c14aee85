"""Have a chain's retriever find more documents when the chain answers again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import chain
from typing import Any
from uuid import uuid4

from langchain_core.callbacks import (
    AsyncCallbackManagerForRetrieverRun,
    CallbackManagerForRetrieverRun,
)
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable
from pydantic import Field

from demur.shapes import distinct

_DEFAULT_K = 4
"""The number of documents that LangChain's vector stores return by default."""


class Widening:
    """Hold the queries that the retrievers in one run of a guarded chain add to their own."""

    def __init__(self, queries: Mapping[str, Sequence[str]]) -> None:
        """Make the queries available, by the key of the retriever. The first run has none."""
        self._queries = queries
        self._outer = _widening.get()
        self.met: set[str] = set()
        """The keys of the widened retrievers that were asked, which could find more in another
        run."""

    def meet(self, key: str) -> tuple[str, ...]:
        """Note that a widened retriever was asked, and return the queries that it is to add."""
        self.met.add(key)
        return (*self._queries.get(key, ()), *(self._outer.meet(key) if self._outer else ()))


_widening: ContextVar[Widening | None] = ContextVar("demur_widening", default=None)


@contextmanager
def while_widening(widening: Widening) -> Iterator[None]:
    """Make the queries known to retrievers that run in the block, or in work that it starts."""
    token = _widening.set(widening)
    try:
        yield
    finally:
        _widening.reset(token)


def in_a_guarded_chain() -> bool:
    """Return whether this code runs in a guarded chain, so that another guard judges its result."""
    return _widening.get() is not None


def widen(retriever: Runnable[str, Any], *, factor: int = 2) -> BaseRetriever:
    """Have a chain's retriever find more when a guard has the chain answer again.

    The result does what `retriever` does in the first run of a guarded call, and outside of guarded
    calls. In a run that follows a `Retrieve` with this retriever, it also searches for each failed
    claim. In such a run it returns `factor` times as many documents for each query, if their number
    can be set. That is so for a retriever of a LangChain vector store, and for one with a field `k`
    or `top_k`. Concurrent calls do not affect each other.

    Examples:
        >>> wide = widen(retriever)
        >>> chain = {"context": wide, "question": RunnablePassthrough()} | prompt | model
        >>> Guard(chain, checker, on_fail={"neutral": Retrieve(wide), "any": Regenerate()})

    Args:
        retriever: A Runnable from a query to documents.
        factor: The factor for the number of documents, at least 1.

    Raises:
        ValueError: `factor` is below 1.
        TypeError: `retriever` is not a Runnable.
    """
    if not isinstance(retriever, Runnable):
        raise TypeError(
            f"widen expects a retriever, a Runnable from a query to documents, got "
            f"{type(retriever).__name__}"
        )
    if factor < 1:
        raise ValueError(f"factor must be at least 1, got {factor}")
    return Widened(retriever=retriever, factor=factor)


class Widened(BaseRetriever):
    """Find more documents in a run that follows a `Retrieve`, as `widen` describes."""

    retriever: Runnable[str, Any]
    factor: int = Field(ge=1)
    key: str = Field(default_factory=lambda: uuid4().hex, repr=False)
    """The key by which a `Retrieve` refers to this retriever and to its copies."""

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        retriever, queries = self._wider(query)
        results = retriever.batch(queries, {"callbacks": run_manager.get_child()})
        return results[0] if len(results) == 1 else list(distinct(chain(*results)))

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun
    ) -> list[Document]:
        retriever, queries = self._wider(query)
        results = await retriever.abatch(queries, {"callbacks": run_manager.get_child()})
        return results[0] if len(results) == 1 else list(distinct(chain(*results)))

    def _wider(self, query: str) -> tuple[Runnable[str, Any], list[str]]:
        """Return the retriever to ask, and the queries."""
        widening = _widening.get()
        queries = () if widening is None else widening.meet(self.key)
        if not queries:
            return self.retriever, [query]
        return _raised(self.retriever, self.factor), [*dict.fromkeys([query, *queries])]


def _raised(retriever: Runnable[str, Any], factor: int) -> Runnable[str, Any]:
    """Return a copy of a retriever that returns more, or the same one if that cannot be set."""
    if not isinstance(retriever, BaseRetriever):
        return retriever
    options = getattr(retriever, "search_kwargs", None)
    if isinstance(options, dict):
        raised = {**options, "k": factor * options.get("k", _DEFAULT_K)}
        if isinstance(options.get("fetch_k"), int):
            raised["fetch_k"] = max(options["fetch_k"], raised["k"])
        return retriever.model_copy(update={"search_kwargs": raised})
    for name in ("k", "top_k"):
        k = getattr(retriever, name, None)
        if isinstance(k, int):
            return retriever.model_copy(update={name: factor * k})
    return retriever
