"""Test the words in which the demonstration tells what a guard did."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any, get_args

import pytest

from demur.cli.demo import telling
from demur.guard import Attempt, Trace, TraceOutcome
from demur.schema import Usage

NOON = datetime(2026, 11, 22, 12, tzinfo=timezone.utc)


def _trace(outcome: Any) -> Trace:
    attempt = Attempt(
        origin="chain",
        question="Q?",
        answer="A.",
        verdict="failed",
        contexts=(),
        evaluations=(),
        usage=Usage(),
    )
    return Trace(
        outcome=outcome, reason="why", attempts=(attempt,), usage=Usage(), time=NOON, seconds=0
    )


@pytest.mark.parametrize("outcome", get_args(TraceOutcome))
def test_every_outcome_has_words_and_its_reason(outcome: Any) -> None:
    assert telling.ending(_trace(outcome)).endswith(": why")
    assert telling.tally([_trace(outcome)]) == f"1 question: 1 {outcome.replace('_', ' ')}"
