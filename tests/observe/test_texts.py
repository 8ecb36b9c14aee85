"""Test what is read from a run's input and output: the question of this turn, and its answer."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from demur.observe.texts import Readers, read

CALL = {"name": "search", "args": {}, "id": "1"}


@pytest.mark.parametrize(
    ("input", "question"),
    [
        ("q", "q"),
        ({"messages": [("user", "before"), ("ai", "a"), {"role": "human", "content": "q"}]}, "q"),
        (7, None),
        ({"messages": [7]}, None),
    ],
)
def test_the_question_is_that_of_this_turn_or_none(input: Any, question: str | None) -> None:
    said = read(input, "good", (), Readers())
    assert said is not None
    assert (said.question, said.answer, said.error) == (question, "good", None)


def test_a_question_that_the_reader_does_not_find_is_not_taken_from_elsewhere() -> None:
    said = read({"messages": [("user", "q")]}, "good", (), Readers(question=lambda given: None))
    assert said is not None
    assert said.question is None


turns = st.lists(
    st.lists(st.sampled_from(["call", "tool", "write"]), max_size=4).map(tuple), min_size=1
)


@given(turns)
def test_the_answer_is_of_the_turn_of_the_question(turns: list[tuple[str, ...]]) -> None:
    """Ignore what was said before, because it answers another question."""
    messages: list[BaseMessage] = []
    for number, turn in enumerate(turns):
        messages.append(HumanMessage(f"q{number}"))
        for kind in turn:
            if kind == "call":
                messages.append(AIMessage("", tool_calls=[CALL]))
            elif kind == "tool":
                messages.append(ToolMessage("found", tool_call_id="1"))
            else:
                messages.append(AIMessage(f"a{number}"))
    said = read(messages[:1], {"messages": messages}, (), Readers())
    wrote = [kind for kind in turns[-1] if kind != "tool"]
    if not wrote:
        assert said is not None
        assert "no answer can be found" in str(said.error)
    elif wrote[-1] == "call":
        assert said is None
    else:
        assert said is not None
        assert said.answer == f"a{len(turns) - 1}"


def test_an_answer_that_is_structured_is_not_passed_over() -> None:
    messages = [
        HumanMessage("q"),
        AIMessage("", tool_calls=[CALL]),
        ToolMessage("", tool_call_id="1"),
    ]
    output = {"messages": messages, "structured_response": SimpleNamespace(answer="good")}
    said = read("q", output, (), Readers())
    assert said is not None
    assert "structured_response" in str(said.error)
    said = read("q", output, (), Readers(answer=lambda found: found["structured_response"].answer))
    assert said is not None
    assert (said.answer, said.error) == ("good", None)
