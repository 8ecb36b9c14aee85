"""Define what a search for exemplars returns, and the limits that it takes."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral

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
