"""Sum up a log: how often answers fail and what they cost, by evaluator, model and day."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, get_args

from pydantic.dataclasses import dataclass

from demur.guard import TraceOutcome, Verdict
from demur.observe.log.filters import EVERY, By, Filters
from demur.observe.log.opening import Log
from demur.observe.log.reading import LogError
from demur.observe.records import WORST_FIRST
from demur.schema import Category, Failure, Finding, Share, Usage

if TYPE_CHECKING:
    from demur.observe.log.queries import Sums

_Key = tuple[str | None, ...]
"""The values of the columns in `Sums.keys`, and then the evaluator."""


@dataclass(frozen=True)
class Group:
    """Sum up the results of one evaluator for first answers, which are the chain's own."""

    evaluator: str
    """The evaluator's name."""
    model: str | None
    """The chat model that answered; None if it is not known, or if `by` leaves it out."""
    day: str | None
    """The day in UTC, as YYYY-MM-DD; None if `by` leaves it out."""
    findings: Mapping[Finding, int]
    """The number of answers with each finding. If an answer was judged sentence by sentence, it has
    the worst finding: failed, then undetermined, passed, scored, nothing to check."""
    mean: float | None
    """The mean score; None if there are no scores, or if their sum is not finite. If an answer was
    judged sentence by sentence, its lowest score counts."""
    usage: Usage
    """The usage of judging, including later attempts of guards."""

    @property
    def judged(self) -> int:
        """Return the number of first answers."""
        return sum(self.findings.values())

    @property
    def failure(self) -> Share:
        """Return the share of failed answers among those that passed or failed."""
        failed = self.findings["failed"]
        return Share(failed, failed + self.findings["passed"])


@dataclass(frozen=True)
class Totals:
    """Sum up the runs of a log."""

    runs: int
    """The number of runs."""
    first: datetime | None
    """The time at which the first run ended, in UTC; None if there are no runs."""
    last: datetime | None
    """The time at which the last run ended, in UTC; None if there are no runs."""
    verdicts: Mapping[Verdict, int]
    """The number of first answers with each verdict."""
    outcomes: Mapping[TraceOutcome, int]
    """The number of guards' calls with each outcome."""
    failures: Mapping[Failure, int]
    """The number of first answers with each failure; an answer may have several failures."""
    categories: Mapping[Category, int]
    """The number of first answers in each category of hallucination that their failures have."""
    groups: tuple[Group, ...]
    """The results by day, evaluator and model."""
    answering: Usage
    """The usage of answering, including later attempts."""
    judging: Usage
    """The usage of judging by all evaluators."""


def summarise(
    log: Log, filters: Filters = EVERY, by: Collection[By] = (), last: int | None = None
) -> Totals:
    """Sum up the runs of a log. The database does the work, and no record is read.

    Args:
        log: The log.
        filters: Which runs to sum up. With `evaluator`, there are groups for this evaluator only.
        by: What to group by besides evaluators: "model" and "day".
        last: Sum up only this number of newest runs; None sums up all.

    Raises:
        ValueError: `by` has an unknown value.
        LogError: The log is damaged, or its server is gone.
    """
    if unknown := [part for part in by if part not in get_args(By)]:
        known = ", ".join(get_args(By))
        raise ValueError(f"by: expected some of {known}, got {', '.join(map(repr, unknown))}")
    try:
        return _summed(log, filters, last, by)
    except (TypeError, ValueError) as error:  # the log holds a value that no sink wrote
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
    """Return the groups by `sums.keys` and evaluator, for all evaluators."""
    findings = defaultdict[_Key, Counter[Finding]](Counter)
    scores, total = Counter[_Key](), defaultdict[_Key, float](float)
    width = len(sums.keys) + 1
    for row in log.rows(sums.of_findings()):
        key, (worst, number, scored, score) = row[:width], row[width:]
        # An unknown finding, which no sink wrote, counts as nothing to check.
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
    """Return the counts, the most frequent first."""
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _time(text: str | None) -> datetime | None:
    if text is None:
        return None
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=timezone.utc)


def _less(whole: Usage, part: Usage) -> Usage:
    """Subtract a usage; the seconds are floats, whose difference may fall just below 0."""
    return Usage(**{name: max(0, value - getattr(part, name)) for name, value in whole})
