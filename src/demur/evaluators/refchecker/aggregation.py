"""From labels of claims against passages to one verdict, and to the figures of a data set."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from demur.schema import ClaimLabel, Evaluation

Aggregation = Literal["strict", "soft", "major"]

_WORST_FIRST = (ClaimLabel.CONTRADICTION, ClaimLabel.NEUTRAL, ClaimLabel.ENTAILMENT)


def merge(labels: Iterable[ClaimLabel | None]) -> ClaimLabel | None:
    """One claim's label over all passages.

    Entailment if any supports it, else Contradiction if any contradicts it, else Neutral.

    Args:
        labels: One label per passage; None where it is missing.

    Returns:
        The label, or None when a missing one could change it, or when there are none.
    """
    every = list(labels)
    if ClaimLabel.ENTAILMENT in every:
        return ClaimLabel.ENTAILMENT
    if None in every or not every:
        return None
    return ClaimLabel.CONTRADICTION if ClaimLabel.CONTRADICTION in every else ClaimLabel.NEUTRAL


@dataclass(frozen=True)
class Aggregate:
    """What the labels of an answer's claims amount to."""

    determined: bool
    """False when the missing labels could change the decision."""
    label: ClaimLabel | None
    """None when the missing labels could change it."""
    passed: bool | None
    score: float | None
    """Entailed share of all claims, in [0, 1]; None when labels are missing."""
    bounds: tuple[float, float]
    """Between which values the score lies, whatever the missing labels are."""


def aggregate(
    labels: Sequence[ClaimLabel | None], aggregation: Aggregation, threshold: float | None
) -> Aggregate:
    """Aggregate the labels of an answer's claims.

    Args:
        labels: One per claim, at least one; None where it is missing.
        aggregation: "strict": any Contradiction, else any Neutral, else Entailment. "major": the
            most frequent label, ties to the worse. "soft": Entailment when the entailed share
            reaches the threshold, else the worst label.
        threshold: The share that "soft" asks for, in [0, 1]. None: nothing is decided, `passed` is
            None ("soft" then labels as with a threshold of 1).

    Raises:
        ValueError: There are no labels.
    """
    if not labels:
        raise ValueError(
            "expected at least one claim's label, got none: an answer without claims abstains"
        )
    known = [label for label in labels if label is not None]
    missing = len(labels) - len(known)
    entailed = known.count(ClaimLabel.ENTAILMENT)
    # If the missing labels were all alike they would have their greatest effect, so these three
    # completions show whether they can change anything.
    decisions = {
        _decide([*known, *[completion] * missing], aggregation, threshold)
        for completion in ClaimLabel
    }
    verdicts = {label for label, _ in decisions}
    passes = {passed for _, passed in decisions}
    determined = len(verdicts if threshold is None else passes) == 1
    bounds = entailed / len(labels), (entailed + missing) / len(labels)
    return Aggregate(
        determined=determined,
        label=verdicts.pop() if len(verdicts) == 1 else None,
        passed=passes.pop() if determined else None,
        score=None if missing else bounds[0],
        bounds=bounds,
    )


def _decide(
    labels: Sequence[ClaimLabel], aggregation: Aggregation, threshold: float | None
) -> tuple[ClaimLabel, bool | None]:
    worst = next(label for label in _WORST_FIRST if label in labels)
    if aggregation == "major":
        counts = Counter(labels)
        label = max(_WORST_FIRST, key=lambda candidate: counts[candidate])
    elif aggregation == "soft":
        share = labels.count(ClaimLabel.ENTAILMENT) / len(labels)
        reached = share >= (1.0 if threshold is None else threshold)
        label = ClaimLabel.ENTAILMENT if reached else worst
    else:
        label = worst
    return label, None if threshold is None else label is ClaimLabel.ENTAILMENT


@dataclass(frozen=True)
class Summary:
    """RefChecker's figures for a data set: macro averages over the answers that have claims."""

    answers: int
    """All evaluations."""
    nothing_to_check: int
    """Answers that state nothing to check; apart from the averages."""
    undetermined: int
    """Evaluations without a decision; apart from the averages."""
    entailment: float | None
    """Mean over answers of the share of their claims that is entailed; None without any answer."""
    neutral: float | None
    contradiction: float | None
    passed: int
    failed: int
    claims: int
    """Labelled claims in the answers that the averages are over."""


def summarize(evaluations: Iterable[Evaluation]) -> Summary:
    """Summarize RefChecker's evaluations of a data set.

    The averages are macro averages: the share of each label among an answer's labelled claims, then
    the mean over answers, so that an answer with many claims weighs no more than one with few.
    """
    every = list(evaluations)
    nothing = sum(evaluation.nothing_to_check for evaluation in every)
    undetermined = sum(evaluation.undetermined for evaluation in every)
    counted = [e for e in every if not e.undetermined and not e.nothing_to_check]
    labels = [[claim.label for claim in e.claims if claim.label is not None] for e in counted]
    labels = [of_one for of_one in labels if of_one]

    def mean_share(label: ClaimLabel) -> float | None:
        if not labels:
            return None
        return sum(of_one.count(label) / len(of_one) for of_one in labels) / len(labels)

    return Summary(
        answers=len(every),
        nothing_to_check=nothing,
        undetermined=undetermined,
        entailment=mean_share(ClaimLabel.ENTAILMENT),
        neutral=mean_share(ClaimLabel.NEUTRAL),
        contradiction=mean_share(ClaimLabel.CONTRADICTION),
        passed=sum(evaluation.passed is True for evaluation in counted),
        failed=sum(evaluation.passed is False for evaluation in counted),
        claims=sum(map(len, labels)),
    )
