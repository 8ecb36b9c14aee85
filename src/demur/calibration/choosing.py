"""Choose thresholds without a guarantee: by the best F1, or by a percentile of the scores."""

from __future__ import annotations

import math
from fractions import Fraction
from numbers import Real

import numpy as np

from demur.calibration.operating import count, threshold_at
from demur.calibration.repeats import Answers, once
from demur.calibration.samples import CalibrationError, Labels, Scores, read
from demur.evaluators import Evaluator
from demur.schema import OnAbstain, Threshold


def best_f1(
    scores: Scores,
    hallucinated: Labels,
    *,
    on_abstain: OnAbstain = "pass",
    samples: Answers | None = None,
    evaluator: Evaluator | None = None,
) -> Threshold:
    """Return the threshold that finds hallucinated answers with the best F1 on these samples.

    A hallucinated answer is found if it does not pass. Of several thresholds with the same F1, the
    lowest is chosen, which lets the most answers pass. The highest score always passes, because a
    threshold that lets nothing pass is of no use even if its F1 is better. Nothing is guaranteed
    about other answers. Expect a somewhat lower F1 on them, the more so the fewer samples there
    are.

    Args:
        scores: One score for each answer, higher is better: finite numbers, or evaluations of one
            evaluator, to which the threshold is then bound.
        hallucinated: One label for each answer: whether it is hallucinated.
        on_abstain: What the guard does with answers that state nothing to check, see `calibrate`.
        samples: The answers that were judged, see `calibrate`.
        evaluator: The evaluator that gave the scores. Numbers are bound to it; evaluations must be
            its own.

    Returns:
        A threshold at one of the scores, with `method` "best-f1".

    Raises:
        CalibrationError: All answers have the same label, no threshold finds a hallucinated answer,
            or the arguments cannot be used.
    """
    answers = once(read(scores, hallucinated, evaluator, on_abstain=on_abstain), samples)
    counts, wrong = count(answers), answers.wrong.size
    assert counts.passed_hallucinated is not None
    if wrong in (0, answers.size):
        raise CalibrationError(
            f"the best F1 needs hallucinated answers and others, got {wrong:,} and "
            f"{answers.size - wrong:,}: label more"
        )
    f1 = 2 * (wrong - counts.passed_hallucinated) / (answers.size - counts.passed + wrong)
    at = int(np.argmax(f1))  # the first, so the lowest, of equal ones
    if not f1[at]:
        silent = int(np.sum(np.isinf(answers.wrong)))
        raise CalibrationError(
            f"no threshold finds a hallucinated answer: all {wrong:,} have the highest score there "
            f"is, {counts.thresholds[-1]:g}"
            + (f", or state nothing to check ({silent:,}) and pass" if silent else "")
            + ". This evaluator cannot tell them from the others"
        )
    return threshold_at(answers, counts, at, on_abstain, "best-f1")


def percentile(
    scores: Scores,
    percent: float,
    *,
    on_abstain: OnAbstain = "pass",
    samples: Answers | None = None,
    evaluator: Evaluator | None = None,
) -> Threshold:
    """Return the highest threshold at which at most `percent` percent of these answers fail.

    It needs no labels, and says nothing about hallucinations.

    Args:
        scores: One score for each answer, higher is better: finite numbers, or evaluations of one
            evaluator, to which the threshold is then bound.
        percent: A number from 0, with which all answers pass, to 100, with which only the highest
            score passes.
        on_abstain: What the guard does with answers that state nothing to check, see `calibrate`.
        samples: The answers that were judged, see `calibrate`.
        evaluator: The evaluator that gave the scores. Numbers are bound to it; evaluations must be
            its own.

    Returns:
        A threshold at one of the scores, with `method` "percentile". Equal scores all pass or all
        fail, so fewer answers may fail than `percent` allows.

    Raises:
        CalibrationError: Too many answers fail at any threshold, since they state nothing to check;
            or the arguments cannot be used.
    """
    if isinstance(percent, bool) or not isinstance(percent, Real) or not 0 <= percent <= 100:
        raise CalibrationError(f"percent: expected a number from 0 to 100, got {percent!r}")
    every = read(scores, None, evaluator, labelled=False, on_abstain=on_abstain)
    answers = once(every, samples)
    counts = count(answers)
    # Use the decimal that was written: 0.7 % of 1,000 is 7, but the nearest float gives less.
    most = math.floor(Fraction(repr(float(percent))) * answers.size / 100)
    failed = answers.size - counts.passed
    if failed[0] > most:
        raise CalibrationError(
            f"{failed[0]:,} of the {answers.size:,} answers state nothing to check and fail at any "
            f"threshold, and at most {most:,} may: ask for a higher percentile, or for a guard "
            'that lets them pass (on_abstain="pass")'
        )
    at = int(np.flatnonzero(failed <= most)[-1])
    return threshold_at(answers, counts, at, on_abstain, "percentile", percentile=float(percent))
