"""Choose a threshold with a guarantee, by Learn then Test.

The risk R(t) of a threshold t is the share of all hallucinated answers that pass:

    R(t) = P(score >= t | hallucinated)

An answer that states nothing to check has no score. It counts as inf if a guard lets such answers
pass, and as -inf if it fails them. So n samples of hallucinated answers, a of which state nothing,
have the p-value P(Binomial(n, target) <= k(t)) with

    k(t) = a + #{score >= t}  (on_abstain="pass"),    k(t) = #{score >= t}  (on_abstain="fail").

Both are risks of one variable with values in [-inf, inf], and k(t) never rises with t.

Answers that an evaluator cannot decide about are left out of n. They do not pass a guard with
`on_error="closed"`. So the share of all hallucinated answers that pass is R(t) times the share that
the evaluator decides about, which is at most R(t). A guard with `on_error="open"` lets undecided
answers pass too, and the guarantee does not cover these.

Each score that occurs is a candidate. The hypothesis that its risk is above the target is tested by
an exact binomial tail. The test begins with the strictest candidate and goes on until a hypothesis
cannot be rejected: fixed sequence testing in Learn then Test (Angelopoulos, Bates, Candès, Jordan
and Lei, arXiv 2110.01052, Theorem 1). A lower threshold never lets fewer answers pass, so the
result equals the calibration by an upper confidence bound of Bates, Angelopoulos, Lei, Malik and
Jordan (arXiv 2101.02703, Theorem 1, with the exact bound for losses of 0 and 1 of its Appendix B).

The first paper requires candidates that do not depend on the sample, and the second requires a
continuous risk. Here the candidates are the sample's own scores, and scores may be equal. The
guarantee holds nevertheless:

- R never rises with t and is continuous from the left, ties or not. Let s be the least upper bound
  of the thresholds whose risk is above the target. Then R(s) is the target or more, and every
  threshold with a risk above the target is s or less.
- If one of these thresholds is chosen, at most k hallucinated samples have its score or more, so at
  most k have a score of s or more.
- s does not depend on the sample. So the number of samples with a score of s or more is binomial,
  with a share of the target or more. k was chosen so that this number is at most k with a
  probability of at most 1 - confidence.

The proof covers all thresholds at once, so scores of other answers may be candidates too. s may be
inf, if the share of the target or more states nothing and passes.

Repeats are not independent samples, and demur cannot know how they arose. There are two cases:

- Answers were drawn, and each was then scored several times. Counted once, they are a sample for
  the share of different answers that pass.
- Frequent answers were drawn often. Counted each time, they are a sample for the share of all
  answers that pass.

A threshold is accepted only if the hypothesis is rejected in both cases, so the guarantee of the
case that applies holds.
"""

from __future__ import annotations

from decimal import ROUND_CEILING, Context

import numpy as np

from demur.calibration.binomial import least_samples, most_passing, upper_bound
from demur.calibration.operating import count, passing, threshold_at
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
    """Return the lowest threshold that lets at most a share of hallucinated answers pass.

    The guarantee: with a probability of at least `confidence` over the draw of these samples, at
    most the share `target` of all hallucinated answers passes. An answer passes if it has the
    threshold's score or more or, with `on_abstain="pass"`, if it states nothing to check. The
    samples must be drawn like the answers to come (independently, from the same distribution), and
    must not have been used to choose anything else about the evaluator. The method is Learn then
    Test, arXiv 2110.01052, Theorem 1, with fixed sequence testing and exact binomial tails.

    Args:
        scores: One score for each answer, higher is better: finite numbers, or evaluations of one
            evaluator, to which the threshold is then bound.
        hallucinated: One label for each answer: whether it is hallucinated.
        target: The largest share of hallucinated answers that may pass, in (0, 1).
        confidence: The probability with which the guarantee holds, in (0, 1).
        on_abstain: What the guard does with answers that state nothing to check, see `Guard`. With
            "pass" they pass any threshold, and with "fail" none. It matters only for evaluations,
            since numbers say nothing of such answers.
        samples: The answers that were judged, one for each score. The same answer to the same
            question is then counted once, with a `RepeatsWarning`; `demur.calibration.repeats` says
            which answers are the same. Without `samples`, repeats cannot be found: leave them out
            yourself.
        evaluator: The evaluator that gave the scores. Numbers are bound to it; evaluations must be
            its own.

    Returns:
        A threshold at one of the scores, with `method` "learn-then-test".

    Raises:
        CalibrationError: Too few of the answers are hallucinated for such a guarantee; too many of
            them have the highest score or pass any threshold; the same answer is labelled both
            ways; or the arguments cannot be used. The message says what would help.
    """
    target, confidence = share(target, "target"), share(confidence, "confidence")
    answers = once(read(scores, hallucinated, evaluator, on_abstain=on_abstain), samples)
    counts = count(answers)
    # Test both with repeats counted once and with all repeats; the module's docstring says why.
    drawn = answers if answers.drawn is None else answers.drawn
    at = max(_lowest(sample, counts.thresholds, target, confidence) for sample in (answers, drawn))
    how = {"target": target, "confidence": confidence}
    return threshold_at(answers, counts, at, on_abstain, "learn-then-test", **how)


def _lowest(samples: Samples, thresholds: Floats, target: float, confidence: float) -> int:
    """Return the index of the lowest threshold for which the hypothesis is rejected."""
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
    """Return the message that says why even the highest score cannot be the threshold."""
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
    """Return a sentence about the lowest target that these samples could meet."""
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
