"""Measure how well decisions find hallucinated answers: F1, precision and recall, in percent.

A method rejects an answer or lets it through. It should reject the hallucinated answers (arXiv
2310.06498, section 5). Intervals are bootstrap intervals of 95 %, resampled by answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from demur_research.bench import Figure
from demur_research.resampling import Floats, drawn_alone, figure

# Each figure is a numerator and a denominator, as weights of four counts: right and passed, right
# and rejected, hallucinated and passed, hallucinated and rejected.
_F1 = ((0, 0, 0, 2), (0, 1, 1, 2))
_PRECISION = ((0, 0, 0, 1), (0, 1, 0, 1))
_RECALL = ((0, 0, 0, 1), (0, 0, 1, 1))


class Detection(NamedTuple):
    """Hold the figures of a method. A figure has no value where its denominator is 0."""

    f1: Figure
    precision: Figure
    """The share of the rejected answers that are hallucinated."""
    recall: Figure
    """The share of the hallucinated answers that are rejected."""


def detection(wrong: Sequence[bool], rejected: Sequence[bool], seed: int = 0) -> Detection:
    """Return the figures of a method's decisions.

    Args:
        wrong: Whether each answer is hallucinated.
        rejected: Whether the method rejects each answer.
        seed: The seed of the bootstrap.

    Raises:
        ValueError: The two sequences differ in length.
    """
    counts, drawn = _counts(_cells(wrong, rejected), 4, seed)
    return Detection(
        *(figure(_of(one, counts)[0], _of(one, drawn)) for one in (_F1, _PRECISION, _RECALL))
    )


def f1_difference(
    wrong: Sequence[bool], first: Sequence[bool], second: Sequence[bool], seed: int = 0
) -> Figure:
    """Return by how much the F1 of one method exceeds another method's on the same answers.

    The interval is that of the difference: the bootstrap draws answers for both methods together.

    Args:
        wrong: Whether each answer is hallucinated.
        first: Whether the first method rejects each answer.
        second: Whether the second method rejects each answer.
        seed: The seed of the bootstrap.

    Returns:
        The difference in points, in [-100, 100].

    Raises:
        ValueError: The sequences differ in length.
    """
    cells = _cells(wrong, first) + 4 * _cells(wrong, second)
    counts, drawn = _counts(cells, 16, seed)
    return figure(_difference(counts)[0], _difference(drawn))


def _cells(wrong: Sequence[bool], rejected: Sequence[bool]) -> NDArray[np.int64]:
    """Return the place of each answer among the four counts."""
    if len(wrong) != len(rejected):
        raise ValueError(
            f"expected as many decisions as answers, got {len(rejected)} for {len(wrong)}"
        )
    return 2 * np.asarray(wrong, dtype=np.int64) + np.asarray(rejected, dtype=np.int64)


def _counts(cells: NDArray[np.int64], kinds: int, seed: int) -> tuple[Floats, Floats]:
    """Count each kind: once over all answers, of shape (1, kinds), and in draws, (draws, kinds)."""
    each = np.eye(kinds)[cells]
    return each.sum(axis=0, keepdims=True), drawn_alone(len(cells), seed) @ each


def _of(ratio: tuple[tuple[int, ...], tuple[int, ...]], counts: Floats) -> Floats:
    """Return a ratio of each row of counts, in percent; NaN where it is undefined.

    NaN stays in this module: `figure` turns it into a figure without a value.
    """
    above, below = (counts @ np.array(weights, dtype=np.float64) for weights in ratio)
    with np.errstate(invalid="ignore"):
        return np.asarray(100 * above / below)


def _difference(counts: Floats) -> Floats:
    both = counts.reshape(-1, 4, 4)  # axis 1: the second method's cell; axis 2: the first's
    return _of(_F1, both.sum(axis=1)) - _of(_F1, both.sum(axis=2))
