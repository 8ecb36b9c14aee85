"""Answer the queries of a log in plain Python over its records, to compare with."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, Union, get_args

import pytest
from hypothesis import strategies as st

from demur.guard import Attempt
from demur.observe import Record, SQLSink
from demur.observe.log import Filters
from demur.schema import Finding
from support.postgres_server import PostgresServer
from support.records import HOSTILE, hostile, jsonl, several, sqlite

RUNS = sorted([*several(90), hostile(at=7)], key=lambda one: (one.time, one.id))
"""Runs of all kinds, in the order of a log."""

FORMS = ("lines", "database", pytest.param("postgres", marks=pytest.mark.slow))
"""The forms of a log: the parameters of a fixture that calls `written`."""
Where = Union[str, Path]  # noqa: UP007  # An alias of this kind on Python 3.10 needs `Union`.
"""A file, or a URL."""


def written(form: str, folder: Path, runs: Iterable[Record], request: Any) -> Where:
    """Write these runs to a log: a file "log" in the folder, or a new database of the server."""
    if form != "postgres":
        return (jsonl if form == "lines" else sqlite)(folder / "log", runs)
    server: PostgresServer = request.getfixturevalue("postgres")
    url = server.new()
    SQLSink(url).write_all(runs)
    return url


@dataclass(frozen=True)
class Judgement:
    """Hold the result of one evaluator for one answer."""

    evaluator: str
    finding: Finding
    score: float | None
    """The score; the lowest one if the evaluator judged sentence by sentence."""


def judgements(attempt: Attempt) -> list[Judgement]:
    """Return the result of each evaluator for an answer."""
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


def in_column(text: str | None) -> str:
    """Return a text as it is stored in a column, without NUL, which PostgreSQL cannot store."""
    return (text or "").replace("\0", "\u2400")


def is_of(filters: Filters, evaluator: str) -> bool:
    """Return whether the filters ask for this evaluator, or for any evaluator."""
    return filters.evaluator is None or in_column(filters.evaluator) == in_column(evaluator)


def matches(run: Record, filters: Filters) -> bool:
    """Return whether a run matches the filters."""

    def fits(judged: Judgement) -> bool:
        return is_of(filters, judged.evaluator) and filters.finding in (None, judged.finding)

    asked = (filters.evaluator, filters.finding)
    judged = [one for attempt in run.attempts for one in judgements(attempt)]
    text = in_column(filters.text).casefold()
    return (
        (asked == (None, None) or any(map(fits, judged)))
        and (filters.model is None or in_column(filters.model) == in_column(run.model))
        and (filters.since is None or run.time >= filters.since)
        and (filters.until is None or run.time < filters.until)
        and any(text in in_column(one).casefold() for one in (run.question, run.answer))
    )


TIMES = st.one_of(
    st.sampled_from([run.time for run in RUNS]),
    st.datetimes(datetime(2026, 11, 19), datetime(2026, 11, 24)).map(
        lambda time: time.replace(tzinfo=timezone(timedelta(hours=3)))
    ),
)
TEXTS = ("danube", "%", "_", "äpfel", "ÄPF", "'", "\\", "\x00", "a%b", "4,000 KM", "nowhere", "")
CHOICES: dict[str, st.SearchStrategy[Any]] = {
    "evaluator": st.sampled_from(["RefChecker", "FEWL", HOSTILE, "nobody", ""]),
    "model": st.sampled_from(["gpt-4o-mini", "llama3", HOSTILE, "x' or 1 --"]),
    "finding": st.sampled_from(get_args(Finding)),
    "since": TIMES,
    "until": TIMES,
    "text": st.one_of(st.sampled_from(TEXTS), st.just(HOSTILE), st.text(max_size=2)),
}


@st.composite
def some_filters(draw: st.DrawFn) -> Filters:
    """Draw filters, of which at most four are given."""
    names = draw(st.lists(st.sampled_from(sorted(CHOICES)), unique=True, max_size=4))
    given = {name: draw(CHOICES[name]) for name in names}
    return Filters(**given)
