"""Test a plain Guard around graphs: agents are refused with advice, and streams hide steps."""

from __future__ import annotations

import asyncio
from typing import Any, TypedDict

import pytest
from allpairspy import AllPairs
from langchain.agents import create_agent
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from langgraph.graph import END, START, MessagesState, StateGraph

from demur import Abstain, AnswerRejected, DemurError, Guard
from demur.guard import REFUSAL
from support.fakes import ScriptedModel
from support.streams import ByClaims


class State(TypedDict, total=False):
    question: str
    draft: str
    answer: str


def graph(said: str) -> Any:
    """Return a graph of two nodes, the first of which writes a draft that nobody may see."""
    build: Any = StateGraph(State)
    build.add_node("think", lambda state: {"draft": said})
    build.add_node("write", lambda state: {"answer": state["draft"]})
    build.add_edge(START, "think")
    build.add_edge("think", "write")
    build.add_edge("write", END)
    return build.compile()


def agent(said: str = "One is bad.") -> Any:
    return create_agent(ScriptedModel(script=lambda stage, messages: said), tools=[])


def judge() -> Any:
    return ByClaims()


def test_around_an_agent_it_names_the_middleware_before_anything_is_asked() -> None:
    with pytest.raises(ValueError, match="HallucinationMiddleware of langchain-demur"):
        Guard(agent(), judge())


def test_around_an_agent_in_a_chain_it_does_so_when_it_sees_the_messages() -> None:
    guard: Any = Guard(RunnablePassthrough() | agent(), judge())
    asked = {"messages": [("user", "why?")]}
    with pytest.raises(DemurError, match="HallucinationMiddleware of langchain-demur"):
        guard.invoke(asked)


def test_the_last_message_can_be_had_judged() -> None:
    asked = {"messages": [("user", "why?")]}

    def guarded(said: str) -> Any:
        guard: Any = Guard(
            agent(said), judge(), answer=lambda state: state["messages"][-1], on_fail="block"
        )
        return guard.invoke(asked)

    assert guarded("One is good.")["messages"][-1].text == "One is good."
    with pytest.raises(AnswerRejected):
        guarded("One is bad.")


@pytest.mark.parametrize(
    ("way", "streaming", "wrapped"),
    [
        tuple(one)
        for one in AllPairs(
            [["stream", "astream"], ["buffer", "sentence"], ["alone", "behind a step", "bound"]]
        )
    ],
)
def test_a_graphs_stream_is_its_checked_state_and_none_of_its_steps(
    streaming: Any, way: str, wrapped: str
) -> None:
    for said in ("One is good.", "One is bad."):
        inner = graph(said)
        chain = {
            "alone": inner,
            "behind a step": RunnableLambda(lambda given: given) | inner,
            "bound": inner.with_config(tags=["x"]),
        }[wrapped]
        guard: Any = Guard(
            chain, judge(), streaming=streaming, on_fail=Abstain(), contexts=lambda _: []
        )
        asked = {"question": "why?"}

        async def read(guard: Any = guard, asked: Any = asked) -> list[Any]:
            return [chunk async for chunk in guard.astream(asked)]

        chunks = [*guard.stream(asked)] if way == "stream" else asyncio.run(read())
        if "good" in said:
            assert chunks == [{"question": "why?", "draft": said, "answer": said}]
        else:
            assert chunks == [{"question": "why?", "draft": None, "answer": REFUSAL}]


def test_a_graph_with_messages_and_an_answer_is_none_of_them() -> None:
    class Both(MessagesState):
        answer: str

    build: Any = StateGraph(Both)
    build.add_node("write", lambda state: {"answer": "One is bad.", "messages": [("ai", "bad")]})
    build.add_edge(START, "write")
    build.add_edge("write", END)
    guard: Any = Guard(build.compile(), judge(), on_fail="abstain")
    found = guard.invoke({"messages": [("user", "why?")]})
    assert found == {"messages": [], "answer": REFUSAL}
