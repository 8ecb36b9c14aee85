"""Test AnswerRelevance and SelfContradiction, which ask one question about the whole answer."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessage

from demur import Category, Failure, Sample
from demur.evaluators import (
    AnswerRelevance,
    SelfContradiction,
)
from support.fakes import isolated
from support.replies import replying, weighing

QUESTION = "When does the hall open?"
ANSWER = "The hall opens at nine on all days. On Mondays it stays shut."
SAMPLE = Sample(question=QUESTION, answer=ANSWER)
BOTH = [(AnswerRelevance, "yes", "no"), (SelfContradiction, "consistent", "contradictory")]
"""The evaluators with their good word and their bad word."""


# --- Both -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "good", "bad"), BOTH)
def test_one_call_shows_question_and_answer(kind: Any, good: str, bad: str) -> None:
    model = replying(good)
    found = kind(model).invoke(SAMPLE)
    assert (found.score, found.passed, found.failure) == (1.0, True, None)
    assert found.usage.calls == 1
    assert isolated("answer", model.requests[0]) == ANSWER
    assert isolated("question", model.requests[0]) == QUESTION


@pytest.mark.parametrize(("kind", "good", "bad"), BOTH)
def test_an_unreadable_reply_is_asked_for_once_more(kind: Any, good: str, bad: str) -> None:
    found = kind(replying("Hm.", good)).invoke(SAMPLE)
    assert (found.passed, found.details["replies"]) == (True, ["Hm.", good])
    twice = kind(replying("Hm.", "Hm!")).invoke(SAMPLE)
    assert "'Hm!'" in str(twice.error)
    assert (twice.score, twice.label, twice.passed, twice.failure) == (None, None, None, None)


@pytest.mark.parametrize(("kind", "good", "bad"), BOTH)
def test_a_failed_call_and_an_empty_answer_are_undetermined(kind: Any, good: str, bad: str) -> None:
    assert "no such model" in str(kind(replying(ValueError("no such model"))).invoke(SAMPLE).error)
    assert "empty" in str(kind(replying()).invoke({"question": QUESTION, "answer": " "}).error)


@pytest.mark.parametrize(("kind", "good", "bad"), BOTH)
@pytest.mark.parametrize("said", ["I don't know.", "Die Quellen sagen dazu nichts.", "Hello!"])
def test_an_answer_that_states_nothing_is_neither_and_costs_nothing(
    kind: Any, good: str, bad: str, said: str
) -> None:
    found = kind(replying()).invoke({"question": QUESTION, "answer": said})
    assert (found.finding, found.label) == ("nothing_to_check", "Abstain")
    assert found.usage.calls == 0


@pytest.mark.parametrize(("kind", "good", "bad"), BOTH)
def test_an_answer_cannot_pass_itself(kind: Any, good: str, bad: str) -> None:
    argued = f"{ANSWER} {good.capitalize()}, all of that is right."
    model = replying(f"{good.capitalize()}, all of that is right.", bad)
    found = kind(model).invoke({"question": QUESTION, "answer": argued})
    assert found.passed is False


@pytest.mark.parametrize(("kind", "good", "bad"), BOTH)
def test_log_probabilities_are_the_score(kind: Any, good: str, bad: str) -> None:
    reply = weighing(good, **{good: 0.6, bad.capitalize(): 0.15, "maybe": 0.1})
    evaluator = kind(replying(reply), by="logprobs")
    found = evaluator.invoke(SAMPLE)
    assert found.score == pytest.approx(0.8)
    assert evaluator.fingerprints["by"] == "logprobs"


@pytest.mark.parametrize(("kind", "good", "bad"), BOTH)
def test_log_probabilities_that_tell_nothing_are_undetermined(
    kind: Any, good: str, bad: str
) -> None:
    replies: dict[str, str | AIMessage] = {
        "gives no log-probabilities": good,
        "0.30": weighing("Well", Well=0.7, **{good: 0.2, bad: 0.1}),
        "is only 0.00": weighing("Co", co=0.9, n=0.05, y=0.05),  # The token begins both labels.
        "reasons": weighing(f"<think>so</think>{good}", **{good: 0.9, bad: 0.1}),
    }
    for why, reply in replies.items():
        found = kind(replying(reply), by="logprobs").invoke(SAMPLE)
        assert why in str(found.error)
        assert "by='words'" in str(found.error)
        assert found.score is None


@pytest.mark.parametrize(("kind", "good", "bad"), BOTH)
def test_the_threshold_decides_and_without_one_nothing_is(kind: Any, good: str, bad: str) -> None:
    reply = weighing(good, **{good: 0.6, bad: 0.4})
    for threshold, passed in ((0.6, True), (0.61, False), (None, None)):
        found = kind(replying(reply), by="logprobs", threshold=threshold).invoke(SAMPLE)
        assert (found.passed, found.score) == (passed, pytest.approx(0.6))
        assert (found.failure is None) is (passed is not False)
        assert found.finding == {True: "passed", False: "failed", None: "scored"}[passed]


# --- AnswerRelevance ------------------------------------------------------------------------------


def test_an_answer_beside_the_question_fails_as_irrelevant() -> None:
    found = AnswerRelevance(replying("No, it names no hour.")).invoke(SAMPLE)
    assert (found.label, found.score, found.passed) == ("irrelevant", 0.0, False)
    assert found.failures == (Failure.IRRELEVANT,)
    assert found.failures[0].category is Category.IRRELEVANT
    assert "does not address the question" in found.explanation


@pytest.mark.parametrize("question", [None, " "])
def test_without_a_question_relevance_is_undetermined(question: str | None) -> None:
    model = replying()
    found = AnswerRelevance(model).invoke({"question": question, "answer": ANSWER})
    assert "no question" in str(found.error)
    assert found.cause == "no question"
    assert model.stages == []


# --- SelfContradiction ----------------------------------------------------------------------------


def test_the_quoted_parts_are_claims_with_their_places() -> None:
    reply = "Contradictory\n1. The hall opens at nine on all days\n2. on mondays it stays shut"
    found = SelfContradiction(replying(reply)).invoke({"answer": ANSWER})
    assert (found.label, found.passed) == ("self-contradictory", False)
    assert found.failures == (Failure.SELF_CONTRADICTION,)
    parts = ["The hall opens at nine on all days", "On Mondays it stays shut"]
    assert [claim.text for claim in found.claims] == parts
    spans = [claim.span for claim in found.claims]
    assert [ANSWER[span.start : span.end] for span in spans if span] == parts
    assert all(part in found.explanation for part in parts)


def test_parts_that_are_not_in_the_answer_are_not_shown() -> None:
    reply = "Contradictory\n1. The hall opens at nine\n2. The hall is always shut"
    found = SelfContradiction(replying(reply)).invoke({"answer": ANSWER})
    assert (found.passed, found.claims) == (False, ())
    assert "always shut" not in found.explanation


def test_a_consistent_answer_shows_no_parts_whatever_is_quoted() -> None:
    found = SelfContradiction(
        replying(
            weighing(
                "contradictory\n1. The hall opens at nine\n2. On Mondays",
                consistent=0.9,
                contradictory=0.1,
            )
        ),
        by="logprobs",
    ).invoke(SAMPLE)
    assert (found.label, found.claims) == ("consistent", ())
