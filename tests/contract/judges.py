"""List the pairwise judge for the contract tests, at module level so that it can be pickled.

For an even item the first answer is right, and for an odd item the second.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from langchain_core.messages import BaseMessage
from langchain_core.runnables import Runnable

from contract.member import Member
from demur_research.pairwise import PairwiseJudge, PairwiseVerdict
from support import facts
from support.fakes import ScriptedModel, isolated


def _answers(number: int) -> dict[str, str]:
    other = f"Item {number} is neither of these."
    return {"question": facts.question(number), "first": facts.answer(number), "second": other}


def _choose(stage: str, messages: Sequence[BaseMessage]) -> str:
    """Choose the right answer from the texts of the request alone."""
    asked, a, b = (isolated(tag, messages) for tag in ("question", "a", "b"))
    (number,) = {int(found) for found in re.findall(r"[Ii]tem (\d+)", f"{asked} {a} {b}")}
    right = facts.answer(number) if number % 2 == 0 else f"Item {number} is neither of these."
    assert right in (a, b)
    return "A" if a == right else "B"


def _judge() -> Runnable[Any, Any]:
    return PairwiseJudge(ScriptedModel(script=_choose))


def _without_usage(verdict: PairwiseVerdict) -> Any:
    return verdict.model_dump(exclude={"usage"})


def _is_right(number: int, found: PairwiseVerdict) -> bool:
    winner, choices = ("first", ("A", "B")) if number % 2 == 0 else ("second", ("B", "A"))
    return (found.winner, found.choices, found.reason) == (winner, choices, "consistent")


JUDGES = [
    Member(
        name="judge of two answers",
        make=_judge,
        give=_answers,
        essence=_without_usage,
        good=_is_right,
        bad_input={"question": "What is it like?", "first": "It is red."},
        complaint="second",
    )
]
