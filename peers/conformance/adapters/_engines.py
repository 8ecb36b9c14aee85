"""Provide a query engine and what a client gets of it, for the two adapters of LlamaIndex."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from typing import Any

from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

_DOCUMENTS: dict[str, list[str]] = {}
"""What an index would find for a question, by the question."""


class _Index(BaseRetriever):
    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        # The query of a later attempt quotes the question.
        found = next(texts for q, texts in _DOCUMENTS.items() if q in query_bundle.query_str)
        return [NodeWithScore(node=TextNode(text=text), score=1.0) for text in found]


def engine(llm: Any, streaming: bool) -> RetrieverQueryEngine:
    """Return a query engine over the documents of each call."""
    return RetrieverQueryEngine.from_args(_Index(), llm=llm, streaming=streaming)


def ask(whole: BaseQueryEngine, streamed: BaseQueryEngine) -> dict[str, Any]:
    """Return what a client gets of an engine, and of one that streams, in threads."""

    def query(question: str, contexts: list[str]) -> Iterator[str]:
        _DOCUMENTS[question] = contexts
        yield str(whole.query(question))

    def stream(question: str, contexts: list[str]) -> Iterator[str]:
        _DOCUMENTS[question] = contexts
        response: Any = streamed.query(question)
        # As in `print_response_stream`: a stream that was read already is not read again.
        read = getattr(response, "response_txt", None)
        if read is None and hasattr(response, "response_gen"):
            yield from response.response_gen
        else:
            yield str(response) if read is None else read

    return {"whole": query, "stream": stream}


def aask(whole: BaseQueryEngine, streamed: BaseQueryEngine) -> dict[str, Any]:
    """Do the same as `ask`, with the asynchronous ways too."""

    async def aquery(question: str, contexts: list[str]) -> AsyncIterator[str]:
        _DOCUMENTS[question] = contexts
        yield str(await whole.aquery(question))

    async def astream(question: str, contexts: list[str]) -> AsyncIterator[str]:
        _DOCUMENTS[question] = contexts
        response: Any = await streamed.aquery(question)
        async with aclosing(response.async_response_gen()) as pieces:
            async for piece in pieces:
                yield piece

    return {**ask(whole, streamed), "whole": aquery, "astream": astream}
