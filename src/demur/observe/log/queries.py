"""Build the queries on a log's tables, for SQLite and PostgreSQL.

They are the same for both, except the search that ignores the case of letters.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Double,
    Select,
    case,
    cast,
    func,
    literal_column,
    or_,
    select,
    true,
)

from demur.observe.log.filters import By, Filters
from demur.observe.records import WORST_FIRST, moment
from demur.observe.tables import COST, answers, evaluations, in_column, records, runs

_worst = func.min(
    case({finding: at for at, finding in enumerate(WORST_FIRST)}, value=evaluations.c.finding)
)
"""The worst finding of a group of evaluations, as an index of `WORST_FIRST`."""
_DAY = func.substr(runs.c.time, literal_column("1"), literal_column("10"))
_FIRST = evaluations.c.attempt == 1
_ALL = func.count().label("number")


def number_of_runs() -> Select[Any]:
    """Return the query for the number of runs."""
    return select(func.count()).select_from(runs)


def whole_records(filters: Filters, last: int | None, dialect: str) -> Select[Any]:
    """Return the query for ids and records, oldest first; a lost record is null."""
    chosen = _chosen(filters, last, dialect).subquery()
    return (
        select(chosen.c.id, records.c.record)
        .select_from(chosen.outerjoin(records, records.c.id == chosen.c.id))
        .order_by(chosen.c.time, chosen.c.id)
    )


def record_of(id: str) -> Select[Any]:
    """Return the query for one record."""
    return select(records.c.record).where(records.c.id == id)


def beginning_with(id: str) -> Select[Any]:
    """Return the query for up to four records whose ids begin with `id`."""
    begins = in_column(id)
    here = (records.c.id >= begins, records.c.id < f"{begins}\U0010ffff")
    return select(records).where(*here).order_by(records.c.id).limit(4)


def worst_runs(filters: Filters, most: int, dialect: str) -> Select[Any]:
    """Return the query for the ids of runs whose first answer failed, then of the lowest scores."""
    failed = func.max(case((evaluations.c.finding == "failed", 1), else_=0))
    score = func.min(evaluations.c.score)
    return (
        select(runs.c.id)
        .join(evaluations, evaluations.c.run == runs.c.id)
        .where(_FIRST, *_of(filters.evaluator), *_conditions(filters, dialect))
        .group_by(runs.c.id, runs.c.time)
        .having(or_(failed == 1, score.is_not(None)))
        .order_by(failed.desc(), score.is_(None), score, runs.c.time.desc(), runs.c.id)
        .limit(most)
    )


# --- Sums -----------------------------------------------------------------------------------------


class Sums:
    """Build the queries that sum up runs in a few rows.

    Args:
        filters: Which runs to sum up.
        last: Sum up only this number of newest runs; None sums up all.
        by: What to group by, besides evaluators.
        dialect: The kind of the database, "sqlite" or "postgresql".
    """

    def __init__(
        self, filters: Filters, last: int | None, by: Collection[By], dialect: str
    ) -> None:
        self._conditions = _conditions(filters, dialect)
        if last is not None:
            self._conditions = [runs.c.id.in_(_chosen(filters, last, dialect, only_id=True))]
        apart = {"day": _DAY, "model": runs.c.model}
        self.keys = [key for key in apart if key in by]
        """The columns to group by besides evaluators, in order."""
        self._keys = [apart[key].label(key) for key in self.keys]

    def of_runs(self) -> Select[Any]:
        """Return the query for counts, times and costs, by first verdict and outcome."""
        kinds = (runs.c.first_verdict, runs.c.outcome)
        times = (func.min(runs.c.time), func.max(runs.c.time))
        sums = select(*kinds, _ALL, *times, *_cost(runs))
        return sums.where(*self._conditions).group_by(*kinds)

    def of_failures(self) -> Select[Any]:
        """Return the query for the number of first answers, by their failures."""
        failed = select(answers.c.failures, _ALL).where(
            answers.c.attempt == 1, answers.c.failures.is_not(None), *self._are(answers)
        )
        return failed.group_by(answers.c.failures)

    def of_groups(self) -> Select[Any]:
        """Return the query for the cost of evaluations, by `keys` and evaluator."""
        kinds = (*self._keys, evaluations.c.evaluator)
        sums = select(*kinds, *_cost(evaluations)).select_from(self._joined(evaluations))
        return sums.where(*self._are(evaluations)).group_by(*kinds)

    def of_findings(self) -> Select[Any]:
        """Return the query for first answers, by `keys`, evaluator and worst finding.

        Each row has the number of answers, the number of scores, and the sum of the scores. If an
        answer has several scores, the lowest counts.
        """
        judged = (
            select(
                evaluations.c.run,
                evaluations.c.evaluator,
                _worst.label("finding"),
                func.min(evaluations.c.score).label("score"),
            )
            .where(_FIRST, *self._are(evaluations))
            .group_by(evaluations.c.run, evaluations.c.evaluator)
            .subquery()
        )
        kinds = (*self._keys, judged.c.evaluator, judged.c.finding)
        scores = (func.count(judged.c.score), func.sum(judged.c.score))
        return select(*kinds, _ALL, *scores).select_from(self._joined(judged)).group_by(*kinds)

    def _joined(self, judged: Any) -> Any:
        """Join the runs, if the query groups by one of their columns."""
        return judged.join(runs, runs.c.id == judged.c.run) if self._keys else judged

    def _are(self, table: Any) -> list[ColumnElement[bool]]:
        """Return the conditions that a row belongs to the chosen runs."""
        if not self._conditions:
            return []
        return [table.c.run.in_(select(runs.c.id).where(*self._conditions))]


def _cost(table: Any) -> list[ColumnElement[Any]]:
    # As floats, since a sum of integers may be too large.
    return [func.sum(cast(table.c[name], Double)) for name in COST]


# --- Which runs -----------------------------------------------------------------------------------


def _chosen(filters: Filters, last: int | None, dialect: str, only_id: bool = False) -> Select[Any]:
    columns = (runs.c.id,) if only_id else (runs.c.id, runs.c.time)
    chosen: Select[Any] = select(*columns).where(*_conditions(filters, dialect))
    if last is None:
        return chosen
    return chosen.order_by(runs.c.time.desc(), runs.c.id.desc()).limit(last)


def _of(evaluator: str | None) -> list[ColumnElement[bool]]:
    return [] if evaluator is None else [evaluations.c.evaluator == in_column(evaluator)]


def _conditions(filters: Filters, dialect: str) -> list[ColumnElement[bool]]:
    """Return the filters as conditions on runs."""
    parts: list[ColumnElement[bool]] = []
    if filters.since is not None:
        parts.append(runs.c.time >= moment(filters.since))
    if filters.until is not None:
        parts.append(runs.c.time < moment(filters.until))
    if filters.model is not None:
        parts.append(runs.c.model == in_column(filters.model))
    if filters.text is not None:
        part = in_column(filters.text)
        parts.append(
            or_(*(_holds(text, part, dialect) for text in (runs.c.question, runs.c.answer)))
        )
    if filters.evaluator is not None or filters.finding is not None:
        judged = select(evaluations.c.run).where(true(), *_of(filters.evaluator))
        if filters.finding is not None:
            one = (evaluations.c.run, evaluations.c.attempt, evaluations.c.evaluator)
            judged = judged.group_by(*one).having(_worst == WORST_FIRST.index(filters.finding))
        parts.append(runs.c.id.in_(judged))
    return parts


def _holds(text: Any, part: str, dialect: str) -> ColumnElement[bool]:
    """Return the condition that a text contains a part, in upper or lower case."""
    if dialect == "postgresql":
        return func.strpos(func.lower(text), func.lower(part)) > 0
    return func.holds(text, part.casefold()) == 1  # demur's own function
