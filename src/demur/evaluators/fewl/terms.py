"""From texts to a score: which pairs are compared, and what their similarities make."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from demur.evaluators.fewl import formula
from demur.evaluators.fewl.formula import DivergenceName, Floats, Normalization
from demur.similarity import Pair

Weighting = Literal["expertise", "uniform", "best", "ideal", "first"]
Premise = Literal["answer", "reference"]


@dataclass(frozen=True)
class Texts:
    """All that a score is made of, as texts."""

    answer: str
    """y, the answer to be scored."""
    reference_answers: tuple[str, ...]
    """h_i(x), the N reference answers."""
    corrected: tuple[str, ...] = ()
    """CO_k; empty where no expertise is to be told by similarity."""
    wrong: tuple[str, ...] = ()
    """IW_k."""
    neighbors: tuple[tuple[str, ...], ...] = ()
    """h_i(x_k) of the K neighbouring questions, each with what the references said of it."""
    premise: Premise = "answer"
    """Which text of a pair is the premise. "answer": the one that is judged, which is y, and h_i
    where its own expertise is told (v2, section D.8). "reference": the one it is held against."""

    def pairs(self) -> list[Pair]:
        """All pairs to be compared, premise first."""
        sides = (self.corrected, self.wrong)
        pairs = [
            *(
                (answer, text)
                for side in sides
                for answer in self.reference_answers
                for text in side
            ),
            *((self.answer, answer) for answer in self.reference_answers),
            # Diversified answers have no identity from question to question, and a reply may give
            # fewer: then they are gone through again.
            *(
                (self.answer, replies[at % len(replies)])
                for at in range(len(self.reference_answers))
                for replies in self.neighbors
            ),
        ]
        # All of them, so that the terms of one score answer the same question.
        return pairs if self.premise == "answer" else [(held, judged) for judged, held in pairs]

    def read(self, scores: Floats) -> Similarities:
        """The similarities of `pairs`, in tables."""
        n = len(self.reference_answers)
        sizes = [len(self.corrected), len(self.wrong), 1, len(self.neighbors)]
        ends = np.cumsum([n * size for size in sizes])[:-1]
        corrected, wrong, answer, neighbors = (
            part.reshape(n, size) for part, size in zip(np.split(scores, ends), sizes, strict=True)
        )
        return Similarities(corrected, wrong, answer[:, 0], neighbors)


@dataclass(frozen=True)
class Similarities:
    """What the pairs' similarities are."""

    corrected: Floats
    """Sim(h_i, CO_k), of shape (N, R)."""
    wrong: Floats
    """Sim(h_i, IW_k), of shape (N, R')."""
    answer: Floats
    """Sim(y, h_i(x)), of shape (N,)."""
    neighbors: Floats
    """Sim(y, h_i(x_k)), of shape (N, K)."""

    @property
    def expertise(self) -> Floats | None:
        """r_i by similarity; None without corrected or wrong answers."""
        if not self.corrected.size or not self.wrong.size:
            return None
        return formula.expertise(self.corrected, self.wrong)

    @property
    def penalties(self) -> Floats | None:
        """The laziness penalty of each reference; None without neighbours."""
        return formula.laziness(self.neighbors) if self.neighbors.size else None


@dataclass(frozen=True)
class Score:
    """A score with its terms, one of each per reference answer."""

    value: float
    weights: Floats
    similarities: Floats
    penalties: Floats | None
    expertise: Floats | None
    used: tuple[int, ...]
    """The references that count: all, or the best one."""

    @property
    def truthfulness(self) -> float:
        """Equation 1 over those that count: the mean similarity under weights that sum to 1."""
        shares, used = self.weights, list(self.used)
        return float(shares[used] @ self.similarities[used] / shares[used].sum())

    @property
    def laziness(self) -> float | None:
        """The mean penalty of those that count."""
        return None if self.penalties is None else float(self.penalties[list(self.used)].mean())


def score(
    similarities: Similarities,
    expertise: Floats | None,
    best: bool = False,
    divergence: DivergenceName = "tv",
    normalization: Normalization = "paper",
    temperature: float = 1.0,
) -> Score:
    """Equation 4 over what was found.

    Args:
        similarities: Those of all pairs.
        expertise: r_i of each reference. None: all count alike, which is the same scale, since
            equal weights have the sum that others have.
        best: Whether only the reference with the highest expertise counts. It is scored as the only
            one, which is another scale than that of all, so that there is no way around expertise.
        divergence: See `formula.fewl`.
        normalization: See `formula.weights`.
        temperature: See `formula.weights`.

    Raises:
        ValueError: The best is wanted without expertise.
    """
    n = similarities.answer.size
    used: Sequence[int] = range(n)
    if best:
        if expertise is None:
            raise ValueError("the best reference cannot be told without expertise")
        used = (formula.single_best(expertise),)
    at = list(used)
    skill = np.zeros(n) if expertise is None else expertise
    shares = np.zeros(n)
    shares[at] = formula.weights(skill[at], temperature, normalization)
    penalties = similarities.penalties
    value = formula.fewl(
        similarities.answer[at],
        shares[at],
        None if penalties is None else penalties[at],
        divergence,
    )
    return Score(float(value), shares, similarities.answer, penalties, expertise, tuple(used))
