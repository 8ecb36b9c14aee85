"""How well a method detects passages that are not factual: counts, ratios and their intervals.

What is looked for, the positives, are the passages that are not factual; a method rejects them or
lets them through (arXiv 2310.06498, section 5). Ratios are in percent. Intervals are percentile
bootstrap intervals of 95 %, resampled by passage.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Interval: TypeAlias = tuple[float, float]
_Floats: TypeAlias = NDArray[np.float64]

_RESAMPLES = 10_000
_MOST_UNDEFINED = 0.05


@dataclass(frozen=True)
class Confusion:
    """Passages by what they are and what a method made of them."""

    tp: int
    """Not factual, rejected."""
    fp: int
    """Factual, rejected."""
    fn: int
    """Not factual, let through."""
    tn: int
    """Factual, let through."""

    @property
    def total(self) -> int:
        """All passages that were decided on."""
        return self.tp + self.fp + self.fn + self.tn


@dataclass(frozen=True)
class Ratio:
    """A ratio in percent; None where its denominator is 0."""

    value: float | None
    interval: Interval | None
    """None without a value, or where it is undefined in more than 5 percent of the resamples."""


@dataclass(frozen=True)
class Detection:
    """The figures of a method."""

    counts: Confusion
    f1: Ratio
    precision: Ratio
    recall: Ratio


def detection(wrong: Sequence[bool], rejected: Sequence[bool], seed: int = 0) -> Detection:
    """The figures of a method's decisions.

    Args:
        wrong: Of each passage, whether it is not factual.
        rejected: Of each passage, whether the method rejects it.
        seed: Of the bootstrap.

    Raises:
        ValueError: The two are not equally many.
    """
    cells = _cells(wrong, rejected)
    counts = np.array([[np.sum(cells == cell) for cell in range(4)]], dtype=np.float64)
    drawn = _drawn(counts[0], seed)
    f1, precision, recall = (_ratio(_of(name, counts), _of(name, drawn)) for name in _RATIOS)
    tn, fp, fn, tp = (int(count) for count in counts[0])
    return Detection(Confusion(tp, fp, fn, tn), f1, precision, recall)


def f1_difference(
    wrong: Sequence[bool], first: Sequence[bool], second: Sequence[bool], seed: int = 0
) -> Ratio:
    """By how much the F1 of one method exceeds another's on the same passages.

    The interval is that of the difference, with passages drawn for both methods together.

    Args:
        wrong: Of each passage, whether it is not factual.
        first: Of each passage, whether the one method rejects it.
        second: Whether the other does.
        seed: Of the bootstrap.

    Returns:
        The difference in points, in [-100, 100].

    Raises:
        ValueError: They are not equally many.
    """
    cells = _cells(wrong, first) + 4 * _cells(wrong, second)
    counts = np.array([[np.sum(cells == cell) for cell in range(16)]], dtype=np.float64)
    return _ratio(_difference(counts), _difference(_drawn(counts[0], seed)))


def share(hits: int, total: int, seed: int = 0) -> Ratio:
    """A share in percent."""
    if not total:
        return Ratio(None, None)
    drawn = np.random.default_rng(seed).binomial(total, hits / total, size=_RESAMPLES)
    return Ratio(100 * hits / total, _interval(100 * drawn / total))


def _cells(wrong: Sequence[bool], rejected: Sequence[bool]) -> NDArray[np.int64]:
    """0: tn, 1: fp, 2: fn, 3: tp."""
    if len(wrong) != len(rejected):
        raise ValueError(
            f"expected as many decisions as passages, got {len(rejected)} for {len(wrong)}"
        )
    return 2 * np.asarray(wrong, dtype=np.int64) + np.asarray(rejected, dtype=np.int64)


def _drawn(counts: _Floats, seed: int) -> _Floats:
    """Counts of resamples, of shape (resamples, cells): no need to draw the passages themselves."""
    total = int(counts.sum())
    shares = counts / total if total else np.full(len(counts), 1 / len(counts))
    drawn = np.random.default_rng(seed).multinomial(total, shares, size=_RESAMPLES)
    return drawn.astype(np.float64)


# Each a numerator and a denominator, as weights of tn, fp, fn, tp.
_RATIOS = {
    "f1": ((0, 0, 0, 2), (0, 1, 1, 2)),
    "precision": ((0, 0, 0, 1), (0, 1, 0, 1)),
    "recall": ((0, 0, 0, 1), (0, 0, 1, 1)),
}


def _of(name: str, table: _Floats) -> _Floats:
    """A ratio of each row of counts, in percent; NaN, only in here, where it is undefined."""
    above, below = (table @ np.array(weights, dtype=np.float64) for weights in _RATIOS[name])
    with np.errstate(invalid="ignore"):
        return np.asarray(100 * above / below)


def _difference(table: _Floats) -> _Floats:
    both = table.reshape(-1, 4, 4)  # second, first
    return _of("f1", both.sum(axis=1)) - _of("f1", both.sum(axis=2))


def _ratio(one: _Floats, drawn: _Floats) -> Ratio:
    return Ratio(None, None) if np.isnan(one[0]) else Ratio(float(one[0]), _interval(drawn))


def _interval(drawn: _Floats) -> Interval | None:
    known = drawn[~np.isnan(drawn)]
    if len(known) < (1 - _MOST_UNDEFINED) * len(drawn):
        return None
    low, high = np.percentile(known, [2.5, 97.5])
    return float(low), float(high)
