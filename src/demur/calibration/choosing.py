"""Thresholds without a guarantee: the best F1 on these samples, or a percentile of their scores."""

from __future__ import annotations

import math
from fractions import Fraction
from numbers import Real

import numpy as np

from demur.calibration.operating import Counts, count
from demur.calibration.samples import CalibrationError, Labels, Samples, Scores, read
from demur.evaluators.base import Evaluator
from demur.schema import Threshold, ThresholdMethod


def best_f1(
    scores: Scores, hallucinated: Labels, *, evaluator: Evaluator | None = None
) -> Threshold:
    """The threshold that finds hallucinated answers with the best F1 on these samples.

    A hallucinated answer is found if it does not pass. Of several thresholds with the same F1 it is
    the lowest, which lets the most pass. The highest score always passes: to let nothing pass may
    well have a better F1, and is of no use. Nothing is guaranteed of other answers: there it will
    be somewhat worse, the more so the fewer samples there are.

    Args:
        scores: One per answer, higher is better: finite numbers, or evaluations of one evaluator,
            to which the threshold is then bound.
        hallucinated: Whether it is, for each of them.
        evaluator: The evaluator whose scores they are, to bind numbers to; of evaluations, what
            they must be of.

    Returns:
        A score that occurs; with `method` "best-f1".

    Raises:
        CalibrationError: All have the same label, no threshold finds any, or the arguments are of
            no use.
    """
    samples = read(scores, hallucinated, evaluator)
    counts = count(samples)
    passing = counts.passed_hallucinated
    assert passing is not None
    wrong = int(passing[0])
    if wrong in (0, samples.size):
        raise CalibrationError(
            f"the best F1 needs hallucinated answers and others, got {wrong:,} and "
            f"{samples.size - wrong:,}: label more"
        )
    f1 = 2 * (wrong - passing) / (samples.size - counts.passed + wrong)
    at = int(np.argmax(f1))  # the first of equal ones
    if not f1[at]:
        raise CalibrationError(
            f"no threshold finds a hallucinated answer: all {wrong:,} have the highest score there "
            f"is, {counts.thresholds[-1]:g}. This evaluator cannot tell them from the others"
        )
    return _threshold(samples, counts, at, "best-f1")


def percentile(scores: Scores, percent: float, *, evaluator: Evaluator | None = None) -> Threshold:
    """The highest threshold with which at most `percent` of a hundred of these answers fail.

    It needs no labels, and says nothing of hallucinations.

    Args:
        scores: One per answer, higher is better: finite numbers, or evaluations of one evaluator,
            to which the threshold is then bound.
        percent: From 0, with which all pass, to 100, with which the highest score passes.
        evaluator: The evaluator whose scores they are, to bind numbers to; of evaluations, what
            they must be of.

    Returns:
        A score that occurs; with `method` "percentile". Of equal scores all pass or all fail, so
        fewer may fail than were allowed to.

    Raises:
        CalibrationError: The arguments are of no use.
    """
    if isinstance(percent, bool) or not isinstance(percent, Real) or not 0 <= percent <= 100:
        raise CalibrationError(f"percent: expected a number from 0 to 100, got {percent!r}")
    samples = read(scores, None, evaluator, labelled=False)
    counts = count(samples)
    # As it is written: 0.7 % of 1,000 are 7, and the float next to it is less than that.
    most = math.floor(Fraction(repr(float(percent))) * samples.size / 100)
    at = int(np.flatnonzero(samples.size - counts.passed <= most)[-1])
    return _threshold(samples, counts, at, "percentile", float(percent))


def _threshold(
    samples: Samples,
    counts: Counts,
    at: int,
    method: ThresholdMethod,
    percent: float | None = None,
) -> Threshold:
    passing = counts.passed_hallucinated
    return Threshold(
        value=float(counts.thresholds[at]),
        method=method,
        percentile=percent,
        evaluator=samples.evaluator,
        fingerprints=dict(samples.fingerprints),
        samples=samples.size,
        passed=int(counts.passed[at]),
        hallucinated=None if passing is None else int(passing[0]),
        passed_hallucinated=None if passing is None else int(passing[at]),
    )
