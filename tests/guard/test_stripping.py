"""Test answers from which failing sentences are taken out."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableLambda
from pydantic import BaseModel

from demur import (
    AnswerRejected,
    Budget,
    Evaluation,
    Guard,
    Strip,
)
from demur.evaluators import SelfContradiction, as_evaluator
from demur.guard import REFUSAL
from support.fakes import ScriptedModel, isolated, saying
from support.guarded import Chain, traced
from support.held import LOUVRE, HeldByNumbers

ANSWER = "The Louvre opened in 1793. In 1850 it burnt down. On show are 35000 works."
TRIMMED = "The Louvre opened in 1793. On show are 35000 works."


def _documents(output: Any) -> list[Document]:
    return list(LOUVRE)


def _guard(*outputs: Any, strip: Strip | None = None, **options: Any) -> Guard[Any, Any]:
    options = {"contexts": _documents, "on_fail": {"contradiction": strip or Strip()}, **options}
    judges = options.pop("judges", [HeldByNumbers()])
    return Guard(RunnableLambda(Chain(*outputs)), *judges, **options)


@pytest.mark.parametrize("output", [ANSWER, AIMessage(ANSWER)])
def test_what_fails_is_taken_out_and_the_rest_leaves(output: Any) -> None:
    found = traced(_guard(output))
    left = found.output if isinstance(found.output, str) else found.output.text
    assert (left, found.trace.outcome) == (TRIMMED, "trimmed")
    first, second = found.trace.attempts
    assert (second.origin, second.recovery) == ("edit", "strip")
    assert (first.removed, second.removed) == ((), ("In 1850 it burnt down.",))


def test_the_rest_is_judged_again() -> None:
    asked: list[str] = []

    def watching(sample: Any) -> bool:
        asked.append(sample.answer)
        return True

    traced(_guard(ANSWER, judges=[HeldByNumbers(), watching]))
    assert asked == [ANSWER, TRIMMED]


def test_what_stands_beside_the_answer_is_emptied_since_it_may_say_the_same() -> None:
    output = {"answer": ANSWER, "context": list(LOUVRE), "thoughts": "In 1850 it burnt down."}
    found = traced(_guard(output, contexts=None))
    assert found.output == {"answer": TRIMMED, "context": list(LOUVRE), "thoughts": None}


@pytest.mark.parametrize(
    ("answer", "question"),
    [
        ("In 1850 it burnt down.", "When?"),  # Nothing is left.
        ("In 1850 it burnt down. Good luck!", "When?"),  # No supported sentence is left.
        ("It burnt in 1850. It opened in 1793.", "When?"),  # "It" has lost its meaning.
        (ANSWER, "When did the Louvre burn, was it down in 1850?"),  # The answer is removed.
    ],
)
def test_where_the_rest_would_be_of_no_use_the_policy_goes_on(answer: str, question: str) -> None:
    found = traced(_guard(answer), question)
    assert (found.output, found.trace.outcome) == (REFUSAL, "abstained")
    assert "nothing is left that answers the question" in found.trace.reason


def test_an_evaluator_that_rejects_the_whole_leaves_nothing_to_take_out() -> None:
    dull = as_evaluator(lambda sample: False, name="dull")
    found = traced(_guard(ANSWER, judges=[HeldByNumbers(), dull]))
    assert found.trace.outcome == "abstained"


def test_an_answer_that_contradicts_itself_is_not_cut() -> None:
    model = saying("contradictory")
    found = traced(_guard(TRIMMED, judges=[SelfContradiction(model, by="words")], on_fail="strip"))
    assert found.trace.attempts[0].evaluations[0].failures == ("self_contradiction",)
    assert found.trace.outcome == "abstained"


def test_what_has_no_label_goes_too_where_something_fails() -> None:
    answer = "The Louvre opened in 1793. In 1850 it burnt. I am unsure of 35000 works."
    found = traced(_guard(answer))
    assert found.output == "The Louvre opened in 1793."


def test_an_undetermined_answer_is_not_trimmed() -> None:
    found = traced(_guard("The Louvre opened in 1793. I am unsure of 35000 works."))
    assert found.trace.outcome == "evaluator_failed"


# --- Sentences that refer to a removed one --------------------------------------------------------

ADA = "The Louvre opened in 1793. Ada drew it in 1850. She saw 35000 works."


def test_without_a_model_they_go_too() -> None:
    found = traced(_guard(ADA))
    assert found.output == "The Louvre opened in 1793."
    assert found.trace.attempts[-1].removed == ("Ada drew it in 1850.", "She saw 35000 works.")


def test_a_model_rewords_them_and_they_are_judged_again() -> None:
    asked: list[str] = []

    def script(stage: str, messages: Any) -> str:
        assert stage == "rewording"
        asked.append(isolated("sentence", messages))
        assert "Ada drew it in 1850." in isolated("before", messages)
        return "Ada saw 35000 works."

    found = traced(_guard(ADA, strip=Strip(ScriptedModel(script=script))))
    assert asked == ["She saw 35000 works."]
    assert (found.output, found.trace.outcome) == (
        "The Louvre opened in 1793. Ada saw 35000 works.",
        "trimmed",
    )
    assert found.trace.attempts[-1].usage.calls == 1


def test_what_a_model_words_wrongly_is_judged_and_taken_out() -> None:
    model = saying("Ada saw 77 works.")
    found = traced(_guard(ADA, strip=Strip(model)))
    assert (found.output, found.trace.outcome) == ("The Louvre opened in 1793.", "trimmed")
    assert "Ada saw 77 works." in found.trace.attempts[-1].removed


@pytest.mark.parametrize("reply", ["", PermissionError("no")])
def test_where_the_model_has_nothing_to_say_they_go(reply: Any) -> None:
    def script(stage: str, messages: Any) -> str:
        if isinstance(reply, Exception):
            raise reply
        return reply

    found = traced(_guard(ADA, strip=Strip(ScriptedModel(script=script))))
    assert (found.output, found.trace.outcome) == ("The Louvre opened in 1793.", "trimmed")


# --- Structured answers -------------------------------------------------------------------------


class Room(BaseModel):
    number: int
    since: int | None = None


class Facts(BaseModel):
    year: int
    works: int | None = None
    rooms: list[Room] = []
    note: str = ""


@pytest.mark.parametrize(
    ("output", "left", "removed"),
    [
        (Facts(year=1793, works=99), Facts(year=1793, works=None), ("$.works",)),
        (
            Facts(year=1793, rooms=[Room(number=1793, since=1850), Room(number=35000)]),
            Facts(year=1793, rooms=[Room(number=1793), Room(number=35000)]),
            ("$.rooms[0].since",),
        ),
        (
            Facts(year=1793, rooms=[Room(number=12), Room(number=35000)]),
            Facts(year=1793, rooms=[Room(number=35000)]),
            ("$.rooms[0].number",),
        ),
        ({"year": 1793, "works": 99}, {"year": 1793, "works": None}, ("$.works",)),
        ({"years": [1793, 1850, 99]}, {"years": [1793]}, ("$.years[1]", "$.years[2]")),
        ('{"year": 1793, "works": 99}', '{"year": 1793, "works": null}', ("$.works",)),
    ],
)
def test_a_value_that_fails_becomes_none_where_it_may(
    output: Any, left: Any, removed: tuple[str, ...]
) -> None:
    found = traced(_guard(output))
    assert (found.output, found.trace.outcome) == (left, "trimmed")
    assert found.trace.attempts[-1].removed == removed


@pytest.mark.parametrize("output", [Facts(year=1850, works=35000), Facts(year=99)])
def test_a_value_that_must_be_there_cannot_go(output: Any) -> None:
    with pytest.raises(AnswerRejected) as raised:
        traced(_guard(output))
    assert raised.value.trace.outcome == "abstained"
    assert len(raised.value.trace.attempts) == 1


@pytest.mark.parametrize("said", ["", "The Louvre opened in 1793."])
def test_a_message_that_calls_tools_is_not_trimmed(said: str) -> None:
    call = {"name": "tell", "args": {"year": 1793, "works": 99}, "id": "1", "type": "tool_call"}
    found = traced(_guard(AIMessage(said, tool_calls=[call])))
    assert (found.output.text, found.trace.outcome) == (REFUSAL, "abstained")
    assert len(found.trace.attempts) == 1


def test_nothing_that_a_judge_rejects_twice_leaves() -> None:
    def never(sample: Any) -> Evaluation:
        evaluation = HeldByNumbers().invoke(sample)
        first = evaluation.claims[0].model_copy(update={"label": "Neutral", "evidence": ()})
        claims = (first, *evaluation.claims[1:])
        return evaluation.model_copy(update={"passed": False, "score": 0.0, "claims": claims})

    found = traced(_guard(ANSWER, judges=[never], on_fail="strip", budget=Budget(attempts=9)))
    assert (found.output, found.trace.outcome) == (REFUSAL, "abstained")
