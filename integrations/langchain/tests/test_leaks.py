"""No character of a rejected answer reaches a client, however the client listens."""

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
    """The model searches and says something beside, is wrong, and then right."""
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


def listen(graph: Any, how: str, mode: Any, nested: bool) -> list[Any]:
    """All that a client gets."""
    given = {"messages": [("human", QUESTION)]}
    if how == "async" and "custom" in mode and not TASKS_HAVE_CONTEXT:
        pytest.skip("langgraph has no writer for tasks on this Python")
    options: dict[str, Any] = {"stream_mode": mode, "subgraphs": nested}
    if how == "sync":
        return list(graph.stream(given, THREAD, **options))

    async def collect() -> list[Any]:
        return [chunk async for chunk in graph.astream(given, THREAD, **options)]

    return asyncio.run(collect())


def leaked(heard: Any) -> set[str]:
    """The letters of the rejected answer in what a client got, however deep inside of it."""
    told = repr(heard)
    assert "\\u04" not in told  # no letter is written in another way
    return LETTERS & set(told)


@pytest.mark.parametrize("nested", [False, True], ids=["agent", "subgraph"])
@pytest.mark.parametrize("how", ["sync", "async"])
@pytest.mark.parametrize("mode", [*MODES, MODES], ids=[*MODES, "all"])
class TestStreamModes:
    def test_nothing_of_a_rejected_answer_is_streamed(
        self, server: OpenAIServer, retriever: BaseRetriever, mode: Any, how: str, nested: bool
    ) -> None:
        heard = listen(build(server, retriever, True, nested), how, mode, nested)
        assert not leaked(heard)
        assert RIGHT in repr(heard)

    def test_without_the_middleware_it_is(
        self, server: OpenAIServer, retriever: BaseRetriever, mode: Any, how: str, nested: bool
    ) -> None:
        heard = listen(build(server, retriever, False, nested), how, mode, nested)
        assert leaked(heard) == LETTERS


@pytest.mark.parametrize("guarded", [True, False])
async def test_events_without_the_tag_nostream(
    server: OpenAIServer, retriever: BaseRetriever, guarded: bool
) -> None:
    agent = build(server, retriever, guarded, nested=False)
    given = {"messages": [("human", QUESTION)]}
    events = agent.astream_events(given, THREAD, version="v2", exclude_tags=["nostream"])
    heard = [event async for event in events]
    assert leaked(heard) == (set() if guarded else LETTERS)
    assert guarded == (RIGHT in repr(heard))
    if guarded and TASKS_HAVE_CONTEXT:
        outcomes = [event["data"] for event in heard if event["name"] == "demur.outcome"]
        assert [one["outcome"] for one in outcomes] == ["recovered"]


@pytest.mark.parametrize("guarded", [True, False])
@pytest.mark.filterwarnings("ignore:The v3 streaming protocol")
def test_events_of_the_third_version(
    server: OpenAIServer, retriever: BaseRetriever, guarded: bool
) -> None:
    agent = build(server, retriever, guarded, nested=False)
    given = {"messages": [("human", QUESTION)]}
    heard = list(agent.stream_events(given, THREAD, version="v3"))
    assert leaked(heard) == (set() if guarded else LETTERS)
    assert guarded == (RIGHT in repr(heard))
