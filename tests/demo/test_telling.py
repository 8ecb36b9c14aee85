"""Test the words in which the demonstration tells what a guard did."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any, get_args

import pytest
from langchain_core.documents import Document

from demur.demo import telling
from demur.guard import Attempt, Feedback, Trace, TraceOutcome
from demur.schema import Claim, ClaimLabel, Evaluation, Usage

NOON = datetime(2026, 11, 22, 12, tzinfo=timezone.utc)


def _attempt(*titles: str, **fields: Any) -> Attempt:
    contexts = tuple(Document(page_content=t, metadata={"title": t}) for t in titles)
    standard = {"origin": "chain", "question": "Q?", "answer": "A.", "verdict": "failed"}
    return Attempt(
        **{**standard, "contexts": contexts, "evaluations": (), "usage": Usage(), **fields}
    )


def _trace(outcome: Any) -> Trace:
    attempts = (_attempt(),)
    return Trace(
        outcome=outcome, reason="why", attempts=attempts, usage=Usage(), time=NOON, seconds=0
    )


def _feedback(*labels: ClaimLabel) -> Feedback:
    claims = tuple(Claim(text=str(label), label=label) for label in labels)
    found = Evaluation(name="judge", passed=False, claims=claims)
    return Feedback(question="Q?", answer="A.", evaluations=(found,))


def test_a_search_is_told_with_what_it_found() -> None:
    told = {"recovery": "retrieve", "feedback": _feedback(ClaimLabel.NEUTRAL)}
    said = telling.action(_attempt("m.f"), _attempt("m.f", "m.g", "m.h", **told))
    assert said == (
        "Claims are not in the passages. The guard searched for what failed; the chain answered "
        "again. Other passages: m.g, m.h."
    )
    assert "Other" not in telling.action(_attempt("m.f"), _attempt("m.f", **told))
    trace = _trace("recovered")
    again = _attempt(recovery="retrieve")
    recovered = trace.model_copy(update={"attempts": (*trace.attempts, again, again)})
    traces = [_trace("passed"), recovered, _trace("passed")]
    assert telling.tally(traces) == "3 questions: 2 passed, 1 recovered; recoveries: 2 retrieve"


@pytest.mark.parametrize("outcome", get_args(TraceOutcome))
def test_every_outcome_has_words_and_its_reason(outcome: Any) -> None:
    assert telling.ending(_trace(outcome)).endswith(": why")
    assert telling.tally([_trace(outcome)]) == f"1 question: 1 {outcome.replace('_', ' ')}"
