"""Select runs of a log: by filters, the worst, or by id."""

from __future__ import annotations

from collections.abc import Iterator

from demur.observe.log.filters import EVERY, Filters
from demur.observe.log.opening import Log
from demur.observe.log.reading import Damaged, LogError, read_record
from demur.observe.records import Record


def records(
    log: Log, filters: Filters = EVERY, last: int | None = None
) -> Iterator[Record | Damaged]:
    """Yield the runs of a log, oldest first.

    Args:
        log: The log.
        filters: Which runs to yield.
        last: Yield only this number of newest runs; None yields all.

    Raises:
        LogError: The log is damaged, or its server is gone.
    """
    from demur.observe.log import queries

    for id, text in log.rows(queries.whole_records(filters, last, log.dialect), stream=True):
        yield read_record(text, f"run {id}")


def worst(log: Log, filters: Filters, most: int) -> Iterator[Record | Damaged]:
    """Yield up to `most` runs with the worst first answers: failed ones, then the lowest scores.

    If several evaluators judged an answer, it failed if one evaluator found so, and the lowest
    score counts. With `filters.evaluator`, only this evaluator counts. Answers that neither failed
    nor have a score are left out.

    Raises:
        LogError: The log is damaged, or its server is gone.
    """
    from demur.observe.log import queries

    for (id,) in [*log.rows(queries.worst_runs(filters, most, log.dialect))]:
        for (text,) in [*log.rows(queries.record_of(id))]:
            yield read_record(text, f"run {id}")


def find(log: Log, id: str) -> Record:
    """Return the run with this id, or the only run whose id begins with it.

    Raises:
        LogError: No id begins so, several ids do, or the run cannot be read.
    """
    from demur.observe.log import queries

    rows = [*log.rows(queries.beginning_with(id))]
    if not rows:
        raise LogError(f"{log.name} has no run whose id begins with {id!r}")
    if len(rows) > 1 and rows[0][0] != id:
        ids = ", ".join(known for known, _ in rows[:3])
        raise LogError(
            f"several ids begin with {id!r}: {ids}{' and more' * (len(rows) > 3)}. Give more "
            "characters of the id"
        )
    record = read_record(rows[0][1], rows[0][0])
    if isinstance(record, Damaged):
        raise LogError(f"the run {record.place} in {log.name} cannot be read: {record.why}")
    return record
