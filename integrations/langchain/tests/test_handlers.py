"""Test score callback handlers on agents, with the middleware and without it."""

from __future__ import annotations

import pytest

from agent_server import (
    ASKED,
    checker,
    make_agent,
    record_of,
    search,
    search_tool,
    serving,
    small_search,
)
from langchain_demur import HallucinationMiddleware
from support.openai_server import openai_server
from support.rag import FACTS, QUESTION, RIGHT, WRONG, make_retriever


@pytest.mark.parametrize(
    ("mode", "kind"),
    [("invoke", "a function as a tool"), ("astream", "a retriever as a tool")],
)
def test_an_agents_answer_is_held_against_what_its_tools_found(mode: str, kind: str) -> None:
    tools = [search_tool(make_retriever()) if "retriever" in kind else small_search]
    with openai_server(serving(search(), WRONG)) as server:
        record = record_of(mode, make_agent(server, tools), ASKED, checker(server))
    assert (record.question, record.answer) == (QUESTION, WRONG)
    assert record.contexts[0].page_content == FACTS[0]
    assert (record.verdict, record.outcome) == ("failed", None)
    assert record.id == record.root
    assert record.model == "test"


@pytest.mark.parametrize("mode", ["invoke", "ainvoke"])
def test_what_the_middleware_finds_is_recorded_and_not_scored_again(mode: str) -> None:
    with openai_server(serving(search(), WRONG, RIGHT)) as server:
        agent = make_agent(server, [small_search], HallucinationMiddleware(checker(server)))
        record = record_of(mode, agent, ASKED, checker(server))
        asked = len(server.requests)
    assert [attempt.answer for attempt in record.attempts] == [WRONG, RIGHT]
    assert [attempt.verdict for attempt in record.attempts] == ["failed", "passed"]
    assert record.outcome == "recovered"
    assert record.root != record.id
    assert record.usage.calls == asked - 1  # The step that calls the tool is not part of the guard.
