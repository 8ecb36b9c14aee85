"""Runs out of a log: which ones, and the worst of them."""

from __future__ import annotations

from collections.abc import Iterator

from demur.observe.log.filters import EVERY, Filters
from demur.observe.log.opening import Log
from demur.observe.log.reading import Damaged, LogError, read_record
from demur.observe.records import Record


def records(
    log: Log, filters: Filters = EVERY, last: int | None = None
) -> Iterator[Record | Damaged]:
    """Runs of a log, oldest first.

    Args:
        log: The log.
        filters: Which runs.
        last: The newest so many only.

    Raises:
        LogError: The log is damaged, or its server is gone.
    """
    from demur.observe.log import queries

    for id, text in log.rows(queries.whole_records(filters, last, log.dialect), stream=True):
        yield read_record(text, f"run {id}")


def worst(log: Log, filters: Filters, most: int) -> Iterator[Record | Damaged]:
    """The runs whose first answer is the worst: those that failed, then the lowest scores.

    Where several evaluators judged an answer, it failed if one says so, and the lowest score
    counts; with `filters.evaluator` only that one's. Left out are answers of which nothing was
    found.

    Raises:
        LogError: The log is damaged, or its server is gone.
    """
    from demur.observe.log import queries

    for (id,) in [*log.rows(queries.worst_runs(filters, most, log.dialect))]:
        for (text,) in [*log.rows(queries.record_of(id))]:
            yield read_record(text, f"run {id}")


def find(log: Log, id: str) -> Record:
    """The run of an id, or of the only id that begins like this.

    Raises:
        LogError: There is none, or there are several, or it cannot be read.
    """
    from demur.observe.log import queries

    rows = [*log.rows(queries.beginning_with(id))]
    if not rows:
        raise LogError(f"{log.name} has no run whose id begins with {id!r}")
    if len(rows) > 1 and rows[0][0] != id:
        ids = ", ".join(known for known, _ in rows[:3])
        raise LogError(f"several ids begin with {id!r}: {ids}{' and more' * (len(rows) > 3)}")
    record = read_record(rows[0][1], rows[0][0])
    if isinstance(record, Damaged):
        raise LogError(f"the run {record.place} in {log.name} cannot be read: {record.why}")
    return record
