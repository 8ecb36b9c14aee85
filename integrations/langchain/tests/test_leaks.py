"""Test that no character of a rejected answer reaches a client, however the client listens."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.retrievers import BaseRetriever
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import MessagesState, StateGraph

from agent_server import (
    LETTERS,
    REJECTED,
    TASKS_HAVE_CONTEXT,
    Echo,
    checker,
    make_agent,
    search,
    search_tool,
    serving,
)
from langchain_demur import HallucinationMiddleware
from support.openai_server import OpenAIServer, openai_server
from support.rag import QUESTION, RIGHT, make_retriever

MODES = ["values", "updates", "messages", "custom", "debug", "tasks", "checkpoints"]
THREAD: Any = {"configurable": {"thread_id": "1"}, "tags": ["production"]}


@pytest.fixture(scope="module")
def retriever() -> BaseRetriever:
    return make_retriever()


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    """Serve a model that searches with some text beside, is wrong, and then right."""
    with openai_server(serving(search(text=REJECTED), REJECTED, RIGHT)) as server:
        yield server


def build(server: OpenAIServer, retriever: BaseRetriever, guarded: bool, nested: bool) -> Any:
    checks = [HallucinationMiddleware(checker(server))] if guarded else []
    saver = InMemorySaver()
    tools = [search_tool(retriever)]
    agent = make_agent(server, tools, *checks, Echo(), checkpointer=None if nested else saver)
    if not nested:
        return agent
    graph = StateGraph(MessagesState)
    graph.add_node("agent", agent)
    graph.set_entry_point("agent")
    return graph.compile(checkpointer=saver)


def listen(graph: Any, how: str, nested: bool) -> list[Any]:
    """Return everything that a client gets in all modes."""
    given = {"messages": [("human", QUESTION)]}
    options: dict[str, Any] = {"stream_mode": MODES, "subgraphs": nested}
    if how == "sync":
        return list(graph.stream(given, THREAD, **options))
    if not TASKS_HAVE_CONTEXT:  # langgraph then has no writer for tasks.
        options["stream_mode"] = [mode for mode in MODES if mode != "custom"]

    async def collect() -> list[Any]:
        return [chunk async for chunk in graph.astream(given, THREAD, **options)]

    return asyncio.run(collect())


def leaked(heard: Any) -> set[str]:
    """Return the letters of the rejected answer that are anywhere in what a client got."""
    told = repr(heard)
    assert "\\u04" not in told  # No letter is written as an escape.
    return LETTERS & set(told)


@pytest.mark.slow
@pytest.mark.smoke
@pytest.mark.parametrize(
    ("how", "nested", "guarded"),
    [("sync", False, True), ("async", True, True), ("async", True, False)],
    ids=["guarded agent", "guarded agent in a graph", "bare agent in a graph"],
)
def test_a_rejected_answer_is_streamed_only_without_the_middleware(
    server: OpenAIServer, retriever: BaseRetriever, how: str, nested: bool, guarded: bool
) -> None:
    heard = listen(build(server, retriever, guarded, nested), how, nested)
    for mode in {chunk[-2] for chunk in heard}:  # Each chunk has its mode and its content.
        told = [chunk for chunk in heard if chunk[-2] == mode]
        assert leaked(told) == (set() if guarded else LETTERS), mode
        assert RIGHT in repr(told) or not guarded, mode
    assert len({chunk[-2] for chunk in heard}) >= len(MODES) - 1
