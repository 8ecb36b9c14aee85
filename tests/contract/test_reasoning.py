"""Test that replies with reasoning in front are understood like replies without it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import RunnableLambda

from contract.evaluators import EVALUATORS, refchecker
from contract.member import Member
from demur import Evaluation, Guard, Sample
from demur.guard import Repair
from support import facts
from support.fakes import Script, saying

THOUGHT = """1. Contradiction
2. Entailment
("Item 9", "is", "blue")
Entity: item 9
Question: Which thing is blue?
1. Wrong Answer: It has 9 legs.
1. Non-Wrong Answer: None has 9.
Percentage: 50%
Yes. No. Factual. Non-factual. Correct. Incorrect. A B C
"""
"""Reasoning in which each of the parsers would find something."""
WAYS: dict[str, Callable[[str], str]] = {
    "block": lambda said: f"<think>\n{THOUGHT}</think>\n\n{said}",
    "other tag": lambda said: f"<Reasoning>{THOUGHT}</Reasoning>{said}",
    "the template opened it": lambda said: f"{THOUGHT}</think>\n\n{said}",
}
ASKING = [one for one in EVALUATORS if one.asks]
BY_LOGPROBS = ("refchecker logprobs", "cascade")


def thinking(script: Script, think: Callable[[str], str]) -> Script:
    """Return the script of a model that reasons before it replies."""

    def spoken(stage: str, messages: Sequence[BaseMessage]) -> AIMessage:
        said = script(stage, messages)
        message = AIMessage(said) if isinstance(said, str) else said
        return message.model_copy(update={"content": think(str(message.text))})

    return spoken


@pytest.mark.slow
@pytest.mark.parametrize(
    "member", [one for one in ASKING if one.name not in BY_LOGPROBS], ids=lambda one: one.name
)
def test_an_evaluator_finds_the_same(member: Member, monkeypatch: pytest.MonkeyPatch) -> None:
    think = [*WAYS.values()][ASKING.index(member) % len(WAYS)]
    expected = {number: member.make().invoke(member.give(number)) for number in (1, 2)}
    monkeypatch.setattr(facts, "judge", thinking(facts.judge, think))
    for number, found in expected.items():
        again = member.make().invoke(member.give(number))
        assert member.essence(again) == member.essence(found)
        assert member.good(number, again)


@pytest.mark.parametrize(
    # A judge at an address writes no thought.
    "member",
    [one for one in ASKING if one.name != "refchecker served"],
    ids=lambda one: one.name,
)
def test_reasoning_that_does_not_end_decides_nothing(
    member: Member, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        facts, "judge", thinking(facts.judge, lambda said: f"<think>{THOUGHT}{said}")
    )
    found: Evaluation = member.make().invoke(member.give(2))
    assert found.undetermined
    assert not [claim for claim in found.claims if claim.label]


def test_its_first_token_is_no_label(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(facts, "judge", thinking(facts.judge, WAYS["block"]))
    found = refchecker("logprobs").invoke(facts.sample(2))
    assert found.undetermined
    assert {claim.label for claim in found.claims} == {None}
    assert all("checker='joint'" in str(claim.error) for claim in found.claims)


def test_a_cascade_asks_its_next_stage_in_place_of_the_first_token(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (member,) = (one for one in EVALUATORS if one.name == "cascade")
    monkeypatch.setattr(facts, "judge", thinking(facts.judge, WAYS["block"]))
    for number in (1, 2):
        assert facts.grade(number, member.make().invoke(member.give(number))) == "right"


def _repaired(said: str) -> tuple[Any, list[str]]:
    """Return the output of a guard whose model gives this repair, and the judged answers."""
    judged: list[str] = []

    def judge(sample: Sample) -> Evaluation:
        judged.append(sample.answer)
        return Evaluation(name="judge", passed=sample.answer == "It is right.")

    model = saying(said)
    chain = RunnableLambda(lambda question: "It is wrong.")
    guard = Guard(chain, judge, on_fail=Repair(model), contexts=lambda output: ["Facts."])
    return guard.invoke("Which?"), judged


def test_a_repaired_answer_holds_no_reasoning() -> None:
    output, judged = _repaired(WAYS["block"]("It is right."))
    assert output == "It is right."
    assert judged == ["It is wrong.", "It is right."]


def test_a_repair_that_is_reasoning_alone_is_none() -> None:
    output, judged = _repaired("<think>It is right.")
    assert "right" not in output
    assert judged == ["It is wrong."]
