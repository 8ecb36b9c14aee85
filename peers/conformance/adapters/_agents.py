"""Provide an agent and the ways to ask it, for the two adapters of LangChain's agents."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from typing import Any

from langchain.agents import AgentState, create_agent
from langchain_core.messages import AIMessage
from langchain_openai import ChatOpenAI


class Documents(AgentState[Any]):
    """Hold the retrieved documents beside the messages."""

    documents: list[str]


def ask(middleware: Any, url: str, **model: Any) -> dict[str, Any]:
    """Return what a client gets of an agent without tools, in each of LangChain's modes."""
    chain = ChatOpenAI(model="chain", base_url=url, api_key="none", **model)
    agent = create_agent(chain, middleware=[middleware], state_schema=Documents)

    def given(question: str, contexts: list[str]) -> dict[str, Any]:
        text = "\n".join([*contexts, "", question])
        return {"messages": [("human", text)], "documents": contexts}

    async def whole(*call: Any) -> AsyncIterator[str]:
        yield (await agent.ainvoke(given(*call)))["messages"][-1].text

    def stream(*call: Any) -> Iterator[str]:
        for message, _ in agent.stream(given(*call), stream_mode="messages"):
            yield from _said(message)

    async def astream(*call: Any) -> AsyncIterator[str]:
        async with aclosing(agent.astream(given(*call), stream_mode="messages")) as messages:
            async for message, _ in messages:
                for text in _said(message):
                    yield text

    async def updates(*call: Any) -> AsyncIterator[str]:
        async for update in agent.astream(given(*call), stream_mode="updates"):
            for text in _said(update):
                yield text

    async def events(*call: Any) -> AsyncIterator[str]:
        async for event in agent.astream_events(given(*call), version="v2"):
            for text in _said({**event["data"], "input": None}):
                yield text

    return {
        "whole": whole,
        "stream": stream,
        "astream": astream,
        "updates": updates,
        "events": events,
    }


def _said(thing: Any) -> Iterator[str]:
    """Yield the words of a model in what a client got."""
    if isinstance(thing, AIMessage):
        yield thing.text
    elif isinstance(thing, dict):
        for value in thing.values():
            yield from _said(value)
    elif isinstance(thing, (list, tuple)):
        for value in thing:
            yield from _said(value)
    elif hasattr(thing, "update"):  # a LangGraph Command
        yield from _said(thing.update)
