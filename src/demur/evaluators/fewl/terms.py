"""Compute a score from texts: choose the pairs to compare, and combine their similarities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from demur.evaluators.fewl import formula
from demur.evaluators.fewl.formula import DivergenceName, Floats, Normalization
from demur.similarity import Pair

Weighting = Literal["expertise", "agreement", "uniform", "best", "ideal", "first"]
Premise = Literal["answer", "reference"]


@dataclass(frozen=True)
class Texts:
    """Hold all texts that a score is made of."""

    answer: str
    """y, the answer to be scored."""
    reference_answers: tuple[str, ...]
    """h_i(x), the N reference answers."""
    corrected: tuple[str, ...] = ()
    """CO_k, the corrected answers; empty if expertise is not computed by similarity."""
    wrong: tuple[str, ...] = ()
    """IW_k, the wrong answers."""
    neighbors: tuple[tuple[str, ...], ...] = ()
    """h_i(x_k): what the references said of each of the K neighbouring questions."""
    premise: Premise = "answer"
    """The text of a pair that is the premise. "answer": the text that is judged, which is y, or h_i
    when its own expertise is computed (v2, section D.8). "reference": the text that it is compared
    with."""

    def pairs(self) -> list[Pair]:
        """Return all pairs to be compared, each with the premise first."""
        sides = (self.corrected, self.wrong)
        pairs = [
            *(
                (answer, text)
                for side in sides
                for answer in self.reference_answers
                for text in side
            ),
            *((self.answer, answer) for answer in self.reference_answers),
            # Diversified answers do not correspond between questions, and a reply may have fewer
            # of them. The index then starts again at 0.
            *(
                (self.answer, replies[at % len(replies)])
                for at in range(len(self.reference_answers))
                for replies in self.neighbors
            ),
        ]
        # All pairs are turned, so that the terms of a score measure the same thing.
        return pairs if self.premise == "answer" else [(held, judged) for judged, held in pairs]

    def read(self, scores: Floats) -> Similarities:
        """Return the similarities of `pairs` in tables."""
        n = len(self.reference_answers)
        sizes = [len(self.corrected), len(self.wrong), 1, len(self.neighbors)]
        ends = np.cumsum([n * size for size in sizes])[:-1]
        corrected, wrong, answer, neighbors = (
            part.reshape(n, size) for part, size in zip(np.split(scores, ends), sizes, strict=True)
        )
        return Similarities(corrected, wrong, answer[:, 0], neighbors)


@dataclass(frozen=True)
class Similarities:
    """Hold the similarities of all pairs."""

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
        """Return r_i by similarity, or None without corrected or wrong answers."""
        if not self.corrected.size or not self.wrong.size:
            return None
        return formula.expertise(self.corrected, self.wrong)

    @property
    def penalties(self) -> Floats | None:
        """Return the laziness penalty of each reference, or None without neighbours."""
        return formula.laziness(self.neighbors) if self.neighbors.size else None


@dataclass(frozen=True)
class Score:
    """Hold a score with its terms, each with one value for each reference answer."""

    value: float
    weights: Floats
    similarities: Floats
    penalties: Floats | None
    expertise: Floats | None
    used: tuple[int, ...]
    """The indices of the references that count: all of them, or the best one."""

    @property
    def truthfulness(self) -> float:
        """Return the truthfulness (equation 1) over the references that count.

        It is the mean similarity under weights that sum to 1.
        """
        shares, used = self.weights, list(self.used)
        return float(shares[used] @ self.similarities[used] / shares[used].sum())

    @property
    def laziness(self) -> float | None:
        """Return the mean penalty of the references that count, or None without penalties."""
        return None if self.penalties is None else float(self.penalties[list(self.used)].mean())


def score(
    similarities: Similarities,
    expertise: Floats | None,
    best: bool = False,
    divergence: DivergenceName = "tv",
    normalization: Normalization = "paper",
    temperature: float = 1.0,
) -> Score:
    """Compute the score (equation 4) from similarities and expertise.

    Args:
        similarities: The similarities of all pairs.
        expertise: r_i of each reference. None: all references weigh the same. The scale does not
            change, since equal weights have the same sum as others.
        best: Whether only the reference with the highest expertise counts. It is scored as if it
            were alone. That is another scale than the scale of all references, so expertise is then
            required.
        divergence: See `formula.fewl`.
        normalization: See `formula.weights`.
        temperature: See `formula.weights`.

    Raises:
        ValueError: `best` is true, and there is no expertise.
    """
    n = similarities.answer.size
    used: Sequence[int] = range(n)
    if best:
        if expertise is None:
            raise ValueError("the best reference cannot be found without expertise")
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
