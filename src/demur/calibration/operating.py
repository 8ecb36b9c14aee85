"""Count what each threshold lets pass, for all figures and choices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from demur.calibration.samples import CalibrationError, Floats, Labels, Samples, Scores, read
from demur.schema import OnAbstain, Threshold, ThresholdMethod


class Operating(NamedTuple):
    """Hold one threshold, and the counts and ratios that follow from it.

    The positives are hallucinated answers, and one is found if it does not pass. The ratios are in
    [0, 1]. They are None if they are not defined or if there are no labels.
    """

    threshold: float
    """The threshold. Answers with this score or a higher one pass, and with `on_abstain="pass"`
    also answers that state nothing to check."""
    passed: int
    """The number of answers that pass."""
    total: int
    """The number of answers."""
    hallucinated: int | None
    """The number of answers that are labelled as hallucinated; None without labels."""
    passed_hallucinated: int | None
    """The number of hallucinated answers that pass; None without labels."""

    @property
    def pass_rate(self) -> float:
        """Return the share of answers that pass."""
        return self.passed / self.total

    @property
    def found(self) -> int | None:
        """Return the number of hallucinated answers that do not pass."""
        if self.hallucinated is None or self.passed_hallucinated is None:
            return None
        return self.hallucinated - self.passed_hallucinated

    @property
    def precision(self) -> float | None:
        """Return the share of hallucinated answers among answers that do not pass."""
        return _ratio(self.found, self.total - self.passed)

    @property
    def recall(self) -> float | None:
        """Return the share of hallucinated answers that do not pass."""
        return _ratio(self.found, self.hallucinated)

    @property
    def f1(self) -> float | None:
        """Return the harmonic mean of precision and recall; 0 if no hallucinated one is found."""
        if not self.hallucinated or self.found is None:
            return None
        return _ratio(2 * self.found, self.total - self.passed + self.hallucinated)


def operating_points(
    scores: Scores, hallucinated: Labels | None = None, *, on_abstain: OnAbstain = "pass"
) -> list[Operating]:
    """Return what each threshold lets pass, for all thresholds that make a difference.

    Args:
        scores: One score for each answer, higher is better: finite numbers, or evaluations.
        hallucinated: One label for each answer: whether it is hallucinated. None: no labels.
        on_abstain: What to do with answers that state nothing to check, see `Guard`. They pass
            every threshold or none.

    Returns:
        One item for each distinct score, the lowest threshold first, and one for the next float
        above them all. The first lets all answers with a score pass, the last none of these.

    Raises:
        CalibrationError: The scores or labels cannot be used; the message says which.
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
    """Hold what passes at each score that occurs and, if asked for, just above them all."""

    thresholds: Floats
    """The thresholds, ascending."""
    passed: NDArray[np.int64]
    """The number of answers that pass each threshold."""
    passed_hallucinated: NDArray[np.int64] | None
    """The number of hallucinated answers that pass each threshold; None without labels."""


def count(samples: Samples, above: bool = False) -> PassCounts:
    """Count what passes at each score that occurs.

    With `above`, count also at the next float above all scores.

    Raises:
        CalibrationError: No answer has a score.
    """
    thresholds = np.unique(samples.scores[np.isfinite(samples.scores)])
    if not thresholds.size:
        raise CalibrationError(
            f"none of the {samples.size:,} answers has a score: they state nothing to check, which "
            "no threshold decides about. Give some answers that have a score"
        )
    if above:
        thresholds = np.append(thresholds, np.nextafter(thresholds[-1], np.inf))
    wrong = None if samples.hallucinated is None else passing(samples.wrong, thresholds)
    return PassCounts(thresholds, passing(samples.scores, thresholds), wrong)


def threshold_at(
    samples: Samples,
    counts: PassCounts,
    at: int,
    on_abstain: OnAbstain,
    method: ThresholdMethod,
    **how: Any,
) -> Threshold:
    """Return the counted threshold with this index; `how` has what only its method tells."""
    passing = counts.passed_hallucinated
    return Threshold(
        value=float(counts.thresholds[at]),
        method=method,
        **how,
        evaluator=samples.evaluator,
        fingerprints=dict(samples.fingerprints),
        on_abstain=on_abstain,
        samples=samples.size,
        passed=int(counts.passed[at]),
        hallucinated=None if passing is None else samples.wrong.size,
        passed_hallucinated=None if passing is None else int(passing[at]),
    )


def passing(scores: Floats, thresholds: Floats) -> NDArray[np.int64]:
    """Return how many of the scores reach each threshold."""
    below = np.searchsorted(np.sort(scores), thresholds, side="left")
    return (len(scores) - below).astype(np.int64)


def _ratio(part: int | None, whole: int | None) -> float | None:
    return part / whole if part is not None and whole else None
