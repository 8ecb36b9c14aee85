"""What a log comes to: how often answers fail, by evaluator, model and day, and at what cost."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timezone
from statistics import fmean
from typing import Any, Literal, get_args

from pydantic.dataclasses import dataclass

from demur._share import Share
from demur.guard import TraceOutcome, Verdict
from demur.observe.log.opening import Log
from demur.observe.log.reading import Damaged, LogError
from demur.observe.log.selection import EVERY, Filters, as_text, conditions
from demur.observe.records import WORST_FIRST
from demur.schema import Finding, Usage

By = Literal["evaluator", "model", "day"]

_USAGE = "calls, cached, input_tokens, output_tokens, call_seconds"
_Key = tuple[str | None, str, str | None]
"""A day, an evaluator and a model."""


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
    damaged: tuple[Damaged, ...] = ()
    """Records that cannot be summed up, and are in none of these numbers."""


def summarise(log: Log, filters: Filters = EVERY, by: Collection[By] = ()) -> Totals:
    """What the runs of a log come to.

    Args:
        log: The log.
        filters: Which runs; with `evaluator`, the groups are of that one only.
        by: What to tell apart besides evaluators, which always are: "model", "day".

    Raises:
        ValueError: `by` has something else.
        LogError: The log is damaged.
    """
    if unknown := [part for part in by if part not in get_args(By)]:
        known = ", ".join(get_args(By))
        raise ValueError(f"by: expected some of {known}, got {', '.join(map(repr, unknown))}")
    try:
        return _summed(log, filters, by)
    except (TypeError, ValueError) as error:  # a value that no sink wrote
        raise LogError(f"{log.path} is damaged: {' '.join(str(error).split())[:200]}") from error


def _summed(log: Log, filters: Filters, by: Collection[By]) -> Totals:
    where, values = conditions(filters)
    told_apart: dict[str, tuple[str | None, str | None]] = {}
    """Day and model of each run, where they are asked for."""
    times, damaged = list[str](), list[Damaged]()
    verdicts, outcomes = Counter[Verdict](), Counter[TraceOutcome]()
    spent = _Cost()
    of_runs = f"select id, time, model, first_verdict, outcome, {_USAGE} from runs r where {where}"
    for id, time, model, verdict, outcome, *usage in log.rows(of_runs, *values):
        if verdict is None:
            damaged.append(Damaged(f"run {id}", "it has no answer"))
            continue
        told_apart[id] = (time[:10] if "day" in by else None, model if "model" in by else None)
        times.append(time)
        verdicts[verdict] += 1
        if outcome is not None:
            outcomes[outcome] += 1
        spent.add(usage)
    judging, groups = _judged(log, filters, told_apart)
    broken = f"select id from records r where {where} and not json_valid(record)"
    damaged += [Damaged(f"run {id}", "it is no JSON") for (id,) in log.rows(broken, *values)]
    return Totals(
        runs=len(told_apart),
        first=_time(min(times, default=None)),
        last=_time(max(times, default=None)),
        verdicts=_ordered(verdicts),
        outcomes=_ordered(outcomes),
        groups=groups,
        answering=_less(spent.usage, judging),
        judging=judging,
        damaged=tuple(damaged),
    )


class _Cost:
    """What calls cost, as the views tell it."""

    def __init__(self) -> None:
        self.sums = [0.0] * 5

    def add(self, usage: Sequence[float | None]) -> None:
        self.sums = [total + (part or 0) for total, part in zip(self.sums, usage, strict=True)]

    @property
    def usage(self) -> Usage:
        calls, cached, read, written = map(int, self.sums[:4])
        return Usage(
            calls=calls,
            cached=cached,
            input_tokens=read,
            output_tokens=written,
            seconds=self.sums[4],
        )


def _judged(
    log: Log, filters: Filters, told_apart: Mapping[str, tuple[str | None, str | None]]
) -> tuple[Usage, tuple[Group, ...]]:
    """What judging these runs cost, and the groups by day, evaluator and model."""
    where, values = conditions(filters)
    asked = (
        f"select run, attempt, evaluator, finding, score, {_USAGE} from evaluations "
        f"where run in (select id from records r where {where})"
    )
    wanted = None if filters.evaluator is None else as_text(filters.evaluator)
    judging, costs = _Cost(), defaultdict[_Key, _Cost](_Cost)
    # Of an answer that was judged sentence by sentence the worst finding and the lowest score.
    merged: dict[tuple[str, str], tuple[Finding, float | None]] = {}
    for run, attempt, evaluator, finding, score, *usage in log.rows(asked, *values):
        judging.add(usage)
        if run not in told_apart or wanted not in (None, evaluator):
            continue
        day, model = told_apart[run]
        costs[day, evaluator, model].add(usage)
        if attempt == 1:
            known, least = merged.get((run, evaluator), (finding, None))
            scores = [one for one in (score, least) if one is not None]
            worse = min(known, finding, key=WORST_FIRST.index)
            merged[run, evaluator] = (worse, min(scores, default=None))
    findings = defaultdict[_Key, Counter[Finding]](Counter)
    scored = defaultdict[_Key, list[float]](list)
    for (run, evaluator), (finding, least) in merged.items():
        day, model = told_apart[run]
        findings[day, evaluator, model][finding] += 1
        if least is not None:
            scored[day, evaluator, model].append(least)
    groups = []
    for key in sorted(costs, key=lambda key: tuple(part or "" for part in key)):
        counts = {finding: findings[key][finding] for finding in get_args(Finding)}
        mean = fmean(scored[key]) if scored[key] else None
        day, evaluator, model = key
        groups.append(Group(evaluator, model, day, counts, mean, costs[key].usage))
    return judging.usage, tuple(groups)


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
