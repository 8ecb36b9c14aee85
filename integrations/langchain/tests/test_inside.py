"""Test graphs inside a guard: they keep nothing, and a graph with its own memory is refused."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableLambda
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import interrupt

from agent_server import LETTERS, REJECTED, TASKS_HAVE_CONTEXT, THREAD, graph_of
from demur import DemurError, Evaluation, Guard, Sample
from langchain_demur import guarded_node

QUESTION: Any = {"messages": [("human", "How tall is it?")]}


def judge(sample: Sample) -> Evaluation:
    passed = "84" in sample.answer
    return Evaluation(name="judge", score=float(passed), passed=passed)


def wrong(state: Any) -> Any:
    return {"messages": [AIMessage(REJECTED)]}


def asks(state: Any) -> Any:
    return {"messages": [AIMessage(interrupt("may I?"))]}


def last(found: Any) -> Any:
    return found["messages"][-1]


@pytest.mark.parametrize("checkpointer", [InMemorySaver(), True], ids=["a saver", "True"])
def test_a_graph_with_a_checkpointer_of_its_own_is_refused(checkpointer: Any) -> None:
    agent = graph_of(wrong, checkpointer)

    def calls_it(state: Any) -> Any:
        return agent.invoke(state)

    chains = [
        agent,
        agent | last,
        {"found": agent},
        agent.with_config(tags=["one"]),
        graph_of(agent),
        graph_of(graph_of(wrong), checkpointer),
        RunnableLambda(calls_it),
    ]
    for chain in chains:
        with pytest.raises(ValueError, match=r"'LangGraph'.*HallucinationMiddleware"):
            Guard(chain, judge)
    for node in (agent, graph_of(agent), calls_it):
        with pytest.raises(ValueError, match=r"'LangGraph'.*HallucinationMiddleware"):
            guarded_node(node, judge)
    Guard(graph_of(wrong, False) | last, judge)


@pytest.mark.parametrize("outside", [True, False], ids=["in a graph", "in none"])
def test_one_that_cannot_be_seen_keeps_nothing(outside: bool) -> None:
    saver = InMemorySaver()
    held = {"agent": graph_of(wrong, saver)}

    def calls_it(state: Any) -> Any:
        return held["agent"].invoke(state)

    if outside:
        graph_of(guarded_node(calls_it, judge), InMemorySaver()).invoke(QUESTION, THREAD)
    else:
        guarded = Guard(RunnableLambda(calls_it) | last, judge)
        assert not LETTERS & set(repr(guarded.invoke(QUESTION, THREAD)))
    assert not [*saver.list(None)]
    held["agent"].invoke(QUESTION, THREAD)
    assert [*saver.list(None)]


@pytest.mark.parametrize(
    ("how", "node"),
    [
        ("sync", lambda: guarded_node(graph_of(asks), judge)),
        ("async", lambda: guarded_node(lambda state: graph_of(asks).invoke(state), judge)),
        (
            "sync",
            lambda: Guard(graph_of(asks) | last, judge) | (lambda message: {"messages": [message]}),
        ),
    ],
    ids=["a node", "a function that calls it", "a guard"],
)
def test_an_interrupt_of_a_graph_inside_is_refused(node: Callable[[], Any], how: str) -> None:
    """Refuse the interrupt, because it could not be resumed: the reply would reach another run."""
    if how == "async" and not TASKS_HAVE_CONTEXT:
        pytest.skip("langgraph has no interrupts for tasks on this Python")
    graph = graph_of(node(), InMemorySaver())

    def run() -> Any:
        if how == "sync":
            return graph.invoke(QUESTION, THREAD)
        return asyncio.run(graph.ainvoke(QUESTION, THREAD))

    with pytest.raises(DemurError, match=r"could be resumed.*HallucinationMiddleware"):
        run()
