"""What each threshold lets pass: the counts that all figures and choices are made from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from demur.calibration.samples import Floats, Labels, Samples, Scores, read


class Operating(NamedTuple):
    """One threshold, and what comes of it.

    What is looked for, the positives, are hallucinated answers; one is found if it does not pass.
    The ratios are in [0, 1], and None where they are not defined or nothing is labelled.
    """

    threshold: float
    """Answers with this score or a higher one pass."""
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


def operating_points(scores: Scores, hallucinated: Labels | None = None) -> list[Operating]:
    """What each threshold lets pass that makes a difference.

    Args:
        scores: One per answer, higher is better: finite numbers, or evaluations.
        hallucinated: Whether it is, for each of them.

    Returns:
        By threshold, the lowest first: one for each score that occurs, the first of which lets all
        pass, and one a hair above them all, which lets none pass.

    Raises:
        CalibrationError: Scores or labels are of no use; the message says which.
    """
    samples = read(scores, hallucinated, labelled=hallucinated is not None)
    counts = count(samples)
    above = float(np.nextafter(counts.thresholds[-1], np.inf))
    thresholds = [*counts.thresholds.tolist(), above]
    passed = [*counts.passed.tolist(), 0]
    bad: list[int | None] = [None] * len(passed)
    if counts.passed_hallucinated is not None:
        bad = [*counts.passed_hallucinated.tolist(), 0]
    total, of_all = samples.size, bad[0]
    return [
        Operating(threshold, passes, total, of_all, wrong)
        for threshold, passes, wrong in zip(thresholds, passed, bad, strict=True)
    ]


@dataclass(frozen=True, eq=False)
class Counts:
    """What passes at each score that occurs. The arrays have the shape (distinct scores,)."""

    thresholds: Floats
    """The scores, ascending."""
    passed: NDArray[np.int64]
    """Answers with this score or a higher one: all at the first."""
    passed_hallucinated: NDArray[np.int64] | None
    """Hallucinated ones among them; None without labels."""


def count(samples: Samples) -> Counts:
    """Count what passes at each score that occurs."""
    thresholds, first = np.unique(np.sort(samples.scores), return_index=True)
    passed = (samples.size - first).astype(np.int64)
    if samples.hallucinated is None:
        return Counts(thresholds, passed, None)
    wrong = np.sort(samples.scores[samples.hallucinated])
    below = np.searchsorted(wrong, thresholds, side="left")
    return Counts(thresholds, passed, (len(wrong) - below).astype(np.int64))


def _ratio(part: int | None, whole: int | None) -> float | None:
    return part / whole if part is not None and whole else None
