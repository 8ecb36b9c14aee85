"""Which of the questions that were found become the examples of a prompt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from numbers import Integral

import numpy as np
from numpy.typing import NDArray

from demur.exemplars.entries import is_score


@dataclass(frozen=True)
class Exemplar:
    """A question near the one that was asked, with its best answer."""

    id: str
    question: str
    answer: str
    score: float
    similarity: float
    """The cosine of the two questions' vectors."""
    vector: NDArray[np.float32] | None = field(default=None, repr=False, compare=False)
    """The question's vector, where it was asked for."""

    def fits(self, max_similarity: float | None, min_score: float | None) -> bool:
        """Whether the similarity is below its ceiling, and the score not below its floor."""
        near = max_similarity is None or self.similarity < max_similarity
        return near and (min_score is None or self.score >= min_score)


def check_limits(k: int, max_similarity: float | None, min_score: float | None) -> None:
    """Refuse what no search can keep to.

    Raises:
        ValueError: `k` is no integer of at least 1, `max_similarity` no cosine above -1, or
            `min_score` no finite number.
    """
    if not isinstance(k, Integral) or k < 1:
        raise ValueError(f"k must be an integer, at least 1, got {k!r}")
    if max_similarity is not None and not (is_score(max_similarity) and -1 < max_similarity <= 1):
        raise ValueError(f"max_similarity is a cosine, above -1 and up to 1, got {max_similarity}")
    if min_score is not None and not is_score(min_score):
        raise ValueError(f"min_score must be a finite number, got {min_score!r}")


def choose(
    exemplars: Sequence[Exemplar],
    k: int,
    score_weight: float = 0.0,
    diversity: float = 0.0,
    vectors: NDArray[np.float32] | None = None,
) -> list[Exemplar]:
    """The `k` to be shown, the most relevant first.

    Relevance is nearness mixed with the score's place among those found, since a score has no scale
    of its own that fits a cosine. With diversity they are drawn one by one, each by its relevance
    less its likeness to the nearest of those that are drawn already: maximal marginal relevance
    (Carbonell and Goldstein, 1998).

    Args:
        exemplars: Any number of them.
        k: How many to choose, at most.
        score_weight: The share of the score in the relevance, in [0, 1].
        diversity: The share of the likeness that is taken off, in [0, 1].
        vectors: Of shape (found, dimensions), of any length but 0; needed for diversity only.

    Returns:
        The same for the same `exemplars` in any order.
    """
    order = sorted(
        range(len(exemplars)), key=lambda at: (-exemplars[at].similarity, exemplars[at].id)
    )
    relevance = _relevance([exemplars[at] for at in order], score_weight)
    if diversity == 0 or vectors is None:
        drawn = sorted(range(len(order)), key=lambda at: -relevance[at])[:k]
    else:
        drawn = _drawn(relevance, _cosines(vectors[order]), k, diversity)
    return [exemplars[order[at]] for at in drawn]


def _relevance(exemplars: Sequence[Exemplar], score_weight: float) -> NDArray[np.float64]:
    nearness = np.array([exemplar.similarity for exemplar in exemplars], np.float64)
    scores = np.array([exemplar.score for exemplar in exemplars], np.float64)
    # The share of the others that score less, and half of those that score the same.
    equal = (scores[:, None] == scores).sum(axis=1) - 1
    less = (scores[:, None] > scores).sum(axis=1)
    places = (less + equal / 2) / max(1, len(exemplars) - 1)
    mixed: NDArray[np.float64] = (1 - score_weight) * nearness + score_weight * places
    return mixed


def _drawn(
    relevance: NDArray[np.float64], cosines: NDArray[np.float64], k: int, diversity: float
) -> list[int]:
    drawn: list[int] = []
    alike = np.zeros(len(relevance))
    while len(drawn) < min(k, len(relevance)):
        worth = (1 - diversity) * relevance - diversity * alike
        worth[drawn] = -np.inf
        best = int(worth.argmax())  # the first of equal ones: the nearest
        alike = np.maximum(alike, cosines[best]) if drawn else cosines[best]
        drawn.append(best)
    return drawn


def _cosines(vectors: NDArray[np.float32]) -> NDArray[np.float64]:
    wide = vectors.astype(np.float64)
    lengths = np.linalg.norm(wide, axis=1, keepdims=True)
    scaled = wide / np.where(lengths, lengths, 1.0)
    cosines: NDArray[np.float64] = scaled @ scaled.T
    return cosines
