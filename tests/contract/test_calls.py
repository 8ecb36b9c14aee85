"""Test that an agent's calls reach only the evaluators that know them from other contexts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from contract.evaluators import EVALUATORS
from contract.member import Member
from demur import Evaluation, Guard, Sample
from demur.shapes import CALLS, tool_calls
from support import facts
from support.guarded import Chain, traced

MARK = "zebra-crossing"
"""A word that stands in the calls only."""
MADE = tool_calls(
    [
        HumanMessage("Look it up."),
        AIMessage("", tool_calls=[{"name": "look_up", "args": {"what": MARK}, "id": "a"}]),
        ToolMessage(f"Error: no {MARK}", tool_call_id="a"),
    ],
    complete=True,
)
READERS = [one for one in EVALUATORS if one.name.startswith(("refchecker", "cascade"))]
OTHERS = [one for one in EVALUATORS if one not in READERS]


def with_calls(sample: Sample) -> Sample:
    return sample.model_copy(update={"contexts": (*sample.contexts, *MADE)})


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the texts of all requests to the scripted judge that are still to come."""
    texts: list[str] = []
    judge = facts.judge

    def heard(stage: str, messages: Sequence[BaseMessage]) -> Any:
        texts.append("\n".join(str(message.content) for message in messages))
        return judge(stage, messages)

    monkeypatch.setattr(facts, "judge", heard)
    return texts


@pytest.mark.parametrize("member", OTHERS, ids=lambda one: one.name)
def test_no_other_evaluator_is_given_a_call(member: Member, shown: list[str]) -> None:
    assert member.make().reads_calls is False
    for number in (1, 2):
        given = member.give(number)
        found, expected = (member.make().invoke(one) for one in (with_calls(given), given))
        assert member.essence(found) == member.essence(expected)
    assert bool(shown) is member.asks
    assert MARK not in "".join(shown)


@pytest.mark.parametrize("member", READERS, ids=lambda one: one.name)
def test_a_call_changes_no_verdict_about_facts(member: Member, shown: list[str]) -> None:
    made = member.make()
    assert made.reads_calls is True
    for number in (1, 2, 3):
        found: Evaluation = made.invoke(with_calls(member.give(number)))
        assert member.good(number, found)
        assert found.fingerprints == made.fingerprints
    assert MARK not in "".join(shown)


def test_a_function_as_a_judge_is_given_no_call() -> None:
    given: list[Sample] = []

    def judge(sample: Sample) -> bool:
        given.append(sample)
        return True

    output = {"answer": "Item 2 is red.", "context": ["A list of items"], CALLS: MADE}
    trace = traced(Guard(Chain(output), judge, on_fail="abstain")).trace
    assert [one.page_content for one in given[0].contexts] == ["A list of items"]
    assert trace.attempts[0].contexts[1:] == MADE
