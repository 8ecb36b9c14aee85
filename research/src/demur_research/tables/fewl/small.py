"""Measure how alike two answers are by demur's small judge: whether one entails the other."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from demur.errors import DemurError
from demur.local import SmallJudge
from demur.schema import ClaimLabel
from demur.similarity import Pair, Similarity

SMALL_ALONE, SMALL_ASKED = "small", "small-question"
"""Names of similarities: by the answers alone, and with the question in front of each."""


@cache
def _judge() -> tuple[SmallJudge, str]:
    """Return the judge and its fingerprint, for which its files are read whole."""
    judge = SmallJudge()
    return judge, judge.fingerprint


def small(question: str = "") -> Similarity:
    """Return the probability that the premise entails the hypothesis, by the small judge.

    Args:
        question: A text that is put in front of both, since many answers are a bare name; empty:
            the answers stand alone.

    Raises:
        DemurError: The judge is not available.
    """
    judge, fingerprint = _judge()
    front = f"{question} " if question else ""

    def score(pairs: Sequence[Pair]) -> list[float]:
        found = judge.predict([(front + premise, front + said) for premise, said in pairs])
        for one in found:
            if isinstance(one, str):
                raise DemurError(one)
        return [one[ClaimLabel.ENTAILMENT] for one in found if not isinstance(one, str)]

    return Similarity(score, "small", f"small:{fingerprint}:{question}", batch_size=32)
