"""Aggregate the labels of claims into one decision, and evaluations into figures of a data set."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from demur.schema import WORST_FIRST, Claim, ClaimLabel, Evaluation

Aggregation = Literal["strict", "soft", "major"]


def merge(labels: Iterable[ClaimLabel | None]) -> ClaimLabel | None:
    """Merge the labels that one claim has against several passages.

    The result is Entailment if any passage supports the claim, else the worst label.

    Args:
        labels: One label for each passage, or None where the label is missing.

    Returns:
        The label. None if there are no labels, or if a missing label could change the result.
    """
    every = list(labels)
    if ClaimLabel.ENTAILMENT in every:
        return ClaimLabel.ENTAILMENT
    if None in every or not every:
        return None
    return _worst(every)


def _worst(labels: Iterable[ClaimLabel | None]) -> ClaimLabel:
    return next(label for label in WORST_FIRST if label in labels)


@dataclass(frozen=True)
class Score:
    """Hold an answer's score, as far as the labels of its claims are known."""

    value: float | None
    """The score, in [0, 1]; None if labels are missing."""
    bounds: tuple[float, float]
    """The lowest and the highest score that are possible, whatever the missing labels are."""


@dataclass(frozen=True)
class Aggregate:
    """Hold the decision that the labels of an answer's claims give."""

    determined: bool
    """Whether the decision is the same whatever the missing labels are."""
    label: ClaimLabel | None
    """The answer's label, or None if the missing labels could change it."""
    passed: bool | None
    share: Score
    """The share of all claims that are entailed."""


def aggregate(
    labels: Sequence[ClaimLabel | None], aggregation: Aggregation, threshold: float | None
) -> Aggregate:
    """Aggregate the labels of an answer's claims.

    Args:
        labels: One label for each claim, at least one; None where the label is missing.
        aggregation: "strict": the worst label: Contradiction, Unsupported, Neutral, Entailment.
            "major": the most frequent label, and the worse one of a tie. "soft":
            Entailment if the entailed share reaches the threshold, else the worst label.
        threshold: The share that "soft" requires, in [0, 1]. None: nothing is decided, and `passed`
            is None. Then "soft" labels as with a threshold of 1.

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
    # The missing labels have their greatest effect if they are all the same, so these
    # completions show whether they can change the decision.
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
        share=Score(None if missing else bounds[0], bounds),
    )


def least_support(claims: Sequence[Claim]) -> Score | None:
    """Return the support of the claim that is supported least, as the score of an answer.

    One wrong claim makes an answer wrong, so this ranks answers better than the mean of their
    claims does (docs/results.md, "The score of an answer"). And an answer reaches a threshold
    exactly if "strict" passes it with that threshold as the limit of each claim.

    A claim with a string that stands in no reference, or with a figure that comes out otherwise,
    counts as without any support, whatever the checker says. A claim without a label has some texts
    that could not be judged, and these can only add to its support.

    Args:
        claims: The claims that were checked, at least one.

    Returns:
        The score. None if a claim has a label and no probability.
    """
    labelled = [claim for claim in claims if claim.label is not None]
    if any(claim.support is None for claim in labelled):
        return None
    lowest = min(map(_counted, claims))
    if len(labelled) == len(claims):
        return Score(lowest, (lowest, lowest))
    return Score(None, (lowest, min(map(_counted, labelled), default=1.0)))


def _counted(claim: Claim) -> float:
    return 0.0 if claim.overruled else claim.support or 0.0


def _decide(
    labels: Sequence[ClaimLabel], aggregation: Aggregation, threshold: float | None
) -> tuple[ClaimLabel, bool | None]:
    worst = _worst(labels)
    if aggregation == "major":
        counts = Counter(labels)
        label = max(WORST_FIRST, key=lambda candidate: counts[candidate])
    elif aggregation == "soft":
        share = labels.count(ClaimLabel.ENTAILMENT) / len(labels)
        reached = share >= (1.0 if threshold is None else threshold)
        label = ClaimLabel.ENTAILMENT if reached else worst
    else:
        label = worst
    return label, None if threshold is None else label is ClaimLabel.ENTAILMENT


@dataclass(frozen=True)
class Summary:
    """Hold RefChecker's figures for a data set; averages are over the answers with claims."""

    answers: int
    """The number of all evaluations."""
    nothing_to_check: int
    """The number of answers that state nothing to check; they are not in the averages."""
    undetermined: int
    """The number of evaluations without a decision; they are not in the averages."""
    entailment: float | None
    """The mean, over the answers, of the share of an answer's claims that are entailed. None if
    there is no answer with labelled claims."""
    neutral: float | None
    contradiction: float | None
    unsupported: float | None
    passed: int
    failed: int
    claims: int
    """The number of labelled claims in the answers that the averages are taken over."""


def summarize(evaluations: Iterable[Evaluation]) -> Summary:
    """Summarize RefChecker's evaluations of a data set.

    The averages are macro averages: the share of each label among an answer's labelled claims, and
    then the mean over the answers. So an answer with many claims counts no more than an answer with
    few.
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
        unsupported=mean_share(ClaimLabel.UNSUPPORTED),
        passed=sum(evaluation.passed is True for evaluation in counted),
        failed=sum(evaluation.passed is False for evaluation in counted),
        claims=sum(map(len, labels)),
    )
