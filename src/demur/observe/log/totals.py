"""What a log comes to: how often answers fail, by evaluator, model and day, and at what cost."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timezone
from typing import Any, Literal, get_args

from pydantic import ValidationError
from pydantic.dataclasses import dataclass

from demur._share import Share
from demur.guard import TraceOutcome, Verdict
from demur.observe.log.opening import Log
from demur.observe.log.reading import Damaged, LogError
from demur.observe.log.selection import EVERY, MERGED, Filters, as_text, conditions
from demur.schema import Finding, Usage

By = Literal["evaluator", "model", "day"]

_USAGE = ("calls", "cached", "input_tokens", "output_tokens", "call_seconds")
_SUMS = ", ".join(f"sum({column})" for column in _USAGE)


@dataclass(frozen=True)
class Group:
    """What one evaluator found of first answers: what the chain answers by itself."""

    evaluator: str
    model: str | None
    """The chat model that answered; None where it is not known, or not asked for."""
    day: str | None
    """In UTC, as YYYY-MM-DD; None if not asked for."""
    findings: Mapping[Finding, int]
    """How many answers have which finding. Where an answer was judged sentence by sentence it has
    one: failed if any failed; else undetermined, if any is; else passed, scored, nothing
    to check."""
    mean: float | None
    """The mean score, of an answer judged by sentences the lowest one; None if there is none."""
    usage: Usage
    """What judging cost, later attempts of guards included."""

    @property
    def judged(self) -> int:
        """How many first answers."""
        return sum(self.findings.values())

    @property
    def failure(self) -> Share:
        """Failed of all that passed or failed."""
        failed = self.findings["failed"]
        return Share(failed, failed + self.findings["passed"])


@dataclass(frozen=True)
class Totals:
    """What the runs come to."""

    runs: int
    first: datetime | None
    """When the first run ended, in UTC; None of no runs."""
    last: datetime | None
    """When the last run ended."""
    verdicts: Mapping[Verdict, int]
    """How many first answers have which verdict."""
    outcomes: Mapping[TraceOutcome, int]
    """How many calls of guards ended in which way."""
    groups: tuple[Group, ...]
    """By day, evaluator and model."""
    answering: Usage
    """What answering cost, later attempts included."""
    judging: Usage
    """What judging cost, of all evaluators."""


def summarise(log: Log, filters: Filters = EVERY, by: Collection[By] = ()) -> Totals:
    """What the runs of a log come to.

    Args:
        log: The log. Records in it that are no JSON are named in its `damaged` then.
        filters: Which runs; with `evaluator`, the groups are of that one only.
        by: What to tell apart besides evaluators, which always are: "model", "day".

    Raises:
        ValueError: `by` has something else.
        LogError: The log is damaged.
    """
    if unknown := [part for part in by if part not in get_args(By)]:
        known = ", ".join(get_args(By))
        raise ValueError(f"by: expected some of {known}, got {', '.join(map(repr, unknown))}")
    where, values = conditions(filters)
    chosen = f"runs r where {where}"
    broken = f"select id from records r where {where} and not json_valid(record)"
    try:
        ((runs, first, last, *spent),) = log.rows(
            f"select count(*), min(time), max(time), {_SUMS} from {chosen}", *values
        )
        judging = log.rows(
            f"select {_SUMS} from evaluations where run in (select r.id from {chosen})", *values
        )
        judged = _usage(*judging)
        totals = Totals(
            runs=runs,
            first=_time(first),
            last=_time(last),
            verdicts=_counts(log, "first_verdict", chosen, values),
            outcomes=_counts(log, "outcome", chosen, values),
            groups=_groups(log, filters, by),
            answering=_less(_usage(spent), judged),
            judging=judged,
        )
    except (ValidationError, ValueError) as error:
        raise LogError(f"{log.path} is damaged: {' '.join(str(error).split())[:200]}") from error
    ids = [id for (id,) in log.rows(broken, *values)]
    log.damaged += [Damaged(f"run {id}", "it is no JSON") for id in ids]
    return totals


def _groups(log: Log, filters: Filters, by: Collection[By]) -> tuple[Group, ...]:
    where, values = conditions(filters)
    if filters.evaluator is not None:
        where += " and e.evaluator = ?"
        values.append(as_text(filters.evaluator))
    model = "r.model" if "model" in by else "null"
    day = "substr(r.time, 1, 10)" if "day" in by else "null"
    named = ", ".join(f"sum(e.{column}) as {column}" for column in _USAGE)
    counts = ", ".join(
        f"sum(attempt = 1 and finding = '{finding}')" for finding in get_args(Finding)
    )
    query = f"""
        with each as (
            select e.evaluator, {model} as model, {day} as day, e.attempt, {MERGED} as finding,
                min(e.score) as score, {named}
            from runs r join evaluations e on e.run = r.id where {where}
            group by e.run, e.attempt, e.evaluator
        )
        select evaluator, model, day, {counts}, avg(case when attempt = 1 then score end), {_SUMS}
        from each group by evaluator, model, day order by day, evaluator, model"""
    groups = []
    for evaluator, model_of, day_of, *rest in log.rows(query, *values):
        number = len(get_args(Finding))
        findings = dict(zip(get_args(Finding), rest[:number], strict=True))
        mean, *spent = rest[number:]
        groups.append(Group(evaluator, model_of, day_of, findings, mean, _usage(spent)))
    return tuple(groups)


def _counts(log: Log, column: str, chosen: str, values: Sequence[Any]) -> dict[Any, int]:
    query = (
        f"select {column}, count(*) as number from {chosen} and {column} is not null "
        "group by 1 order by number desc, 1"
    )
    return dict(log.rows(query, *values))


def _time(text: str | None) -> datetime | None:
    if text is None:
        return None
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=timezone.utc)


def _usage(sums: Sequence[Any]) -> Usage:
    calls, cached, read, written, seconds = (total or 0 for total in sums)
    return Usage(
        calls=calls, cached=cached, input_tokens=read, output_tokens=written, seconds=seconds
    )


def _less(whole: Usage, part: Usage) -> Usage:
    """What is left; seconds are floats, so a difference may be a little less than nothing."""
    return Usage(**{name: max(0, value - getattr(part, name)) for name, value in whole})
