"""Test copies with changed fields: their parts use the new fields, and wrong fields are refused."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from demur import Evaluation, Guard, RefChecker, Repair, Sample
from demur.evaluators import ZeroShot
from demur.runtime import FrozenRunnable
from support.fakes import saying

SAMPLE = Sample(question="How tall is it?", answer="84 metres.", contexts=["It is 84 metres tall."])


def fails(sample: Sample) -> Evaluation:
    return Evaluation(name="fails", passed=False, explanation="No.")


def zero_shot(model: Any) -> FrozenRunnable[Any, Any]:
    return ZeroShot(model)


def refchecker(model: Any) -> FrozenRunnable[Any, Any]:
    return RefChecker(model)


def guard(model: Any) -> FrozenRunnable[Any, Any]:
    return Guard(lambda question: {"answer": "84.", "context": ["Tall."]}, fails, model=model)


@pytest.mark.parametrize("make", [zero_shot, refchecker, guard])
def test_a_copy_with_another_model_asks_that_one(make: Callable[[Any], Any]) -> None:
    first, second = saying("first"), saying("second")
    made = make(first)
    given = SAMPLE if make is not guard else "How tall?"
    other = {"model": second} if make is not guard else {"on_fail": Repair(second)}
    made.model_copy(update=other).invoke(given)
    assert (len(first.requests), len(second.requests) > 0) == (0, True)
    for same in (made, made.model_copy(), made.model_copy(update={}), copy.copy(made)):
        asked = len(first.requests)
        same.invoke(given)
        assert len(first.requests) > asked


@pytest.mark.parametrize(
    ("made", "update", "complaint"),
    [
        (ZeroShot(saying("")), {"model": "gpt"}, "'gpt'"),
        (ZeroShot(saying("")), {"colour": "red"}, "colour"),
        (guard(None), {"colour": "red"}, "colour"),
        (guard(None), {"streaming": "sentence"}, "claim by claim"),
        (guard(None), {"evaluators": []}, "needs an evaluator"),
    ],
)
def test_a_copy_with_a_wrong_field_is_refused(
    made: FrozenRunnable[Any, Any], update: dict[str, Any], complaint: str
) -> None:
    with pytest.raises((TypeError, ValueError), match=complaint):
        made.model_copy(update=update)
