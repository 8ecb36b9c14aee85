"""Pair first answers with the evaluators' results and with people's labels."""

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
    """Hold the result of one evaluator for one answer."""

    parts: tuple[Evaluation, ...]
    """The evaluations, at least one. There are several if the evaluator judged a streamed answer
    sentence by sentence, or if several evaluators have the same name."""

    @property
    def name(self) -> str:
        """Return the evaluator's name."""
        return self.parts[0].name

    @property
    def finding(self) -> Finding:
        """Return the worst finding."""
        return min((part.finding for part in self.parts), key=WORST_FIRST.index)

    @property
    def score(self) -> float | None:
        """Return the lowest score, or None if there is no score."""
        return min((part.score for part in self.parts if part.score is not None), default=None)

    @property
    def fingerprints(self) -> Mapping[str, str]:
        """Return the texts that identify what the score depends on (`Evaluation.fingerprints`)."""
        return next((part.fingerprints for part in self.parts if part.fingerprints), {})

    @property
    def namesakes(self) -> bool:
        """Return whether different evaluators with this name judged the answer.

        Their scores cannot be told apart.
        """
        own = self.fingerprints
        # An evaluation that failed with an error may have no fingerprints.
        return any(part.fingerprints not in ({}, own) for part in self.parts)


@dataclass(frozen=True)
class LoggedAnswer:
    """Hold a run with the results for its first answer, which is the chain's own."""

    record: Record
    judged: tuple[JudgedAnswer, ...]
    """The result of each evaluator, in the evaluators' order."""
    hallucinated: bool | None
    """Whether people labelled the answer as hallucinated; None without a label."""


def answered(
    log: Log,
    filters: Filters = EVERY,
    last: int | None = None,
    labels: Mapping[str, bool] | None = None,
) -> Iterator[LoggedAnswer | Damaged]:
    """Yield the runs of a log with the results for their first answers, oldest run first.

    Args:
        log: The log.
        filters: Which runs to yield.
        last: Yield only this number of newest runs; None yields all.
        labels: Whether the first answer is hallucinated, by run id. For a run without a label here,
            the run's metadata "hallucinated" counts, if it is true or false.

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
    """Group the evaluations of an attempt by evaluator."""
    by_name: dict[str, list[Evaluation]] = {}
    for evaluation in attempt.evaluations:
        by_name.setdefault(evaluation.name, []).append(evaluation)
    return tuple(JudgedAnswer(tuple(parts)) for parts in by_name.values())
