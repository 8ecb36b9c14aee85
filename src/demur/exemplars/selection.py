"""Choose the examples of a prompt among the questions that a search returned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from numbers import Integral

import numpy as np
from numpy.typing import NDArray

from demur.exemplars.entries import is_score


@dataclass(frozen=True)
class Exemplar:
    """Hold a question near the user's question, with its best answer."""

    id: str
    question: str
    answer: str
    score: float
    similarity: float
    """The cosine of the vectors of the two questions."""
    vector: NDArray[np.float32] | None = field(default=None, repr=False, compare=False)
    """The vector of the question, if it was requested."""

    def fits(self, max_similarity: float | None, min_score: float | None) -> bool:
        """Return whether the similarity is below its ceiling and the score reaches its floor."""
        near = max_similarity is None or self.similarity < max_similarity
        return near and (min_score is None or self.score >= min_score)


def check_limits(k: int, max_similarity: float | None, min_score: float | None) -> None:
    """Refuse limits that are out of their range.

    Raises:
        ValueError: `k` is not an integer of at least 1, `max_similarity` is not a cosine above -1,
            or `min_score` is not a finite number.
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
    """Return at most `k` exemplars to show, with the most relevant first.

    Relevance mixes nearness with the rank of the score among these exemplars, since a score has no
    scale that fits a cosine. With diversity, exemplars are chosen one by one. Each is chosen by its
    relevance minus its similarity to the most similar exemplar that is chosen already: maximal
    marginal relevance (Carbonell and Goldstein, 1998).

    Args:
        exemplars: Any number of exemplars.
        k: The largest number to choose.
        score_weight: The share of the score in the relevance, in [0, 1].
        diversity: The share of the similarity that is subtracted, in [0, 1].
        vectors: The vectors of the exemplars, of shape (exemplars, dimensions) and any length but
            0; needed for diversity only.

    Returns:
        The chosen exemplars. They do not depend on the order of `exemplars`.
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
    # The rank is the share of the others that score less, plus half of those that score the same.
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
        best = int(worth.argmax())  # argmax takes the first of equal values: the nearest
        alike = np.maximum(alike, cosines[best]) if drawn else cosines[best]
        drawn.append(best)
    return drawn


def _cosines(vectors: NDArray[np.float32]) -> NDArray[np.float64]:
    wide = vectors.astype(np.float64)
    lengths = np.linalg.norm(wide, axis=1, keepdims=True)
    scaled = wide / np.where(lengths, lengths, 1.0)
    cosines: NDArray[np.float64] = scaled @ scaled.T
    return cosines
