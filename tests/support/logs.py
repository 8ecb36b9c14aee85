"""What is asked of a log, in plain Python over the records."""

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
"""Runs of all kinds, as a log has them in order."""

FORMS = ("lines", "database", pytest.param("postgres", marks=pytest.mark.slow))
"""What a log may be: the parameters of a fixture that makes one by `written`."""
Where = Union[str, Path]  # noqa: UP007  # of Python 3.10
"""A file, or a URL."""


def written(form: str, folder: Path, runs: Iterable[Record], request: Any) -> Where:
    """A log of these runs: a file called "log" in a folder, or a new database of a server."""
    if form != "postgres":
        return (jsonl if form == "lines" else sqlite)(folder / "log", runs)
    server: PostgresServer = request.getfixturevalue("postgres")
    url = server.new()
    SQLSink(url).write_all(runs)
    return url


@dataclass(frozen=True)
class Judgement:
    """What one evaluator says of one answer."""

    evaluator: str
    finding: Finding
    score: float | None
    """The lowest, where it judged sentence by sentence."""


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


def in_column(text: str | None) -> str:
    """A text as a column has it: PostgreSQL knows no NUL."""
    return (text or "").replace("\0", "\u2400")


def is_of(filters: Filters, evaluator: str) -> bool:
    """Whether the filters ask for this evaluator, or for any."""
    return filters.evaluator is None or in_column(filters.evaluator) == in_column(evaluator)


def matches(run: Record, filters: Filters) -> bool:
    """Whether a run is one of those."""

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
    """Filters of which up to four are given."""
    names = draw(st.lists(st.sampled_from(sorted(CHOICES)), unique=True, max_size=4))
    given = {name: draw(CHOICES[name]) for name in names}
    return Filters(**given)
