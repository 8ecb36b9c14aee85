"""What an evaluation says beside its score: details, a line of explanation, warnings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pydantic import JsonValue

from demur.evaluators.fewl.entries import KnownQuestion
from demur.evaluators.fewl.neighbors import Neighbor
from demur.evaluators.fewl.terms import Score
from demur.schema import Failure

Details = Mapping[str, JsonValue]


def terms(score: Score, answers: Sequence[str]) -> Details:
    """The score's terms, one of each per reference answer."""
    return {
        "weights": score.weights.tolist(),
        "similarities": score.similarities.tolist(),
        "penalties": None if score.penalties is None else score.penalties.tolist(),
        "expertise": None if score.expertise is None else score.expertise.tolist(),
        "answers": list(answers),
        "counted": list(score.used),
    }


def pairs(known: KnownQuestion | None, used: bool) -> Details:
    """How many wrong and corrected answers decided, and how many were dropped.

    Args:
        known: The question with them; None where nobody was asked for them.
        used: Whether they decided the weights.
    """
    if known is None:
        return {"pairs_used": 0, "pairs_dropped": {}}
    names = ("same", "repeated", "incomplete")
    return {
        "pairs_used": _usable(known) if used else 0,
        "pairs_dropped": {name: getattr(known.pairs, name, 0) for name in names},
    }


def neighbors(near: Sequence[Neighbor], penalty: bool) -> Details:
    """Of which questions the penalty is, and whether it was in force."""
    return {
        "penalty": penalty,
        "neighbors_used": len(near),
        "neighbors": [neighbor.question for neighbor in near],
    }


def uniform(known: KnownQuestion, min_pairs: int) -> str:
    """Say that the references are weighed alike, and why."""
    usable = _usable(known)
    if usable < min_pairs:
        return (
            f"uniform weights: {usable} usable pairs of wrong and corrected answers, fewer "
            f"than min_pairs={min_pairs}"
        )
    return "uniform weights: with what the references agree cannot be told"


def thin(near: int, wanted: int) -> str:
    """Say that the penalty is of fewer neighbours than wanted, or that there is none."""
    # A mean over fewer is of the same scale, only less steady; without any the scale is another.
    if near:
        return f"the penalty is of {near} neighbouring questions instead of {wanted}"
    return "no penalty: there are no neighbouring questions yet"


def failure(score: Score) -> Failure:
    """Vague: no more like what was said of this question than like what was said of others."""
    lazy = score.laziness
    return Failure.VAGUE if lazy is not None and lazy >= score.truthfulness else Failure.OTHER


def explanation(score: Score) -> str:
    """The score's terms in a sentence."""
    similarity = f"The answer's similarity to the {len(score.used)} reference answers that count is"
    penalty = (
        ""
        if score.laziness is None
        else f", to what they say of other questions {score.laziness:.2f}"
    )
    return (
        f"{similarity} {score.truthfulness:.2f}{penalty}; that makes a score of {score.value:.3f}."
    )


def _usable(known: KnownQuestion) -> int:
    return len(known.pairs.usable) if known.pairs else 0
