"""Test supported answers that fail: they miss the question or contradict themselves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.documents import Document
from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableLambda

from demur import Abstain, Guard, RefChecker, Regenerate, Repair
from demur.evaluators import AnswerRelevance, SelfContradiction
from demur.guard import Feedback
from support.fakes import ScriptedModel, isolated

QUESTION = "When does the hall open?"
SOURCE = "The hall opens at nine. It has a roof of glass. Built in 1911, it was burnt in 1950."
RIGHT = "The hall opens at nine."
BESIDE = "The hall has a roof of glass."
BOTH_WAYS = "The hall opens at nine. The hall never opens at nine."


def judge(stage: str, messages: Sequence[BaseMessage]) -> str:
    """Reply that all claims are supported; an answer is relevant only if it names the hour."""
    if stage == "joint" or stage == "claim":
        return "1. Entailment\n2. Entailment" if "never" in str(messages[-1]) else "1. Entailment"
    if stage == "relevance":
        return "yes" if "nine" in isolated("answer", messages) else "no"
    if stage == "self_contradiction":
        parts = "1. The hall opens at nine\n2. The hall never opens at nine"
        bad = "never" in isolated("answer", messages)
        return f"contradictory\n{parts}" if bad else "consistent"
    return RIGHT  # the repair


def guarded(*answers: str, **options: Any) -> Guard[Any, Any]:
    """Return a guard with all three checks around a chain that gives these answers in order."""
    left = iter(answers)
    model = ScriptedModel(script=judge)
    checks = [
        RefChecker(model, claims="sentences"),
        AnswerRelevance(model),
        SelfContradiction(model),
    ]
    return Guard(
        RunnableLambda(lambda question: next(left)),
        checks,
        contexts=lambda output: [Document(SOURCE)],
        **options,
    )


def findings(attempt: Any) -> dict[str, str]:
    return {one.name: one.finding for one in attempt.evaluations}


def test_a_supported_answer_beside_the_question_fails_for_that_reason() -> None:
    policy = {"irrelevant": Regenerate(_told), "any": Abstain("It was for something else.")}
    output, trace = _traced(guarded(BESIDE, RIGHT, on_fail=policy))
    assert (output, trace.outcome) == (RIGHT, "recovered")
    first, second = trace.attempts
    assert findings(first) == {
        "RefChecker": "passed",
        "AnswerRelevance": "failed",
        "SelfContradiction": "passed",
    }
    assert [*map(str, second.feedback.failures)] == ["irrelevant"]
    assert second.feedback.text == "- The answer does not address the question."


def test_an_answer_against_itself_is_repaired_by_its_own_key() -> None:
    model = ScriptedModel(script=judge)
    policy = {"contradiction": "block", "neutral": "block", "self_contradiction": Repair(model)}
    output, trace = _traced(guarded(BOTH_WAYS, on_fail=policy))
    assert (output, trace.outcome) == (RIGHT, "recovered")
    told = isolated("problems", model.requests[0])
    assert "“The hall opens at nine”" in told
    assert "“The hall never opens at nine”" in told
    assert "sources" not in told


def _told(question: str, feedback: Feedback) -> str:
    return f"{question} {feedback.text}"


def _traced(guard: Guard[Any, Any]) -> tuple[str, Any]:
    told = guard.with_trace().invoke(QUESTION)
    return told.output, told.trace
