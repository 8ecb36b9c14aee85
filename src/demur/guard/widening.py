"""A retriever that finds more when the chain around it answers again."""

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
"""Of LangChain's vector stores."""


class Widening:
    """What retrievers in one run of a guarded chain are to search for besides."""

    def __init__(self, queries: Mapping[str, Sequence[str]]) -> None:
        """`queries` are by the retriever's key; there are none in the first run."""
        self._queries = queries
        self._outer = _widening.get()
        self.met: set[str] = set()
        """The keys of the widened retrievers that were asked, so that another run finds more."""

    def meet(self, key: str) -> tuple[str, ...]:
        """Take note of a widened retriever; what it is to search for besides."""
        self.met.add(key)
        return (*self._queries.get(key, ()), *(self._outer.meet(key) if self._outer else ()))


_widening: ContextVar[Widening | None] = ContextVar("demur_widening", default=None)


@contextmanager
def while_widening(widening: Widening) -> Iterator[None]:
    """Have retrievers that run in the block, and in what it sets off, know of it."""
    token = _widening.set(widening)
    try:
        yield
    finally:
        _widening.reset(token)


def in_a_guarded_chain() -> bool:
    """Whether this runs in a guarded chain, so that another guard judges what comes of it."""
    return _widening.get() is not None


def widen(retriever: Runnable[str, Any], *, factor: int = 2) -> BaseRetriever:
    """Have a chain's retriever find more when a guard has the chain answer again.

    In the first run of a guarded call, and outside of one, it does what `retriever` does. In the
    runs after a `Retrieve` of it, it is asked about each failed claim as well, and returns `factor`
    times as many documents for each query where it has a `k` that can be told: a LangChain vector
    store's retriever, or one with a field `k` or `top_k`. Calls at the same time know nothing of
    each other.

    Examples:
        >>> wide = widen(retriever)
        >>> chain = {"context": wide, "question": RunnablePassthrough()} | prompt | model
        >>> Guard(chain, checker, on_fail={"neutral": Retrieve(wide), "any": Regenerate()})

    Args:
        retriever: A Runnable from a query to documents.
        factor: By how much k is raised, at least 1.

    Raises:
        ValueError: `factor` is below 1.
        TypeError: `retriever` is no Runnable.
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
    """What `widen` returns."""

    retriever: Runnable[str, Any]
    factor: int = Field(ge=1)
    key: str = Field(default_factory=lambda: uuid4().hex, repr=False)
    """By which a `Retrieve` means it, and each copy of it."""

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
        """The retriever to ask, and what to ask it."""
        widening = _widening.get()
        queries = () if widening is None else widening.meet(self.key)
        if not queries:
            return self.retriever, [query]
        return _raised(self.retriever, self.factor), [*dict.fromkeys([query, *queries])]


def _raised(retriever: Runnable[str, Any], factor: int) -> Runnable[str, Any]:
    """A copy of a retriever that returns more, or the same one where nobody can tell it to."""
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
