"""A threshold with a guarantee, by Learn then Test.

The risk R(t) of a threshold t is the share of all hallucinated answers that pass, those with a
score of t or more. Each score that occurs is a candidate. The hypothesis that its risk is above the
target is tested by an exact binomial tail, from the strictest candidate on, until one cannot be
rejected: fixed sequence testing in Learn then Test (Angelopoulos, Bates, Candès, Jordan and Lei,
arXiv 2110.01052, Theorem 1). Since a lower threshold never lets fewer pass, this comes to the
calibration by an upper confidence bound of Bates, Angelopoulos, Lei, Malik and Jordan
(arXiv 2101.02703, Theorem 1, with the exact bound for losses of 0 and 1 of its Appendix B).

The one asks for candidates that do not depend on the sample, the other for a continuous risk. Here
the sample's own scores are the candidates, and scores tie. The guarantee holds all the same:

- R never rises with t and is continuous from the left, ties or not. Let s be the least upper bound
  of the thresholds whose risk is above the target. Then R(s) is the target or more, and every
  threshold with a risk above the target is s or less.
- If one of those is chosen, at most k hallucinated samples have its score or more, so at most k
  have a score of s or more.
- s does not depend on the sample, so the number of the latter is binomial, with a share of the
  target or more; and k was chosen so that this is at most k with a probability of at most
  1 - confidence.

That is about all thresholds at once, so scores of other answers may be candidates too.
"""

from __future__ import annotations

from decimal import ROUND_CEILING, Context

from demur.calibration.binomial import least_samples, most_passing, upper_bound
from demur.calibration.operating import count
from demur.calibration.samples import CalibrationError, Labels, Scores, read, share
from demur.evaluators.base import Evaluator
from demur.schema import Threshold

_UP = Context(prec=3, rounding=ROUND_CEILING)


def calibrate(
    scores: Scores,
    hallucinated: Labels,
    *,
    target: float,
    confidence: float,
    evaluator: Evaluator | None = None,
) -> Threshold:
    """The lowest threshold that lets at most a share of hallucinated answers pass.

    What is guaranteed: with a probability of at least `confidence` over the draw of these samples,
    at most the share `target` of all hallucinated answers has the threshold's score or more. The
    samples have to be drawn like the answers to come (independently, from the same distribution),
    and must not have been used to choose anything else about the evaluator. Learn then Test,
    arXiv 2110.01052, Theorem 1, with fixed sequence testing and exact binomial tails.

    Args:
        scores: One per answer, higher is better: finite numbers, or evaluations of one evaluator,
            to which the threshold is then bound.
        hallucinated: Whether it is, for each of them.
        target: In (0, 1).
        confidence: In (0, 1).
        evaluator: The evaluator whose scores they are, to bind numbers to; of evaluations, what
            they must be of.

    Returns:
        A score that occurs; with `method` "learn-then-test".

    Raises:
        CalibrationError: Too few of the answers are hallucinated for such a guarantee, too many of
            these have the highest score there is, or the arguments are of no use; the message says
            what would do.
    """
    target, confidence = share(target, "target"), share(confidence, "confidence")
    samples = read(scores, hallucinated, evaluator)
    counts = count(samples)
    passing = counts.passed_hallucinated
    assert passing is not None
    wrong = int(passing[0])
    least = least_samples(target, confidence)
    if wrong < least:
        raise CalibrationError(
            f"{wrong:,} of the {samples.size:,} answers are hallucinated: to let at most "
            f"{target:g} of such answers pass with a confidence of {confidence:g}, at least "
            f"{least:,} are needed. Label more, or ask for a higher target or a lower confidence"
        )
    most = most_passing(wrong, target, confidence)
    if passing[-1] > most:
        raise CalibrationError(
            f"no score can be the threshold: {passing[-1]:,} of the {wrong:,} hallucinated answers "
            f"have the highest score there is, {counts.thresholds[-1]:g}, and at most {most:,} may "
            f"pass for a target of {target:g} with a confidence of {confidence:g}. "
            f"{_attainable(int(passing[-1]), wrong, confidence)}"
        )
    at = int((passing <= most).argmax())
    return Threshold(
        value=float(counts.thresholds[at]),
        method="learn-then-test",
        target=target,
        confidence=confidence,
        evaluator=samples.evaluator,
        fingerprints=dict(samples.fingerprints),
        samples=samples.size,
        passed=int(counts.passed[at]),
        hallucinated=wrong,
        passed_hallucinated=int(passing[at]),
    )


def _attainable(highest: int, wrong: int, confidence: float) -> str:
    """What could be had of an evaluator that gives so many the highest score."""
    bound = _UP.create_decimal_from_float(upper_bound(highest, wrong, confidence))
    if bound >= 1:
        return "This evaluator cannot tell them from the others"
    return (
        f"The lowest target that can be met with these samples is {float(bound):g}: ask for that, "
        "or use an evaluator that tells the answers apart"
    )
