"""First answers: what evaluators say of them, and what people say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from demur.guard import Attempt
from demur.observe.log.filters import EVERY, Filters
from demur.observe.log.labels import LABEL
from demur.observe.log.opening import Log
from demur.observe.log.reading import Damaged
from demur.observe.log.selection import records
from demur.observe.records import WORST_FIRST, Record
from demur.schema import Evaluation, Finding


@dataclass(frozen=True)
class JudgedAnswer:
    """What one evaluator says of one answer."""

    parts: tuple[Evaluation, ...]
    """One evaluation; several where it judged sentence by sentence, as the answer was streamed, or
    where several evaluators have its name."""

    @property
    def name(self) -> str:
        """The evaluator's."""
        return self.parts[0].name

    @property
    def finding(self) -> Finding:
        """The worst."""
        return min((part.finding for part in self.parts), key=WORST_FIRST.index)

    @property
    def score(self) -> float | None:
        """The lowest."""
        return min((part.score for part in self.parts if part.score is not None), default=None)

    @property
    def fingerprints(self) -> Mapping[str, str]:
        """What the score depends on, see `Evaluation.fingerprints`."""
        return next((part.fingerprints for part in self.parts if part.fingerprints), {})

    @property
    def namesakes(self) -> bool:
        """Whether several evaluators of this name judged it: their scores cannot be told apart."""
        own = self.fingerprints
        # Of a fault there are none.
        return any(part.fingerprints not in ({}, own) for part in self.parts)


@dataclass(frozen=True)
class LoggedAnswer:
    """A run, and what is said of its first answer: what the chain answers by itself."""

    record: Record
    judged: tuple[JudgedAnswer, ...]
    """One for each evaluator, in their order."""
    hallucinated: bool | None
    """What people say; None if nobody did."""


def answered(
    log: Log,
    filters: Filters = EVERY,
    last: int | None = None,
    labels: Mapping[str, bool] | None = None,
) -> Iterator[LoggedAnswer | Damaged]:
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
        yield LoggedAnswer(record, judged(record.attempts[0]), label)


def judged(attempt: Attempt) -> tuple[JudgedAnswer, ...]:
    """What each evaluator says of an answer."""
    by_name: dict[str, list[Evaluation]] = {}
    for evaluation in attempt.evaluations:
        by_name.setdefault(evaluation.name, []).append(evaluation)
    return tuple(JudgedAnswer(tuple(parts)) for parts in by_name.values())
