"""What a store holds, in numbers."""

from __future__ import annotations

import statistics as reference

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur.exemplars import Candidate, Entry, Statistics
from demur.exemplars.statistics import statistics

NOW = "2026-11-22T10:00:00+00:00"
SCORES = st.lists(st.floats(-1e6, 1e6), max_size=4)


def entry(scores: list[float], stale: list[float]) -> Entry:
    def some(scored: list[float], scorer: str) -> tuple[Candidate, ...]:
        ranked = sorted(scored, reverse=True)
        return tuple(Candidate(f"{at}", score, scorer, NOW) for at, score in enumerate(ranked))

    return Entry("q", some(scores, "this"), some(stale, "that"))


@given(st.lists(st.tuples(SCORES, SCORES), max_size=8))
def test_the_numbers_are_those_of_the_entries(told: list[tuple[list[float], list[float]]]) -> None:
    found = statistics(entry(*one) for one in told)
    best = [max(scores) for scores, _ in told if scores]
    candidates, stale = (sum(len(one[at]) for one in told) for at in (0, 1))
    assert found == Statistics(
        questions=len(told),
        candidates=candidates,
        stale=stale,
        without_best=len(told) - len(best),
        contested=sum(len(scores) > 1 for scores, _ in told),
        lowest=min(best, default=None),
        mean=pytest.approx(reference.fmean(best), abs=1e-6) if best else None,
        highest=max(best, default=None),
        scorers={name: count for name, count in (("this", candidates), ("that", stale)) if count},
    )


def test_of_nothing_there_is_no_mean() -> None:
    assert statistics([]) == Statistics(0, 0, 0, 0, 0, None, None, None, {})
