"""Runs out of a log: which ones, in which order, and the worst of them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, fields
from datetime import datetime, timezone
from typing import Any, get_args

from pydantic.dataclasses import dataclass as validated

from demur._text import replace_surrogates
from demur.guard import TraceOutcome, Verdict
from demur.observe.log.errors import LogError
from demur.observe.log.opening import Log
from demur.observe.log.reading import Damaged, read_record
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

    `evaluator`, `finding` and the scores are about what one evaluator says of one answer of the
    run, of a guard's any attempt; where it judged sentence by sentence, about the worst finding and
    the lowest score.
    """

    evaluator: str | None = None
    """The name of an evaluator that judged it."""
    model: str | None = None
    """The chat model that answered."""
    finding: Finding | None = None
    """What an evaluator says."""
    outcome: TraceOutcome | None = None
    """How a guard's call ended."""
    name: str | None = None
    """The run's name."""
    since: datetime | None = None
    """The earliest end of the run."""
    until: datetime | None = None
    """The run ended before."""
    text: str | None = None
    """Stands in the question or the last answer, in letters of either case."""
    min_score: float | None = None
    """The least score."""
    max_score: float | None = None
    """The greatest score."""
    id: str | None = None
    """Begins the run's id."""
    after: int | None = None
    """The run was written after the one of this number (see `demur.observe.tables`)."""

    def __post_init__(self) -> None:
        """Refuse what can match nothing.

        Raises:
            ValueError: A value is none of those expected, or two exclude each other.
        """
        for field, known in (("finding", get_args(Finding)), ("outcome", get_args(TraceOutcome))):
            value = getattr(self, field)
            if value is not None and value not in known:
                raise ValueError(f"{field}: expected one of {', '.join(known)}, got {value!r}")
        for field in ("min_score", "max_score"):
            if math.isnan(getattr(self, field) or 0.0):
                raise ValueError(f"{field}: expected a number, got nan")
        for field in ("since", "until"):
            value = getattr(self, field)
            if value is not None and value.tzinfo is None:
                raise ValueError(f"{field}: expected a time with a time zone, got {value}")
        for low, high in (("min_score", "max_score"), ("since", "until")):
            least, greatest = getattr(self, low), getattr(self, high)
            if least is not None and greatest is not None and least > greatest:
                raise ValueError(
                    f"{low} ({least}) is more than {high} ({greatest}): nothing matches"
                )
        for option in fields(self):
            value = getattr(self, option.name)
            if isinstance(value, str):  # an argument of bytes that are no text
                object.__setattr__(self, option.name, replace_surrogates(value))


EVERY = Filters()
"""Matches every run."""


@validated(frozen=True)
class Judgement:
    """What one evaluator says of one answer."""

    evaluator: str
    finding: Finding
    score: float | None
    """The lowest, where it judged sentence by sentence."""


@validated(frozen=True)
class Listed:
    """A run as a list has it."""

    id: str
    time: datetime
    """When it ended, in UTC."""
    name: str | None
    model: str | None
    question: str | None
    answer: str
    """The last one."""
    attempts: int
    """How many answers there are."""
    verdict: Verdict
    """On the last answer."""
    outcome: TraceOutcome | None
    judgements: tuple[Judgement, ...]
    """On the last answer."""


def select(log: Log, filters: Filters = EVERY, last: int | None = None) -> Iterator[Listed]:
    """Runs of a log, oldest first.

    Args:
        log: The log.
        filters: Which runs.
        last: The newest so many only.

    Raises:
        LogError: The log is damaged.
    """
    columns = (
        "r.id, r.time, r.name, r.model, r.question, r.answer, r.attempts, r.verdict, r.outcome"
    )
    query, values = _chosen(columns, filters, last)
    for id, time, *texts, attempts, verdict, outcome in log.rows(query, *values):
        judgements = log.rows(
            f"select e.evaluator, {MERGED}, min(e.score) from evaluations e "
            "where e.run = ? and e.attempt = ? group by e.evaluator order by min(e.place)",
            *(id, attempts),
        )
        name, model, question, answer = texts
        with log.sound():
            listed = Listed(
                id=id,
                time=as_time(log, time),
                name=name,
                model=model,
                question=question,
                answer=answer,
                attempts=attempts,
                verdict=verdict,
                outcome=outcome,
                judgements=tuple(Judgement(*row) for row in judgements),
            )
        yield listed


def records(
    log: Log,
    filters: Filters = EVERY,
    last: int | None = None,
) -> Iterator[Record | Damaged]:
    """As `select`, each run whole."""
    query, values = _chosen("r.id, r.record", filters, last)
    for id, text in log.rows(query, *values):
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
    evaluator, named = _named(filters)
    query = f"""
        select r.number, max(e.finding = 'failed') as failed, min(e.score) as score, r.time as time
        from runs r cross join evaluations e on e.run = r.id
        where {where} and e.attempt = 1 and {evaluator} group by r.number
        having failed or score is not null
        order by failed desc, score is null, score, time desc, r.id limit ?"""
    for number, *_ in [*log.rows(query, *values, *named, most)]:
        for id, text in log.rows("select id, record from runs where number = ?", number):
            yield read_record(text, f"run {id}")


def find(log: Log, id: str) -> Record:
    """The run of an id, or of the only id that begins like this.

    Raises:
        LogError: There is none, or there are several, or it cannot be read.
    """
    where, values = conditions(Filters(id=id))
    query = f"select r.id, r.record from runs r where {where} order by r.id limit 4"
    rows = [*log.rows(query, *values)]
    if not rows:
        raise LogError(f"{log.path} has no run whose id begins with {id!r}")
    if len(rows) > 1 and rows[0][0] != id:
        ids = ", ".join(id_ for id_, _ in rows[:3])
        more = " and more" if len(rows) > 3 else ""
        raise LogError(f"several ids begin with {id!r}: {ids}{more}")
    record = read_record(rows[0][1], rows[0][0])
    if isinstance(record, Damaged):
        raise LogError(f"{log.path}: run {record.place} cannot be read: {record.why}")
    return record


def short(log: Log, id: str, least: int = 8) -> str:
    """So much of an id that no other run's begins like it."""
    neighbours = log.rows(
        "select max(id) from runs where id < ? union all select min(id) from runs where id > ?",
        *(id, id),
    )
    same = max(_common(id, neighbour or "") for (neighbour,) in neighbours)
    return id[: max(least, same + 1)]


def _common(first: str, second: str) -> int:
    pairs = enumerate(zip(first, second, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(first), len(second)))


def as_time(log: Log, text: str) -> datetime:
    """A time as the tables have it."""
    try:
        return datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=timezone.utc)
    except (ValueError, TypeError) as error:
        raise LogError(f"{log.path} is damaged: a run has the time {text!r:.80}") from error


# --- As SQL ---------------------------------------------------------------------------------------


def conditions(filters: Filters) -> tuple[str, list[Any]]:
    """The filters as a condition on `runs r`, and the values bound in it."""
    parts, values = ["1"], list[Any]()

    def add(part: str, *bound: Any) -> None:
        parts.append(part)
        values.extend(bound)

    for column in ("model", "name", "outcome"):
        value = getattr(filters, column)
        if value is not None:
            add(f"r.{column} = ?", value)
    if filters.since is not None:
        add("r.time >= ?", moment(filters.since))
    if filters.until is not None:
        add("r.time < ?", moment(filters.until))
    if filters.id is not None:
        add("r.id >= ? and substr(r.id, 1, ?) = ?", filters.id, len(filters.id), filters.id)
    if filters.after is not None:
        # As they are few, they are found by number, and not by looking through all in their order.
        add("likelihood(r.number > ?, 0.001)", filters.after)
    judged = _judged(filters)
    if judged is not None:
        add(judged[0], *judged[1])
    if filters.text is not None:
        add("(holds(r.question, ?) or holds(r.answer, ?))", *[filters.text.casefold()] * 2)
    return " and ".join(parts), values


def _judged(filters: Filters) -> tuple[str, list[Any]] | None:
    having, values = list[str](), list[Any]()
    for part, value in (
        (f"{MERGED} = ?", filters.finding),
        ("min(e.score) >= ?", filters.min_score),
        ("min(e.score) <= ?", filters.max_score),
    ):
        if value is not None:
            having.append(part)
            values.append(value)
    if not having and filters.evaluator is None:
        return None
    evaluator, named = _named(filters)
    query = f"select 1 from evaluations e where e.run = r.id and {evaluator}"
    if having:
        query += f" group by e.attempt, e.evaluator having {' and '.join(having)}"
    return f"exists ({query})", [*named, *values]


def _named(filters: Filters) -> tuple[str, list[Any]]:
    return ("1", []) if filters.evaluator is None else ("e.evaluator = ?", [filters.evaluator])


def _chosen(columns: str, filters: Filters, last: int | None) -> tuple[str, list[Any]]:
    where, values = conditions(filters)
    if last is not None:
        # In two steps: where an index can tell which runs it is, no other one is read.
        where = (
            f"r.number in (select r.number from runs r where {where} "
            "order by r.time desc, r.id desc limit ?)"
        )
        values.append(last)
    return f"select {columns} from runs r where {where} order by r.time, r.id", values
