"""Test score callback handlers on agents, with the middleware and without it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langchain_core.messages import HumanMessage

from agent_server import checker, make_agent, search, search_tool, serving, small_search
from demur import ScoreCallbackHandler
from demur.observe import Record
from langchain_demur import HallucinationMiddleware
from support.openai_server import openai_server
from support.rag import FACTS, QUESTION, RIGHT, WRONG, make_retriever

ASKED: Any = {"messages": [HumanMessage(QUESTION)]}


def records_of(mode: str, agent: Any, *evaluators: Any) -> list[Record]:
    """Return what a handler records of one run of the agent."""
    records: list[Record] = []
    if mode == "invoke":
        handler = ScoreCallbackHandler(*evaluators, sink=records.append)
        agent.invoke(ASKED, {"callbacks": [handler]})
        assert handler.close(60)
        assert not len(handler._runs)
        return records

    async def run() -> None:
        handler = ScoreCallbackHandler(*evaluators, sink=records.append)
        if mode == "ainvoke":
            await agent.ainvoke(ASKED, {"callbacks": [handler]})
        else:
            async for _ in agent.astream(ASKED, {"callbacks": [handler]}):
                pass
        assert await asyncio.to_thread(handler.close, 60)
        assert not len(handler._runs)

    asyncio.run(run())
    return records


@pytest.mark.parametrize(
    ("mode", "kind"),
    [("invoke", "a function as a tool"), ("astream", "a retriever as a tool")],
)
def test_an_agents_answer_is_held_against_what_its_tools_found(mode: str, kind: str) -> None:
    tools = [search_tool(make_retriever()) if "retriever" in kind else small_search]
    with openai_server(serving(search(), WRONG)) as server:
        (record,) = records_of(mode, make_agent(server, tools), checker(server))
    assert (record.question, record.answer) == (QUESTION, WRONG)
    assert record.contexts[0].page_content == FACTS[0]
    assert (record.verdict, record.outcome) == ("failed", None)
    assert record.id == record.root
    assert record.model == "test"


@pytest.mark.parametrize("mode", ["invoke", "ainvoke"])
def test_what_the_middleware_finds_is_recorded_and_not_scored_again(mode: str) -> None:
    with openai_server(serving(search(), WRONG, RIGHT)) as server:
        agent = make_agent(server, [small_search], HallucinationMiddleware(checker(server)))
        (record,) = records_of(mode, agent, checker(server))
        asked = len(server.requests)
    assert [attempt.answer for attempt in record.attempts] == [WRONG, RIGHT]
    assert [attempt.verdict for attempt in record.attempts] == ["failed", "passed"]
    assert record.outcome == "recovered"
    assert record.root != record.id
    assert record.usage.calls == asked - 1  # The step that calls the tool is not part of the guard.
