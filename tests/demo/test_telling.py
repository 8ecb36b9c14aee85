"""What a guard did, in words."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.documents import Document

from demur.demo import telling
from demur.guard.trace import Attempt, Trace
from demur.schema import Usage


def _attempt(*titles: str, **fields: Any) -> Attempt:
    contexts = tuple(Document(page_content=t, metadata={"title": t}) for t in titles)
    standard = {"origin": "chain", "question": "Q?", "answer": "A.", "verdict": "failed"}
    return Attempt(
        **{**standard, "contexts": contexts, "evaluations": (), "usage": Usage(), **fields}
    )


def _trace(outcome: Any) -> Trace:
    attempts = (_attempt(),)
    return Trace(outcome=outcome, reason="why", attempts=attempts, usage=Usage(), seconds=0)


def test_what_was_found_for_another_answer_is_named_once() -> None:
    said = telling.action(_attempt("m.f"), _attempt("m.f", "m.g", "m.h", origin="feedback"))
    assert "a search for the claims" in said
    assert said.endswith("(m.g, m.h)")
    assert "finds other" not in telling.action(_attempt("m.f"), _attempt("m.f"))


@pytest.mark.parametrize(
    "outcome", ["passed", "recovered", "abstained", "blocked", "best_effort", "failed"]
)
def test_every_outcome_has_words_and_its_reason(outcome: Any) -> None:
    assert telling.ending(_trace(outcome)).endswith(": why")
    assert telling.tally([_trace(outcome)]) == f"1 question: 1 {outcome.replace('_', ' ')}"


def test_tally_counts_outcomes() -> None:
    traces = [_trace("passed"), _trace("recovered"), _trace("passed")]
    assert telling.tally(traces) == "3 questions: 2 passed, 1 recovered"
