"""Measure how well scores tell hallucinated answers from others: ROC and reliability curves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from demur.calibration.operating import count
from demur.calibration.samples import CalibrationError, Floats, Labels, Samples, Scores, read
from demur.schema import OnAbstain, Share

_BINS = 10
"""The most bins of a reliability curve."""


@dataclass(frozen=True, eq=False)
class Roc:
    """Hold the receiver operating characteristic (ROC) of finding hallucinated answers.

    A hallucinated answer is found if its score is below the threshold. The arrays have the shape
    (distinct scores + 1,) and go from (0, 0), where all answers pass, to (1, 1), where none passes.
    No threshold changes whether an answer that states nothing to check passes. With such answers
    the curve has one more point, (0, 0) or (1, 1), which no guard can reach.
    """

    thresholds: Floats
    """The thresholds, ascending: the scores, then the next float above them all. -inf or inf stands
    for a point that no threshold has."""
    true_positive_rate: Floats
    """The share of hallucinated answers that are found, in [0, 1]."""
    false_positive_rate: Floats
    """The share of other answers that do not pass, in [0, 1]."""
    auc: float
    """The area under the curve, in [0, 1]: how often a hallucinated answer has a lower score than
    another answer. Equal scores count half, so 0.5 means that the scores tell nothing. An answer
    that states nothing to check counts as the highest score if it passes, and as the lowest if it
    fails."""


def roc(scores: Scores, hallucinated: Labels, *, on_abstain: OnAbstain = "pass") -> Roc:
    """Return the ROC curve of finding hallucinated answers.

    Args:
        scores: One score for each answer, higher is better: finite numbers, or evaluations.
        hallucinated: One label for each answer: whether it is hallucinated.
        on_abstain: What to do with answers that state nothing to check, see `Guard`.

    Raises:
        CalibrationError: The scores or labels cannot be used, or all answers have the same label.
    """
    samples = read(scores, hallucinated, on_abstain=on_abstain)
    counts = count(samples, above=True)
    wrong, right = samples.wrong.size, samples.size - samples.wrong.size
    if not wrong or not right:
        raise CalibrationError(
            f"a ROC curve needs hallucinated answers and others, got {wrong:,} and {right:,}"
        )
    assert counts.passed_hallucinated is not None
    thresholds, caught = counts.thresholds, wrong - counts.passed_hallucinated
    kept_back = right - (counts.passed - counts.passed_hallucinated)
    if np.any(samples.scores == -np.inf):
        thresholds = np.insert(thresholds, 0, -np.inf)
        caught, kept_back = np.insert(caught, 0, 0), np.insert(kept_back, 0, 0)
    if np.any(samples.scores == np.inf):
        thresholds = np.append(thresholds, np.inf)
        caught, kept_back = np.append(caught, wrong), np.append(kept_back, right)
    # Twice the area under straight lines, so that the sum stays in whole numbers.
    area = int(np.sum(np.diff(kept_back) * (caught[1:] + caught[:-1])))
    return Roc(
        thresholds=thresholds,
        true_positive_rate=caught / wrong,
        false_positive_rate=kept_back / right,
        auc=area / (2 * wrong * right),
    )


@dataclass(frozen=True)
class Bin:
    """Describe the answers whose scores are in one range."""

    low: float
    """The beginning of the bin. This score itself is in the bin."""
    high: float
    """The end of the bin. This score itself is in the bin if `binning` is "quantile" or the bin is
    the last one."""
    mean: float
    """The mean of the scores in the bin."""
    right: Share
    """The share of answers in the bin that are not hallucinated, with a Wilson interval of 95 %."""


@dataclass(frozen=True)
class Reliability:
    """Hold a reliability curve: for each range of scores, the share of answers that are right."""

    bins: tuple[Bin, ...]
    """The bins that have answers, the lowest scores first."""
    binning: Literal["equal-width", "quantile"]
    """How the bins were made. "equal-width": bins of equal width in [0, 1], if all scores are in
    it. "quantile": bins of about as many answers each, with equal scores in one bin."""


def reliability(scores: Scores, hallucinated: Labels) -> Reliability:
    """Return the reliability curve of the answers that have a score.

    Args:
        scores: One score for each answer, higher is better: finite numbers, or evaluations. Answers
            that state nothing to check are in no bin.
        hallucinated: One label for each answer: whether it is hallucinated.

    Returns:
        A curve of at most ten bins.

    Raises:
        CalibrationError: The scores or labels cannot be used, or no answer has a score.
    """
    samples = read(scores, hallucinated)
    assert samples.hallucinated is not None
    count(samples)  # raises if no answer has a score
    scored = np.isfinite(samples.scores)
    samples = Samples(samples.scores[scored], samples.hallucinated[scored])
    values = np.sort(samples.scores)
    if values[0] >= 0 and values[-1] <= 1:
        edges = np.arange(_BINS + 1) / _BINS
        return Reliability(_bins(samples, edges[1:-1], edges), "equal-width")
    # The scores at which bins begin; equal scores go into one bin.
    begins = np.unique(values[[at * len(values) // _BINS for at in range(1, _BINS)]])
    return Reliability(_bins(samples, begins, None), "quantile")


def _bins(samples: Samples, begins: Floats, edges: Floats | None) -> tuple[Bin, ...]:
    """Return the bins that begin below all scores and at each of `begins`."""
    place = np.searchsorted(begins, samples.scores, side="right")
    bins = []
    for at in np.unique(place):
        inside = place == at
        scores = samples.scores[inside]
        low, high = (scores.min(), scores.max()) if edges is None else edges[at : at + 2]
        assert samples.hallucinated is not None
        wrong = int(np.sum(samples.hallucinated[inside]))
        # A sum could overflow, and the rounded mean of equal scores could differ from them.
        mean = float(np.clip(np.sum(scores / len(scores)), scores.min(), scores.max()))
        bins.append(Bin(float(low), float(high), mean, Share(len(scores) - wrong, len(scores))))
    return tuple(bins)
