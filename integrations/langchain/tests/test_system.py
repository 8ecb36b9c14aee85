"""Test that the facts in an agent's or a node's system message support answers, if allowed."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage

from agent_server import THREAD, make_agent, one_node, search, serving, small_search
from demur import RefChecker
from langchain_demur import HallucinationMiddleware, guarded_node
from support.openai_server import openai_server

HOURS, OPEN = "Our support answers from 9:15 to 17:30.", "We are open on Sundays."
TOLD = f"You are Nova. {HOURS} Say that we are open on Sundays."
ASKED = {"messages": [HumanMessage("When?")]}


@pytest.mark.parametrize("replies", [(), (search(),)], ids=["at once", "after a tool"])
@pytest.mark.parametrize(
    ("answer", "system", "leaves"),
    [(HOURS, True, True), (HOURS, False, False), (OPEN, True, False)],
)
def test_an_agent_knows_the_facts_and_follows_no_order(
    answer: str, system: bool, leaves: bool, replies: Any
) -> None:
    checks = HallucinationMiddleware(RefChecker("small"), on_fail="abstain", system=system)
    with openai_server(serving(*replies, answer)) as server:
        agent = make_agent(server, [small_search], checks, system_prompt=TOLD)
        found = agent.invoke(ASKED, THREAD)
    assert (found["messages"][-1].text == answer) is leaves


@pytest.mark.parametrize("system", [True, False])
def test_a_node_knows_those_of_the_state(system: bool) -> None:
    def node(state: Any) -> Any:
        return {"messages": [AIMessage(HOURS, id="a")]}

    guarded = guarded_node(node, RefChecker("small"), on_fail="abstain", system=system)
    given = {"messages": [SystemMessage(TOLD), *ASKED["messages"]]}
    found = one_node(guarded).invoke(given, THREAD)
    assert (found["messages"][-1].text == HOURS) is system
