"""Pair first answers with the evaluators' results and with people's labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

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


Fate = Literal[
    "right",
    "wrong",
    "not_labelled",
    "nothing_to_check",
    "refused_right",
    "refused_wrong",
    "evaluator_failed",
]
"""What a user gets. "not_labelled": a later answer without a label. "refused_right": a refusal, and
the first answer was right. "evaluator_failed": what `on_error` says."""


def delivered(
    answers: Iterable[LoggedAnswer], labels: Mapping[tuple[str, int], bool]
) -> dict[str, dict[str, int]]:
    """Count what users got of guards, and what they would have got of the chains alone.

    Args:
        answers: The answers of a log. Only guards' calls whose first answer has a label count.
        labels: The labels of later answers, by run and attempt.
    """
    alone, guarded = Counter[Fate](), Counter[Fate]()
    for one in answers:
        if one.hallucinated is not None and one.record.outcome is not None:
            first = one.record.attempts[0].verdict
            alone[first if first == "nothing_to_check" else _fate_of(one.hallucinated)] += 1
            guarded[_fate(one, labels)] += 1
    every = {"without the guard": alone, "with the guard": guarded}
    return {name: {fate: of[fate] for fate in get_args(Fate)} for name, of in every.items()}


def _fate(one: LoggedAnswer, labels: Mapping[tuple[str, int], bool]) -> Fate:
    outcome, last = one.record.outcome, len(one.record.attempts)
    if outcome in ("evaluator_failed", "nothing_to_check"):
        return outcome
    if outcome in ("abstained", "blocked"):
        return "refused_wrong" if one.hallucinated else "refused_right"
    if last == 1:
        return _fate_of(one.hallucinated)
    # With "best_effort", any of the attempts may have left.
    return _fate_of(None if outcome == "best_effort" else labels.get((one.record.id, last)))


def _fate_of(hallucinated: bool | None) -> Fate:
    if hallucinated is None:
        return "not_labelled"
    return "wrong" if hallucinated else "right"
