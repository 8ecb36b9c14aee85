"""Test which runs of a log are chosen: SQL and plain Python agree, in both forms."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from demur.observe import Record
from demur.observe.log import Filters, Log, LogError, find, open_log, records, worst
from support.logs import RUNS, is_of, judgements, matches, some_filters
from support.records import ANSWER, scored, sqlite

# -- the runs --------------------------------------------------------------------------------------


@pytest.mark.slow
@settings(max_examples=25)
@given(filters=some_filters(), last=st.one_of(st.none(), st.integers(0, 100)))
def test_the_runs_are_those_that_plain_python_chooses(
    log: Log, filters: Filters, last: int | None
) -> None:
    chosen = [run for run in RUNS if matches(run, filters)]
    expected = chosen if last is None else chosen[max(0, len(chosen) - last) :]
    assert [*records(log, filters, last)] == expected


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"finding": "bad"}, "finding: expected one of passed, failed"),
        ({"since": datetime(2026, 11, 20)}, "time zone"),
    ],
)
def test_filters_that_make_no_sense_are_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Filters(**given)


# -- the worst -------------------------------------------------------------------------------------


@pytest.mark.slow
@settings(max_examples=25)
@given(filters=some_filters(), most=st.integers(1, 100))
def test_the_worst_are_those_that_failed_and_then_the_lowest_scores(
    log: Log, filters: Filters, most: int
) -> None:
    def badness(run: Record) -> tuple[bool, float] | None:
        told = [one for one in judgements(run.attempts[0]) if is_of(filters, one.evaluator)]
        failed = any(one.finding == "failed" for one in told)
        scores = [one.score for one in told if one.score is not None]
        return (not failed, min(scores, default=9.0)) if failed or scores else None

    told = [one for one in worst(log, filters, most) if isinstance(one, Record)]
    ranks = {run.id: badness(run) for run in RUNS if matches(run, filters)}
    expected = sorted(rank for rank in ranks.values() if rank is not None)[:most]
    assert [ranks[run.id] for run in told] == expected
    assert len({run.id for run in told}) == len(told)


# -- one run ---------------------------------------------------------------------------------------


def test_a_run_is_found_by_the_beginning_of_its_id(log: Log) -> None:
    for run in RUNS:
        assert find(log, run.id) == run
        alike = [one for one in RUNS if one.id.startswith(run.id[:23])]
        if len(alike) == 1:
            assert find(log, run.id[:23]) == run


def test_an_id_of_none_and_one_of_several_are_told(log: Log) -> None:
    with pytest.raises(LogError, match="no run whose id begins with 'zz'"):
        find(log, "zz")
    with pytest.raises(LogError, match=f"several ids begin with '': {min(r.id for r in RUNS)}"):
        find(log, "")


def test_an_id_that_begins_another_one_is_itself(tmp_path: Path) -> None:
    runs = [scored(id="run"), scored(id="run-2", at=1), scored(id="run-3", answer=ANSWER + "!")]
    with open_log(sqlite(tmp_path / "a.sqlite", runs)) as log:
        assert find(log, "run") == runs[0]
        with pytest.raises(LogError, match="several"):
            find(log, "run-")
