"""Runs out of a log: which ones, and the worst of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, get_args

from demur._text import replace_surrogates
from demur.observe.log.opening import Log
from demur.observe.log.reading import Damaged, LogError, read_record
from demur.observe.records import WORST_FIRST, Record
from demur.observe.tables import moment
from demur.schema import Finding

MERGED = "case {} else '{}' end".format(
    " ".join(f"when max(e.finding = '{finding}') then '{finding}'" for finding in WORST_FIRST[:-1]),
    WORST_FIRST[-1],
)
"""What the evaluations `e` of one evaluator say of one answer together: it judged sentence by
sentence. Their score is the lowest."""


@dataclass(frozen=True)
class Filters:
    """Which runs of a log. Without any, all.

    `evaluator` and `finding` are about what one evaluator says of one answer of the run, of a
    guard's any attempt; where it judged sentence by sentence, about the worst finding.

    Raises:
        ValueError: A value is none of those expected.
    """

    evaluator: str | None = None
    """The name of an evaluator that judged it."""
    finding: Finding | None = None
    """What an evaluator says."""
    model: str | None = None
    """The chat model that answered."""
    since: datetime | None = None
    """The earliest end of the run."""
    until: datetime | None = None
    """The run ended before."""
    text: str | None = None
    """Stands in the question or the last answer, in letters of either case."""

    def __post_init__(self) -> None:
        if self.finding is not None and self.finding not in get_args(Finding):
            known = ", ".join(get_args(Finding))
            raise ValueError(f"finding: expected one of {known}, got {self.finding!r}")
        for name in ("since", "until"):
            time = getattr(self, name)
            if time is not None and time.tzinfo is None:
                raise ValueError(f"{name}: expected a time with a time zone, got {time}")


EVERY = Filters()
"""Matches every run."""


def records(
    log: Log, filters: Filters = EVERY, last: int | None = None
) -> Iterator[Record | Damaged]:
    """Runs of a log, oldest first.

    Args:
        log: The log.
        filters: Which runs.
        last: The newest so many only.

    Raises:
        LogError: The log is damaged.
    """
    where, values = conditions(filters)
    chosen = f"select r.id, r.time, r.record from records r where {where}"
    if last is not None:
        chosen += " order by r.time desc, r.id desc limit ?"
        values.append(last)
    for id, _, text in log.rows(f"select * from ({chosen}) order by 2, 1", *values):
        yield read_record(text, f"run {id}")


def worst(log: Log, filters: Filters, most: int) -> Iterator[Record | Damaged]:
    """The runs whose first answer is the worst: those that failed, then the lowest scores.

    Where several evaluators judged an answer, it failed if one says so, and the lowest score
    counts; with `filters.evaluator` only that one's. Left out are answers of which nothing was
    found.

    Raises:
        LogError: The log is damaged.
    """
    where, values = conditions(filters)
    if filters.evaluator is not None:
        where += " and e.evaluator = ?"
        values.append(as_text(filters.evaluator))
    query = f"""
        select r.id, max(e.finding = 'failed') as failed, min(e.score) as score
        from records r join evaluations e on e.run = r.id
        where {where} and e.attempt = 1 group by r.id having failed or score is not null
        order by failed desc, score is null, score, r.time desc, r.id limit ?"""
    for id, *_ in [*log.rows(query, *values, most)]:
        for (text,) in log.rows("select record from records where id = ?", id):
            yield read_record(text, f"run {id}")


def find(log: Log, id: str) -> Record:
    """The run of an id, or of the only id that begins like this.

    Raises:
        LogError: There is none, or there are several, or it cannot be read.
    """
    begins = "select id, record from records where substr(id, 1, ?) = ? order by id limit 4"
    rows = [*log.rows(begins, len(id), as_text(id))]
    if not rows:
        raise LogError(f"{log.path} has no run whose id begins with {id!r}")
    if len(rows) > 1 and rows[0][0] != id:
        ids = ", ".join(known for known, _ in rows[:3])
        raise LogError(f"several ids begin with {id!r}: {ids}{' and more' * (len(rows) > 3)}")
    record = read_record(rows[0][1], rows[0][0])
    if isinstance(record, Damaged):
        raise LogError(f"the run {record.place} in {log.path} cannot be read: {record.why}")
    return record


def conditions(filters: Filters) -> tuple[str, list[Any]]:
    """The filters as a condition on `records r`, and the values bound in it."""
    parts, values = ["1"], list[Any]()

    def add(part: str, *bound: Any) -> None:
        parts.append(part)
        values.extend(bound)

    if filters.since is not None:
        add("r.time >= ?", moment(filters.since))
    if filters.until is not None:
        add("r.time < ?", moment(filters.until))
    if filters.model is not None:
        add("r.id in (select id from runs where model = ?)", as_text(filters.model))
    if filters.text is not None:
        part = as_text(filters.text).casefold()
        holds = "select id from runs where holds(question, ?) or holds(answer, ?)"
        add(f"r.id in ({holds})", part, part)
    if filters.evaluator is not None or filters.finding is not None:
        evaluations = "select e.run from evaluations e"
        if filters.evaluator is not None:
            evaluations += " where e.evaluator = ?"
            values.append(as_text(filters.evaluator))
        if filters.finding is not None:
            evaluations += f" group by e.run, e.attempt, e.evaluator having {MERGED} = ?"
            values.append(filters.finding)
        add(f"r.id in ({evaluations})")
    return " and ".join(parts), values


def as_text(argument: str) -> str:
    """An argument, which may be of bytes that are no text, as the views have texts: up to NUL."""
    return replace_surrogates(argument).partition("\0")[0]
