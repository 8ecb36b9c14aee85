"""A threshold with a guarantee, by Learn then Test.

The risk R(t) of a threshold t is the share of all hallucinated answers that pass:

    R(t) = P(score >= t | hallucinated)

An answer that states nothing to check has no score. It counts as inf where a guard lets such
answers pass, and as -inf where it fails them, so that n samples of hallucinated answers, a of which
state nothing, have the p-value P(Binomial(n, target) <= k(t)) with

    k(t) = a + #{score >= t}  (on_abstain="pass"),    k(t) = #{score >= t}  (on_abstain="fail").

Both are risks of one variable with values in [-inf, inf], and k(t) never rises with t. Answers that
an evaluator cannot decide about are left out of n. They do not pass a guard that is closed on
errors, so the share of all hallucinated answers that pass is R(t) times the share it decides about,
which is no more than R(t). One that is open lets them pass beside it.

Each score that occurs is a candidate. The hypothesis that its risk is above the
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

That is about all thresholds at once, so scores of other answers may be candidates too. s may be
inf: where the share of the target or more states nothing and passes.

Repeats are not independent samples, but it is not known what they are. Either answers were drawn
and each was then scored several times; counted once they are a sample, of the share of different
answers that pass. Or answers that come often were drawn often; counted each time they are one, of
the share of all answers that pass. A threshold is taken only if the hypothesis of either kind is
rejected, so of both guarantees the one that applies holds.
"""

from __future__ import annotations

from decimal import ROUND_CEILING, Context

import numpy as np

from demur.calibration.binomial import least_samples, most_passing, upper_bound
from demur.calibration.operating import count, passing
from demur.calibration.repeats import Answers, once
from demur.calibration.samples import CalibrationError, Floats, Labels, Samples, Scores, read, share
from demur.evaluators import Evaluator
from demur.schema import OnAbstain, Threshold

_UP = Context(prec=3, rounding=ROUND_CEILING)


def calibrate(
    scores: Scores,
    hallucinated: Labels,
    *,
    target: float,
    confidence: float,
    on_abstain: OnAbstain = "pass",
    samples: Answers | None = None,
    evaluator: Evaluator | None = None,
) -> Threshold:
    """The lowest threshold that lets at most a share of hallucinated answers pass.

    What is guaranteed: with a probability of at least `confidence` over the draw of these samples,
    at most the share `target` of all hallucinated answers has the threshold's score or more, or
    with `on_abstain="pass"` states nothing to check. The samples have to be drawn like the answers
    to come (independently, from the same distribution), and must not have been used to choose
    anything else about the evaluator. Learn then Test, arXiv 2110.01052, Theorem 1, with fixed
    sequence testing and exact binomial tails.

    Args:
        scores: One per answer, higher is better: finite numbers, or evaluations of one evaluator,
            to which the threshold is then bound.
        hallucinated: Whether it is, for each of them.
        target: In (0, 1).
        confidence: In (0, 1).
        on_abstain: What the guard does with answers that state nothing to check, see `Guard`. With
            "pass" they pass any threshold, and with "fail" none. Of evaluations only: numbers say
            nothing of such answers.
        samples: What was judged, answer by answer. The same answer to the same question is then
            counted once, with a `RepeatsWarning`; see `demur.calibration.repeats` for which are the
            same. Without it nothing is known of repeats: leave them out yourself.
        evaluator: The evaluator whose scores they are, to bind numbers to; of evaluations, what
            they must be of.

    Returns:
        A score that occurs; with `method` "learn-then-test".

    Raises:
        CalibrationError: Too few of the answers are hallucinated for such a guarantee, too many of
            these have the highest score there is or pass any threshold, the same answer is labelled
            both ways, or the arguments are of no use; the message says what would do.
    """
    target, confidence = share(target, "target"), share(confidence, "confidence")
    answers = once(read(scores, hallucinated, evaluator, on_abstain=on_abstain), samples)
    counts = count(answers)
    # Both as repeats counted once, and as they were drawn; see above.
    drawn = answers if answers.drawn is None else answers.drawn
    at = max(_lowest(sample, counts.thresholds, target, confidence) for sample in (answers, drawn))
    assert counts.passed_hallucinated is not None
    return Threshold(
        value=float(counts.thresholds[at]),
        method="learn-then-test",
        target=target,
        confidence=confidence,
        evaluator=answers.evaluator,
        fingerprints=dict(answers.fingerprints),
        on_abstain=on_abstain,
        samples=answers.size,
        passed=int(counts.passed[at]),
        hallucinated=answers.wrong.size,
        passed_hallucinated=int(counts.passed_hallucinated[at]),
    )


def _lowest(samples: Samples, thresholds: Floats, target: float, confidence: float) -> int:
    """The place of the lowest threshold for which the hypothesis is rejected."""
    wrong, least = samples.wrong.size, least_samples(target, confidence)
    if wrong < least:
        repeats = 0 if samples.drawn is None else samples.drawn.size - samples.size
        counted_once = f" ({repeats:,} repeats are counted once)" if repeats else ""
        raise CalibrationError(
            f"{wrong:,} of the {samples.size:,} answers are hallucinated{counted_once}: to let at "
            f"most {target:g} of such answers pass with a confidence of {confidence:g}, at least "
            f"{least:,} are needed. Label more, or ask for a higher target or a lower confidence"
        )
    passed = passing(samples.wrong, thresholds)
    most = most_passing(wrong, target, confidence)
    if passed[-1] > most:
        raise CalibrationError(_none(samples, float(thresholds[-1]), target, confidence, most))
    return int((passed <= most).argmax())


def _none(samples: Samples, top: float, target: float, confidence: float, most: int) -> str:
    """Why even the highest score is no threshold."""
    bad = samples.wrong
    wrong, highest, silent = bad.size, int(np.sum(bad >= top)), int(np.sum(bad == np.inf))
    aim = (
        f"at most {most:,} may pass for a target of {target:g} with a confidence of {confidence:g}"
    )
    attainable = _attainable(samples, top, confidence)
    if silent > most:
        return (
            f"no threshold can keep the target: {silent:,} of the {wrong:,} hallucinated answers "
            f"state nothing to check, which a guard lets pass at any threshold, and {aim}. "
            'Have them fail, by Guard(..., on_abstain="fail") and a threshold for such a guard '
            '(on_abstain="fail"; demur calibrate --on-abstain fail), or look at their labels: an '
            f"answer that states nothing is hardly hallucinated. {attainable}"
        )
    also = f", or state nothing to check and pass ({silent:,})" if silent else ""
    return (
        f"no score can be the threshold: {highest:,} of the {wrong:,} hallucinated answers "
        f"have the highest score there is, {top:g}{also}, and {aim}. {attainable}"
    )


def _attainable(samples: Samples, top: float, confidence: float) -> str:
    """What could be had of an evaluator that lets so many pass at the highest score."""
    counted = [samples] if samples.drawn is None else [samples, samples.drawn]
    passed = [(int(np.sum(answers.wrong >= top)), answers.wrong.size) for answers in counted]
    most = max(upper_bound(part, whole, confidence) for part, whole in passed)
    bound = _UP.create_decimal_from_float(most)
    if bound >= 1:
        return "This evaluator cannot tell them from the others"
    return (
        f"The lowest target that can be met with these samples is {float(bound):g}: ask for that, "
        "or use an evaluator that tells the answers apart"
    )
