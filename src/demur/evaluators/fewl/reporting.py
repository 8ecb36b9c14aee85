"""Describe a score: the details of an evaluation, its explanation and its warnings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pydantic import JsonValue

from demur.evaluators.fewl.entries import KnownQuestion
from demur.evaluators.fewl.neighbors import Neighbor
from demur.evaluators.fewl.terms import Score
from demur.schema import Failure

Details = Mapping[str, JsonValue]


def terms(score: Score, answers: Sequence[str]) -> Details:
    """Return the terms of the score, each with one value for each reference answer."""
    return {
        "weights": score.weights.tolist(),
        "similarities": score.similarities.tolist(),
        "penalties": None if score.penalties is None else score.penalties.tolist(),
        "expertise": None if score.expertise is None else score.expertise.tolist(),
        "answers": list(answers),
        "counted": list(score.used),
    }


def pairs(known: KnownQuestion | None, used: bool) -> Details:
    """Return how many wrong and corrected answers decided the weights, and how many were dropped.

    Args:
        known: The question with its pairs; None if no pairs were asked for.
        used: Whether the pairs decided the weights.
    """
    if known is None:
        return {"pairs_used": 0, "pairs_dropped": {}}
    names = ("same", "repeated", "incomplete")
    return {
        "pairs_used": known.usable_pairs if used else 0,
        "pairs_dropped": {name: getattr(known.pairs, name, 0) for name in names},
    }


def neighbors(near: Sequence[Neighbor], penalty: bool) -> Details:
    """Return which neighbouring questions the penalty looked at, and whether it was in force."""
    return {
        "penalty": penalty,
        "neighbors_used": len(near),
        "neighbors": [neighbor.question for neighbor in near],
    }


def uniform(known: KnownQuestion, min_pairs: int) -> str:
    """Return a warning that the references have uniform weights, and why."""
    if known.usable_pairs < min_pairs:
        return (
            f"uniform weights: {known.usable_pairs} usable pairs of wrong and corrected answers, "
            f"fewer than min_pairs={min_pairs}"
        )
    return "uniform weights: what the references agree with is unknown"


def thin(near: int, wanted: int) -> str:
    """Return a warning that the penalty has fewer neighbours than it should, or none."""
    # A mean over fewer neighbours has the same scale, but is less steady. Without any neighbour,
    # the scale is another one.
    if near:
        return f"the penalty is of {near} neighbouring questions instead of {wanted}"
    return "no penalty: there are no neighbouring questions yet"


def failure(score: Score) -> Failure:
    """Return what is wrong with a rejected answer: "vague" or "other".

    An answer is vague if it resembles what the references say of other questions at least as much
    as what they say of this question.
    """
    lazy = score.laziness
    return Failure.VAGUE if lazy is not None and lazy >= score.truthfulness else Failure.OTHER


def explanation(score: Score) -> str:
    """Return a sentence with the terms of the score."""
    similarity = f"The answer's similarity to the {len(score.used)} reference answers that count is"
    penalty = (
        ""
        if score.laziness is None
        else f", to what they say of other questions {score.laziness:.2f}"
    )
    return (
        f"{similarity} {score.truthfulness:.2f}{penalty}; that makes a score of {score.value:.3f}."
    )
