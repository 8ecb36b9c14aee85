"""How well decisions find answers that are hallucinated: F1, precision, recall, in percent.

A method rejects an answer or lets it through; what it should reject are the hallucinated ones
(arXiv 2310.06498, section 5). Intervals are percentile bootstrap intervals of 95 %, resampled by
answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from demur_research.bench import Figure

_Floats: TypeAlias = NDArray[np.float64]

_RESAMPLES = 10_000
_MOST_UNDEFINED = 0.05
"""A figure that a larger share of the resamples lacks has no interval."""

# Each a numerator and a denominator, as weights of four counts: right and passed, right and
# rejected, hallucinated and passed, hallucinated and rejected.
_F1 = ((0, 0, 0, 2), (0, 1, 1, 2))
_PRECISION = ((0, 0, 0, 1), (0, 1, 0, 1))
_RECALL = ((0, 0, 0, 1), (0, 0, 1, 1))


class Detection(NamedTuple):
    """The figures of a method. A figure has no value where its denominator is 0."""

    f1: Figure
    precision: Figure
    """Of the answers that the method rejects, those that are hallucinated."""
    recall: Figure
    """Of the hallucinated answers, those that the method rejects."""


def detection(wrong: Sequence[bool], rejected: Sequence[bool], seed: int = 0) -> Detection:
    """The figures of a method's decisions.

    Args:
        wrong: For each answer, whether it is hallucinated.
        rejected: For each answer, whether the method rejects it.
        seed: Of the bootstrap.

    Raises:
        ValueError: The two differ in length.
    """
    counts = _counts(_cells(wrong, rejected), 4)
    drawn = _drawn(counts, seed)
    return Detection(
        *(_figure(_of(one, counts), _of(one, drawn)) for one in (_F1, _PRECISION, _RECALL))
    )


def f1_difference(
    wrong: Sequence[bool], first: Sequence[bool], second: Sequence[bool], seed: int = 0
) -> Figure:
    """By how much the F1 of one method exceeds another's on the same answers.

    The interval is that of the difference: answers are drawn for both methods together.

    Args:
        wrong: For each answer, whether it is hallucinated.
        first: For each answer, whether the one method rejects it.
        second: Whether the other does.
        seed: Of the bootstrap.

    Returns:
        The difference in points, in [-100, 100].

    Raises:
        ValueError: They differ in length.
    """
    counts = _counts(_cells(wrong, first) + 4 * _cells(wrong, second), 16)
    return _figure(_difference(counts), _difference(_drawn(counts, seed)))


def mean(values: Sequence[float], seed: int = 0, paper: str = "") -> Figure:
    """The mean of numbers, with its bootstrap interval; without a value where there are none."""
    if not values:
        return Figure(None, paper=paper)
    known = np.asarray(values, dtype=np.float64)
    at = np.random.default_rng(seed).integers(len(known), size=(_RESAMPLES, len(known)))
    return replace(_figure(known.mean(keepdims=True), known[at].mean(axis=1)), paper=paper)


def _cells(wrong: Sequence[bool], rejected: Sequence[bool]) -> NDArray[np.int64]:
    """The place of each answer among the four counts."""
    if len(wrong) != len(rejected):
        raise ValueError(
            f"expected as many decisions as answers, got {len(rejected)} for {len(wrong)}"
        )
    return 2 * np.asarray(wrong, dtype=np.int64) + np.asarray(rejected, dtype=np.int64)


def _counts(cells: NDArray[np.int64], kinds: int) -> _Floats:
    """Of shape (1, kinds)."""
    return np.bincount(cells, minlength=kinds)[None].astype(np.float64)


def _drawn(counts: _Floats, seed: int) -> _Floats:
    """Counts of resamples, of shape (resamples, kinds): no need to draw the answers themselves."""
    total = int(counts.sum())
    shares = counts[0] / total if total else np.full(counts.size, 1 / counts.size)
    drawn = np.random.default_rng(seed).multinomial(total, shares, size=_RESAMPLES)
    return drawn.astype(np.float64)


def _of(ratio: tuple[tuple[int, ...], tuple[int, ...]], counts: _Floats) -> _Floats:
    """A ratio of each row of counts, in percent; NaN, only in here, where it is undefined."""
    above, below = (counts @ np.array(weights, dtype=np.float64) for weights in ratio)
    with np.errstate(invalid="ignore"):
        return np.asarray(100 * above / below)


def _difference(counts: _Floats) -> _Floats:
    both = counts.reshape(-1, 4, 4)  # second, first
    return _of(_F1, both.sum(axis=1)) - _of(_F1, both.sum(axis=2))


def _figure(one: _Floats, drawn: _Floats) -> Figure:
    if np.isnan(one[0]):
        return Figure(None)
    known = drawn[~np.isnan(drawn)]
    if len(known) < (1 - _MOST_UNDEFINED) * len(drawn):
        return Figure(float(one[0]))
    low, high = np.percentile(known, [2.5, 97.5])
    return Figure(float(one[0]), float(low), float(high))
