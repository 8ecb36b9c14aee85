"""First answers: what evaluators say of them, and what people say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from demur.guard.trace import Attempt
from demur.observe.log.labels import LABEL
from demur.observe.log.opening import Damaged, Log
from demur.observe.log.selection import EVERY, Filters, records
from demur.observe.records import WORST_FIRST, Finding, Record, finding_of


@dataclass(frozen=True)
class Judged:
    """What one evaluator says of one answer."""

    name: str
    """The evaluator's."""
    finding: Finding
    """The worst, where it judged sentence by sentence."""
    score: float | None
    """The lowest, where it judged sentence by sentence."""
    fingerprints: Mapping[str, str]
    """What the score depends on, see `Evaluation.fingerprints`."""


@dataclass(frozen=True)
class Answered:
    """A run, and what is said of its first answer: what the chain answers by itself."""

    record: Record
    judged: tuple[Judged, ...]
    """One for each evaluator, in their order."""
    hallucinated: bool | None
    """What people say; None if nobody did."""


def answered(
    log: Log,
    filters: Filters = EVERY,
    last: int | None = None,
    labels: Mapping[str, bool] | None = None,
) -> Iterator[Answered | Damaged]:
    """The runs of a log with what is said of their first answers, oldest first.

    Args:
        log: The log.
        filters: Which runs.
        last: The newest so many only.
        labels: By the runs' ids, whether the first answer is hallucinated. For runs that are not
            there the metadata "hallucinated" counts, where it is true or false.

    Raises:
        LogError: The log is damaged.
    """
    for record in records(log, filters, last):
        if isinstance(record, Damaged):
            yield record
            continue
        own = record.metadata.get(LABEL)
        label = (labels or {}).get(record.id, own if isinstance(own, bool) else None)
        yield Answered(record, _judged(record.attempts[0]), label)


def _judged(attempt: Attempt) -> tuple[Judged, ...]:
    by_name: dict[str, Judged] = {}
    for found in attempt.evaluations:
        one = Judged(found.name, finding_of(found), found.score, found.fingerprints)
        before = by_name.get(found.name)
        by_name[found.name] = one if before is None else _merged(before, one)
    return tuple(by_name.values())


def _merged(one: Judged, other: Judged) -> Judged:
    return Judged(
        one.name,
        min(one.finding, other.finding, key=WORST_FIRST.index),
        min((each.score for each in (one, other) if each.score is not None), default=None),
        one.fingerprints or other.fingerprints,  # of a fault there are none
    )
