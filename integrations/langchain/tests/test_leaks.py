"""Test that no character of a rejected answer reaches a client, however the client listens."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from langchain_core.retrievers import BaseRetriever
from langgraph.checkpoint.memory import InMemorySaver

from agent_server import (
    LETTERS,
    REJECTED,
    Echo,
    checker,
    make_agent,
    search,
    search_tool,
    serving,
)
from langchain_demur import HallucinationMiddleware
from support.openai_server import OpenAIServer, openai_server
from support.rag import RIGHT, make_retriever
from test_listeners import MODES, Listen, astream, leaked, one_node, stream


@pytest.fixture(scope="module")
def retriever() -> BaseRetriever:
    return make_retriever()


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    """Serve a model that searches with some text beside, is wrong, and then right."""
    with openai_server(serving(search(text=REJECTED), REJECTED, RIGHT)) as server:
        yield server


@pytest.mark.slow
@pytest.mark.smoke
@pytest.mark.parametrize(
    ("listen", "nested", "guarded"),
    [(stream, False, True), (astream, True, True), (astream, True, False)],
    ids=["guarded agent", "guarded agent in a graph", "bare agent in a graph"],
)
def test_a_rejected_answer_is_streamed_only_without_the_middleware(
    server: OpenAIServer, retriever: BaseRetriever, listen: Listen, nested: bool, guarded: bool
) -> None:
    checks = [HallucinationMiddleware(checker(server))] if guarded else []
    saver = None if nested else InMemorySaver()
    graph = make_agent(server, [search_tool(retriever)], *checks, Echo(), checkpointer=saver)
    heard = [*listen(one_node(graph) if nested else graph)]
    modes = {mode for _, mode, _ in heard}
    for mode in modes:
        told = [repr(chunk) for chunk in heard if chunk[1] == mode]
        assert leaked(told) == (set() if guarded else LETTERS), mode
        assert RIGHT in "".join(told) or not guarded, mode
    assert modes == {*MODES}
