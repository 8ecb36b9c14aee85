"""What each threshold lets pass: the counts that all figures and choices are made from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from demur.calibration.samples import CalibrationError, Floats, Labels, Samples, Scores, read
from demur.schema import OnAbstain


class Operating(NamedTuple):
    """One threshold, and what comes of it.

    What is looked for, the positives, are hallucinated answers; one is found if it does not pass.
    The ratios are in [0, 1], and None where they are not defined or nothing is labelled.
    """

    threshold: float
    """Answers with this score or a higher one pass, and with `on_abstain="pass"` those that state
    nothing to check."""
    passed: int
    """Answers that pass."""
    total: int
    """Answers."""
    hallucinated: int | None
    """Of all, those that are labelled as hallucinated; None without labels."""
    passed_hallucinated: int | None
    """Of those, the ones that pass."""

    @property
    def pass_rate(self) -> float:
        """The share of answers that pass."""
        return self.passed / self.total

    @property
    def found(self) -> int | None:
        """Hallucinated answers that do not pass."""
        if self.hallucinated is None or self.passed_hallucinated is None:
            return None
        return self.hallucinated - self.passed_hallucinated

    @property
    def precision(self) -> float | None:
        """The share of hallucinated ones among answers that do not pass."""
        return _ratio(self.found, self.total - self.passed)

    @property
    def recall(self) -> float | None:
        """The share of hallucinated answers that do not pass."""
        return _ratio(self.found, self.hallucinated)

    @property
    def f1(self) -> float | None:
        """The harmonic mean of precision and recall; 0 if none is found of those there are."""
        if not self.hallucinated or self.found is None:
            return None
        return _ratio(2 * self.found, self.total - self.passed + self.hallucinated)


def operating_points(
    scores: Scores, hallucinated: Labels | None = None, *, on_abstain: OnAbstain = "pass"
) -> list[Operating]:
    """What each threshold lets pass that makes a difference.

    Args:
        scores: One per answer, higher is better: finite numbers, or evaluations.
        hallucinated: Whether it is, for each of them.
        on_abstain: What becomes of answers that state nothing to check, see `Guard`. They pass each
            threshold, or none.

    Returns:
        By threshold, the lowest first: one for each score that occurs, the first of which lets all
        answers with a score pass, and one a hair above them all, which lets none of these pass.

    Raises:
        CalibrationError: Scores or labels are of no use; the message says which.
    """
    samples = read(scores, hallucinated, labelled=hallucinated is not None, on_abstain=on_abstain)
    counts = count(samples, above=True)
    thresholds, passed = counts.thresholds.tolist(), counts.passed.tolist()
    bad: list[int | None] = [None] * len(passed)
    of_all = None
    if counts.passed_hallucinated is not None:
        bad, of_all = counts.passed_hallucinated.tolist(), samples.wrong.size
    return [
        Operating(threshold, passes, samples.size, of_all, wrong)
        for threshold, passes, wrong in zip(thresholds, passed, bad, strict=True)
    ]


@dataclass(frozen=True, eq=False)
class PassCounts:
    """What passes at each score that occurs, and at a hair above them where that is asked for."""

    thresholds: Floats
    """The scores, ascending."""
    passed: NDArray[np.int64]
    """Answers that pass."""
    passed_hallucinated: NDArray[np.int64] | None
    """Hallucinated ones among them; None without labels."""


def count(samples: Samples, above: bool = False) -> PassCounts:
    """Count what passes at each score that occurs, and at a threshold a hair above them all.

    Raises:
        CalibrationError: No answer has a score.
    """
    thresholds = np.unique(samples.scores[np.isfinite(samples.scores)])
    if not thresholds.size:
        raise CalibrationError(
            f"none of the {samples.size:,} answers has a score: they state nothing to check, which "
            "no threshold decides about. Give answers that do"
        )
    if above:
        thresholds = np.append(thresholds, np.nextafter(thresholds[-1], np.inf))
    wrong = None if samples.hallucinated is None else passing(samples.wrong, thresholds)
    return PassCounts(thresholds, passing(samples.scores, thresholds), wrong)


def passing(scores: Floats, thresholds: Floats) -> NDArray[np.int64]:
    """How many of the scores are each threshold or more."""
    below = np.searchsorted(np.sort(scores), thresholds, side="left")
    return (len(scores) - below).astype(np.int64)


def _ratio(part: int | None, whole: int | None) -> float | None:
    return part / whole if part is not None and whole else None
