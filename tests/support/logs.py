"""What is asked of a log, in plain Python over the records."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any, get_args

from hypothesis import strategies as st

from demur.guard import Attempt, TraceOutcome
from demur.observe import Record
from demur.observe.log import Filters, Judgement
from demur.schema import Finding
from support.records import HOSTILE, hostile, several

RUNS = sorted([*several(90), hostile(at=7)], key=lambda one: (one.time, one.id))
"""Runs of all kinds, as a log has them in order."""
AS_WRITTEN = [run.id for run in RUNS]
"""The first one has the number 1."""


def judgements(attempt: Attempt) -> list[Judgement]:
    """What each evaluator says of an answer."""
    order: tuple[Finding, ...] = ("failed", "undetermined", "passed", "scored", "nothing_to_check")
    named: dict[str, list[Any]] = {}
    for one in attempt.evaluations:
        named.setdefault(one.name, []).append(one)
    return [
        Judgement(
            name,
            next(kind for kind in order if kind in (one.finding for one in ones)),
            min((one.score for one in ones if one.score is not None), default=None),
        )
        for name, ones in named.items()
    ]


def matches(run: Record, filters: Filters) -> bool:
    """Whether a run is one of those."""

    def fits(judged: Judgement) -> bool:
        score = judged.score
        return (
            filters.evaluator in (None, judged.evaluator)
            and filters.finding in (None, judged.finding)
            and (filters.min_score is None or (score is not None and score >= filters.min_score))
            and (filters.max_score is None or (score is not None and score <= filters.max_score))
        )

    asked = (filters.evaluator, filters.finding, filters.min_score, filters.max_score)
    judged = [one for attempt in run.attempts for one in judgements(attempt)]
    text = (filters.text or "").casefold()
    return (
        (asked == (None,) * 4 or any(map(fits, judged)))
        and filters.model in (None, run.model)
        and filters.name in (None, run.name)
        and filters.outcome in (None, run.outcome)
        and (filters.since is None or run.time >= filters.since)
        and (filters.until is None or run.time < filters.until)
        and run.id.startswith(filters.id or "")
        and (filters.after is None or run.id in AS_WRITTEN[max(0, filters.after) :])
        and (text in (run.question or "").casefold() or text in run.answer.casefold())
    )


TIMES = st.one_of(
    st.sampled_from([run.time for run in RUNS]),
    st.datetimes(datetime(2026, 11, 19), datetime(2026, 11, 24)).map(
        lambda time: time.replace(tzinfo=timezone(timedelta(hours=3)))
    ),
)
SCORES = st.one_of(st.floats(0, 1), st.sampled_from([0.0, 0.25, 0.5, 1.0]))
TEXTS = ("danube", "%", "_", "äpfel", "ÄPF", "'", "\\", "\x00", "a%b", "4,000 KM", "nowhere", "")
CHOICES: dict[str, st.SearchStrategy[Any]] = {
    "evaluator": st.sampled_from(["RefChecker", "FEWL", HOSTILE, "nobody", ""]),
    "model": st.sampled_from(["gpt-4o-mini", "llama3", HOSTILE, "x' or 1 --"]),
    "finding": st.sampled_from(get_args(Finding)),
    "outcome": st.sampled_from(get_args(TraceOutcome)),
    "name": st.sampled_from(["rag", "guard", HOSTILE, "%"]),
    "since": TIMES,
    "until": TIMES,
    "text": st.one_of(st.sampled_from(TEXTS), st.just(HOSTILE), st.text(max_size=2)),
    "min_score": SCORES,
    "max_score": SCORES,
    "id": st.one_of(
        st.sampled_from(RUNS).flatmap(lambda run: st.integers(0, 36).map(lambda n: run.id[:n])),
        st.sampled_from(["%", "_", "\U0010ffff", "x"]),
    ),
    "after": st.integers(-2, len(RUNS) + 2),
}


@st.composite
def some_filters(draw: st.DrawFn) -> Filters:
    """Filters of which up to four are given."""
    names = draw(st.lists(st.sampled_from(sorted(CHOICES)), unique=True, max_size=4))
    given = {name: draw(CHOICES[name]) for name in names}
    for low, high in (("min_score", "max_score"), ("since", "until")):
        if low in given and high in given:
            given[low], given[high] = sorted((given[low], given[high]))
    return Filters(**given)
