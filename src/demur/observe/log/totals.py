"""What a log comes to: how often answers fail, by evaluator, model and day, and at what cost."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, get_args

from pydantic.dataclasses import dataclass

from demur._share import Share
from demur.guard import TraceOutcome, Verdict
from demur.observe.log.filters import EVERY, By, Filters
from demur.observe.log.opening import Log
from demur.observe.log.reading import LogError
from demur.observe.records import WORST_FIRST
from demur.schema import Category, Failure, Finding, Usage

if TYPE_CHECKING:
    from demur.observe.log.queries import Sums

_Key = tuple[str | None, ...]
"""What is told apart, in the order of `Sums.keys`, and an evaluator."""


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
    """The mean score, of an answer judged by sentences the lowest one; None if there is none, or
    the sum is beyond all numbers."""
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
    failures: Mapping[Failure, int]
    """How many first answers fail in each way; one answer may fail in several."""
    categories: Mapping[Category, int]
    """How many first answers are hallucinated in each way, as far as the failures tell."""
    groups: tuple[Group, ...]
    """By day, evaluator and model."""
    answering: Usage
    """What answering cost, later attempts included."""
    judging: Usage
    """What judging cost, of all evaluators."""


def summarise(
    log: Log, filters: Filters = EVERY, by: Collection[By] = (), last: int | None = None
) -> Totals:
    """What the runs of a log come to, summed up by the database. It reads no record.

    Args:
        log: The log.
        filters: Which runs; with `evaluator`, the groups are of that one only.
        by: What to tell apart besides evaluators, which always are: "model", "day".
        last: The newest so many runs only.

    Raises:
        ValueError: `by` has something else.
        LogError: The log is damaged, or its server is gone.
    """
    if unknown := [part for part in by if part not in get_args(By)]:
        known = ", ".join(get_args(By))
        raise ValueError(f"by: expected some of {known}, got {', '.join(map(repr, unknown))}")
    try:
        return _summed(log, filters, last, by)
    except (TypeError, ValueError) as error:  # a value that no sink wrote
        raise LogError(f"{log.name} is damaged: {' '.join(str(error).split())[:200]}") from error


def _summed(log: Log, filters: Filters, last: int | None, by: Collection[By]) -> Totals:
    from demur.observe.log import queries
    from demur.observe.tables import in_column

    sums = queries.Sums(filters, last, by, log.dialect)
    times = list[str]()
    verdicts, outcomes = Counter[Verdict](), Counter[TraceOutcome]()
    spent = Usage()
    for verdict, outcome, number, first, final, *cost in log.rows(sums.of_runs()):
        verdicts[verdict] += number
        if outcome is not None:
            outcomes[outcome] += number
        times += (first, final)
        spent += _usage(cost)
    failures = Counter[Failure]()
    categories = Counter[Category]()
    for told, number in log.rows(sums.of_failures()):
        found = [Failure(one) for one in told.split(", ")]
        failures.update(dict.fromkeys(found, number))
        kinds = {one.category for one in found if one.category is not None}
        categories.update(dict.fromkeys(kinds, number))
    groups = _groups(log, sums)
    judging = sum((group.usage for group in groups), Usage())
    asked = in_column(filters.evaluator)
    return Totals(
        runs=sum(verdicts.values()),
        first=_time(min(times, default=None)),
        last=_time(max(times, default=None)),
        verdicts=_ordered(verdicts),
        outcomes=_ordered(outcomes),
        failures=_ordered(failures),
        categories=_ordered(categories),
        groups=tuple(group for group in groups if asked in (None, group.evaluator)),
        answering=_less(spent, judging),
        judging=judging,
    )


def _groups(log: Log, sums: Sums) -> list[Group]:
    """By what is told apart, and by evaluator: of all evaluators."""
    findings = defaultdict[_Key, Counter[Finding]](Counter)
    scores, total = Counter[_Key](), defaultdict[_Key, float](float)
    width = len(sums.keys) + 1
    for row in log.rows(sums.of_findings()):
        key, (worst, number, scored, score) = row[:width], row[width:]
        # What no sink wrote says nothing.
        findings[key][WORST_FIRST[-1 if worst is None else worst]] += number
        scores[key] += scored
        total[key] += score or 0.0
    groups = []
    for row in log.rows(sums.of_groups()):
        key, cost = row[:width], row[width:]
        known = dict(zip((*sums.keys, "evaluator"), key, strict=True))
        mean = total[key] / scores[key] if scores[key] else None
        group = Group(
            evaluator=known["evaluator"],
            model=known.get("model"),
            day=known.get("day"),
            findings={finding: findings[key][finding] for finding in get_args(Finding)},
            mean=mean if mean is not None and math.isfinite(mean) else None,
            usage=_usage(cost),
        )
        groups.append(group)
    return sorted(groups, key=lambda one: (one.day or "", one.evaluator, one.model or ""))


def _usage(cost: Sequence[float | None]) -> Usage:
    calls, cached, read, written, seconds = (part or 0 for part in cost)
    return Usage(
        calls=int(calls),
        cached=int(cached),
        input_tokens=int(read),
        output_tokens=int(written),
        seconds=seconds,
    )


def _ordered(counts: Counter[Any]) -> dict[Any, int]:
    """The most frequent first."""
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _time(text: str | None) -> datetime | None:
    if text is None:
        return None
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=timezone.utc)


def _less(whole: Usage, part: Usage) -> Usage:
    """What is left; seconds are floats, so a difference may be a little less than nothing."""
    return Usage(**{name: max(0, value - getattr(part, name)) for name, value in whole})
