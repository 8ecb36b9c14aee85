"""Test the totals of a log: SQL and plain Python agree, in both forms."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from demur import Usage
from demur.observe import Record
from demur.observe.log import By, Filters, Log, open_log, summarise
from support.logs import RUNS, in_column, is_of, judgements, matches, some_filters
from support.records import (
    JUDGING,
    found,
    guarded,
    nothing_to_check,
    refuted,
    scored,
    sqlite,
    undetermined,
)

# -- in plain Python -------------------------------------------------------------------------------


def _sum(costs: Iterable[Usage]) -> Usage:
    return sum(costs, Usage())


def _key(run: Record, evaluator: str, by: frozenset[By]) -> tuple[str | None, ...]:
    day = f"{run.time:%Y-%m-%d}" if "day" in by else None
    model = None if run.model is None or "model" not in by else in_column(run.model)
    return in_column(evaluator), model, day


def _same(one: Usage, other: Usage) -> bool:
    seconds = {"seconds": pytest.approx(other.seconds)}
    return one.model_dump() == {**other.model_dump(), **seconds}


@pytest.mark.slow
@settings(max_examples=25)
@given(filters=some_filters(), by=st.frozensets(st.sampled_from(["evaluator", "model", "day"])))
def test_the_totals_are_those_that_plain_python_counts(
    log: Log, filters: Filters, by: frozenset[By]
) -> None:
    runs = [run for run in RUNS if matches(run, filters)]
    totals = summarise(log, filters, by)
    assert totals.runs == len(runs)
    times = [run.time for run in runs]
    assert (totals.first, totals.last) == (min(times, default=None), max(times, default=None))
    assert totals.verdicts == Counter(run.attempts[0].verdict for run in runs)
    assert totals.outcomes == Counter(run.outcome for run in runs if run.outcome is not None)
    judged = [(run, one) for run in runs for _, one in run.judged()]
    assert _same(totals.judging, _sum(one.usage for _, one in judged))
    assert _same(totals.answering, _sum(a.usage for run in runs for a in run.attempts))

    keys = {(group.evaluator, group.model, group.day): group for group in totals.groups}
    wanted = [(run, one) for run, one in judged if is_of(filters, one.name)]
    assert keys.keys() == {_key(run, one.name, by) for run, one in wanted}
    assert len(keys) == len(totals.groups)
    for key, group in keys.items():
        first = [
            one
            for run in runs
            for one in judgements(run.attempts[0])
            if _key(run, one.evaluator, by) == key
        ]
        counts = Counter(one.finding for one in first)
        assert {kind: count for kind, count in group.findings.items() if count} == counts
        assert group.judged == len(first)
        scores = [one.score for one in first if one.score is not None]
        assert group.mean == (pytest.approx(sum(scores) / len(scores)) if scores else None)
        spent = _sum(one.usage for run, one in wanted if _key(run, one.name, by) == key)
        assert _same(group.usage, spent)


# -- by hand ---------------------------------------------------------------------------------------


def test_the_rate_is_of_what_was_decided_about_first_answers(tmp_path: Path) -> None:
    runs = [
        *(scored(found(), at=at) for at in range(7)),
        *(guarded(refuted(), found(), at=10 + at) for at in range(3)),
        *(scored(undetermined(), at=20 + at) for at in range(5)),
        *(scored(nothing_to_check(), at=30 + at) for at in range(4)),
        *(scored(found(passed=None), at=40 + at) for at in range(6)),
    ]
    with open_log(sqlite(tmp_path / "a.sqlite", runs)) as log:
        (group,) = summarise(log).groups
    assert (group.failure.count, group.failure.total) == (3, 10)
    # This is Wilson's interval.
    assert group.failure.interval == pytest.approx((0.1078, 0.6032), abs=1e-4)
    assert group.judged == 25
    assert group.mean == pytest.approx((7 * 1.0 + 3 * 0.25 + 6 * 1.0) / 16)
    assert group.usage.calls == JUDGING.calls * 28
