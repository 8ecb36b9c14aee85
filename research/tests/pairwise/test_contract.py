"""Test that PairwiseJudge keeps the contract of demur's Runnables (`tests/contract`)."""

from __future__ import annotations

import asyncio
import copy
import inspect
import pickle
from collections.abc import Sequence
from typing import Any

import pytest
from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableLambda

from demur_research.pairwise import PairwiseJudge, PairwiseVerdict
from support import facts
from support.fakes import ScriptedModel, isolated

THOUGHT = "Answer A is better. No: B. The better answer is (C). I am not sure."
"""Reasoning in which the parser would find each of the letters."""


def other(number: int) -> str:
    return f"Item {number} is neither of these."


def pair(number: int) -> dict[str, str]:
    """Return a question with two answers: the first is right for an even number, else the second.

    The judge below finds the right one.
    """
    answers = [facts.answer(number), other(number)]
    first, second = answers if number % 2 == 0 else answers[::-1]
    return {"question": facts.question(number), "first": first, "second": second}


def choose(stage: str, messages: Sequence[BaseMessage]) -> str:
    return "B" if "neither of these" in isolated("a", messages) else "A"


def choose_after_thought(stage: str, messages: Sequence[BaseMessage]) -> str:
    return f"<think>\n{THOUGHT}</think>\n\n{choose(stage, messages)}"


def judge() -> PairwiseJudge:
    return PairwiseJudge(ScriptedModel(script=choose))


def is_right(number: int, found: PairwiseVerdict) -> bool:
    winner, choices = ("first", ("A", "B")) if number % 2 == 0 else ("second", ("B", "A"))
    return (found.winner, found.choices, found.reason) == (winner, choices, "consistent")


def all_right(found: Sequence[PairwiseVerdict]) -> bool:
    return all(is_right(number, one) for number, one in enumerate(found))


async def test_every_way_to_call_gives_the_same_in_order() -> None:
    made, pairs = judge(), [pair(number) for number in range(4)]
    for found in (
        [made.invoke(one) for one in pairs],
        [await made.ainvoke(one) for one in pairs],
        made.batch(pairs, {"max_concurrency": 4}),
        await made.abatch(pairs),
        await asyncio.gather(*map(made.ainvoke, pairs)),
        [output for one in pairs for output in made.stream(one)],
        [output for one in pairs async for output in made.astream(one)],
        (RunnableLambda(pair) | made).batch([*range(4)]),
    ):
        assert len(found) == len(pairs)
        assert all_right(found)


async def test_a_pair_that_cannot_be_used_raises_alone() -> None:
    made = judge()
    pairs: list[Any] = [pair(0), {"question": "What is it like?", "first": "It is red."}, pair(2)]
    with pytest.raises(ValueError, match="second"):
        made.batch(pairs)
    for found in (
        made.batch(pairs, return_exceptions=True),
        await made.abatch(pairs, return_exceptions=True),
    ):
        assert isinstance(found[1], ValueError)
        assert is_right(0, found[0])
        assert is_right(2, found[2])


def test_copies_do_the_same() -> None:
    made = judge()
    made.invoke(pair(1))  # State that a call leaves behind must not prevent a copy.
    for copied in (pickle.loads(pickle.dumps(made)), copy.deepcopy(made), copy.copy(made)):
        assert all_right(copied.batch([pair(0), pair(1)]))


def test_a_model_that_reasons_chooses_the_same() -> None:
    made = PairwiseJudge(ScriptedModel(script=choose_after_thought))
    assert all_right(made.batch([pair(0), pair(1)]))


def test_the_signature_says_all_that_the_fields_do() -> None:
    parameters = inspect.signature(PairwiseJudge).parameters
    assert {*parameters} == {*PairwiseJudge.model_fields}
    for name, parameter in parameters.items():
        field = PairwiseJudge.model_fields[name]
        if not field.is_required():
            assert parameter.default == field.get_default(call_default_factory=True), name
            assert parameter.kind is parameter.KEYWORD_ONLY, name
    with pytest.raises(TypeError, match="unexpected keyword argument 'treshold'"):
        PairwiseJudge(ScriptedModel(script=choose), treshold=0.5)  # type: ignore[call-arg]
