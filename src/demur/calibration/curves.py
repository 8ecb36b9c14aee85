"""How well scores tell hallucinated answers from others: ROC and reliability curves."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from demur._share import Share
from demur.calibration.operating import count
from demur.calibration.samples import CalibrationError, Floats, Labels, Samples, Scores, read
from demur.schema import OnAbstain


@dataclass(frozen=True, eq=False)
class Roc:
    """The receiver operating characteristic of finding hallucinated answers.

    A hallucinated answer is found if its score is below the threshold. The arrays have the shape
    (distinct scores + 1,) and go from (0, 0), where all answers pass, to (1, 1), where none does.
    Of answers that state nothing to check, no threshold makes those pass that are to fail, or fail
    that are to pass: with such answers there is one point more, (0, 0) or (1, 1), which is no
    guard's.
    """

    thresholds: Floats
    """Ascending: the scores, then a hair above them all; -inf or inf for a point that no threshold
    has."""
    true_positive_rate: Floats
    """The share of hallucinated answers that are found, in [0, 1]."""
    false_positive_rate: Floats
    """The share of other answers that do not pass, in [0, 1]."""
    auc: float
    """The area under the curve, in [0, 1]: how often a hallucinated answer has a lower score than
    another one. Equal scores count half, so 0.5 says that the scores tell nothing. To state nothing
    to check counts as the highest score where it passes, and as the lowest where it fails."""
    hallucinated: int
    """How many answers are hallucinated, at least one."""
    others: int
    """How many are not, at least one."""


def roc(scores: Scores, hallucinated: Labels, *, on_abstain: OnAbstain = "pass") -> Roc:
    """The ROC curve of finding hallucinated answers.

    Args:
        scores: One per answer, higher is better: finite numbers, or evaluations.
        hallucinated: Whether it is, for each of them.
        on_abstain: What becomes of answers that state nothing to check, see `Guard`.

    Raises:
        CalibrationError: Scores or labels are of no use, or all answers have the same label.
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
    # Twice the area under straight lines, in whole numbers.
    area = int(np.sum(np.diff(kept_back) * (caught[1:] + caught[:-1])))
    return Roc(
        thresholds=thresholds,
        true_positive_rate=caught / wrong,
        false_positive_rate=kept_back / right,
        auc=area / (2 * wrong * right),
        hallucinated=wrong,
        others=right,
    )


@dataclass(frozen=True)
class Bin:
    """Answers with scores near each other."""

    low: float
    """Where it begins: with this score."""
    high: float
    """Where it ends: with this score if `binning` is "quantile" or it is the last one, else before
    it."""
    mean: float
    """Of the scores in it."""
    right: Share
    """Answers that are not hallucinated, of all in it: with a Wilson interval of 95 %."""


@dataclass(frozen=True)
class Reliability:
    """A reliability curve: what share of answers with some score is right."""

    bins: tuple[Bin, ...]
    """By score, the lowest first, those with answers only."""
    binning: Literal["equal-width", "quantile"]
    """"equal-width": of [0, 1], where all scores are in it. "quantile": of about as many answers
    each; equal scores are in one."""


def reliability(scores: Scores, hallucinated: Labels, bins: int = 10) -> Reliability:
    """The reliability curve, of the answers that have a score.

    Args:
        scores: One per answer, higher is better: finite numbers, or evaluations. Those that found
            nothing to check are in no bin.
        hallucinated: Whether it is, for each of them.
        bins: How many there are at most, at least 1.

    Raises:
        CalibrationError: Scores or labels are of no use, no answer has a score, or there is to be
            no bin.
    """
    if operator.index(bins) < 1:
        raise CalibrationError(f"bins: expected a whole number of at least 1, got {bins!r}")
    samples = read(scores, hallucinated)
    assert samples.hallucinated is not None
    count(samples)  # refuses them if none has a score
    scored = np.isfinite(samples.scores)
    samples = Samples(samples.scores[scored], samples.hallucinated[scored])
    values = np.sort(samples.scores)
    if values[0] >= 0 and values[-1] <= 1:
        edges = np.arange(bins + 1) / bins
        return Reliability(_bins(samples, edges[1:-1], edges), "equal-width")
    # Where a bin would begin; equal scores begin with the first of them.
    begins = np.unique(values[[at * len(values) // bins for at in range(1, bins)]])
    return Reliability(_bins(samples, begins, None), "quantile")


def _bins(samples: Samples, begins: Floats, edges: Floats | None) -> tuple[Bin, ...]:
    """The bins that begin below all scores and at each of `begins`."""
    place = np.searchsorted(begins, samples.scores, side="right")
    bins = []
    for at in np.unique(place):
        inside = place == at
        scores = samples.scores[inside]
        low, high = (scores.min(), scores.max()) if edges is None else edges[at : at + 2]
        assert samples.hallucinated is not None
        wrong = int(np.sum(samples.hallucinated[inside]))
        # Their sum may be more than a number holds, a mean of equal ones rounded beside them.
        mean = float(np.clip(np.sum(scores / len(scores)), scores.min(), scores.max()))
        bins.append(Bin(float(low), float(high), mean, Share(len(scores) - wrong, len(scores))))
    return tuple(bins)
