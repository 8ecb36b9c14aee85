"""How well scores tell hallucinated answers from the others: the arithmetic, on numbers alone.

Positives are hallucinated answers, and low scores are suspicious. An answer is flagged if its score
is below a threshold, or if a detector rejects it. `weights` say how often each answer counts: their
last axis is that of the answers, so that many resamples are worked out at a time. A figure that is
not defined, such as of answers with one label only, is NaN here and None outside this module.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Bools: TypeAlias = NDArray[np.bool_]
Figure: TypeAlias = Callable[[Floats], Floats]
"""From weights, shape (..., answers), to values, shape (...); NaN where there is none."""
Interval: TypeAlias = tuple[float, float]

RESAMPLES = 1000
_AT_A_TIME = 50
_MOST_UNDEFINED = 0.05
"""The share of resamples without a value with which there still is an interval."""


@dataclass(frozen=True)
class Estimate:
    """A figure with its interval."""

    value: float | None
    """None where it is not defined."""
    interval: Interval | None
    """95 %, by the bootstrap over groups. None without a value, of fewer than two groups, or where
    more than 5 % of the resamples have none."""


def auroc(scores: Floats, hallucinated: Bools, weights: Floats) -> Floats:
    """How often a hallucinated answer scores below another one, in [0, 1]; ties count half."""
    caught, alarms = _swept(scores, hallucinated, weights)
    area = np.sum(np.diff(alarms) * (caught[..., 1:] + caught[..., :-1]), axis=-1)
    return _ratio(area, 2 * caught[..., -1] * alarms[..., -1])


def average_precision(scores: Floats, hallucinated: Bools, weights: Floats) -> Floats:
    """The area under the steps of precision over recall, in [0, 1].

    Answers of one score are one step, so that chance comes to the share of hallucinated answers.
    """
    caught, alarms = _swept(scores, hallucinated, weights)
    flagged = (caught + alarms)[..., 1:]
    precision = caught[..., 1:] / np.maximum(flagged, 1e-12)
    area = np.sum(np.diff(caught) * precision, axis=-1)
    one_label = (caught[..., -1] == 0) | (alarms[..., -1] == 0)
    return np.where(one_label, np.nan, _ratio(area, caught[..., -1]))


def balanced_accuracy(flagged: Bools, hallucinated: Bools, weights: Floats) -> Floats:
    """The mean of the shares of hallucinated answers flagged and of others not, in [0, 1]."""
    return _balanced(*_confusion(flagged, hallucinated, weights))


def f1(flagged: Bools, hallucinated: Bools, weights: Floats) -> Floats:
    """The harmonic mean of precision and recall of the flagged answers, in [0, 1].

    It is not defined where all answers have one label: to flag them all would be perfect.
    """
    return _f1(*_confusion(flagged, hallucinated, weights))


def _balanced(found: Floats, alarms: Floats, wrong: Floats, right: Floats) -> Floats:
    return (_ratio(found, wrong) + _ratio(right - alarms, right)) / 2


def _f1(found: Floats, alarms: Floats, wrong: Floats, right: Floats) -> Floats:
    both = (wrong > 0) & (right > 0)
    return np.where(both, _ratio(2 * found, found + alarms + wrong), np.nan)


def halves(hallucinated: Bools, groups: Sequence[Hashable], seed: int) -> Bools:
    """Which answers are in the first of two halves, shape (answers,).

    A group is in one half whole. Groups are drawn at random, in pairs of groups with about the same
    share of hallucinated answers, so that both halves have both labels where they can.
    """
    codes, count = _codes(groups)
    rate = np.bincount(codes, hallucinated, count) / np.maximum(np.bincount(codes), 1)
    drawn = np.random.default_rng(seed).permutation(count)
    ordered = drawn[np.argsort(rate[drawn], kind="stable")]
    first = np.zeros(count, dtype=np.bool_)
    first[ordered[::2]] = True
    return first[codes]


def cross_fitted(scores: Floats, hallucinated: Bools, first: Bools, *, by_f1: bool) -> Bools | None:
    """Which answers are flagged by the threshold that was best on the other half.

    Each half serves once as the other, and the decisions of both are pooled. Where thresholds are
    equally good on a half, the lowest one counts, which flags the fewest answers.

    Args:
        scores: Shape (answers,).
        hallucinated: Shape (answers,).
        first: Which answers are in the first half.
        by_f1: Whether the best threshold is that of the best F1, else of balanced accuracy.

    Returns:
        Shape (answers,); None where a half has one label only, so that nothing can be chosen on it.
    """
    flagged = np.zeros(len(scores), dtype=np.bool_)
    for half in (first, ~first):
        if len(set(hallucinated[half].tolist())) < 2:
            return None
        threshold = best_threshold(scores[half], hallucinated[half], by_f1=by_f1)
        flagged[~half] = scores[~half] < threshold
    return flagged


def best_threshold(scores: Floats, hallucinated: Bools, *, by_f1: bool) -> float:
    """The threshold of the best F1 or balanced accuracy on answers with both labels.

    It is halfway between two neighbouring scores, since other answers will have scores between
    them; or the lowest score, which flags no answer, or infinite, which flags all.
    """
    caught, alarms = _swept(scores, hallucinated, np.ones(len(scores)))
    measure = _f1 if by_f1 else _balanced
    values = measure(caught, alarms, caught[-1:], alarms[-1:])
    known = np.unique(scores)
    middles = known[:-1] / 2 + known[1:] / 2
    apart = np.where(middles > known[:-1], middles, known[1:])
    return float(np.concatenate([known[:1], apart, [math.inf]])[int(np.argmax(values))])


def estimates(figures: Sequence[Figure], groups: Sequence[Hashable], seed: int) -> list[Estimate]:
    """Figures of the same answers, each with its percentile bootstrap interval of 95 %.

    Whole groups are drawn with replacement, since the answers of a group are not independent. What
    a threshold decided stays as it was decided: the interval does not tell how the choice of the
    threshold would vary.

    Args:
        figures: The figures to estimate.
        groups: The group of each answer.
        seed: The seed of the bootstrap.
    """
    codes, count = _codes(groups)
    values = [float(figure(np.ones(len(codes)))) for figure in figures]
    drawn: list[list[Floats]] = [[] for _ in figures]
    draw = np.random.default_rng(seed)
    for _ in range(0, RESAMPLES if count > 1 else 0, _AT_A_TIME):
        times = np.stack(
            [
                np.bincount(draw.integers(count, size=count), minlength=count)
                for _ in range(_AT_A_TIME)
            ]
        )
        weights = times[:, codes].astype(np.float64)
        for figure, some in zip(figures, drawn, strict=True):
            some.append(figure(weights))
    return [
        Estimate(None, None) if math.isnan(value) else Estimate(value, _interval(some))
        for value, some in zip(values, drawn, strict=True)
    ]


def on_pareto_line(points: Sequence[tuple[float, float] | None]) -> list[bool]:
    """Which points no other point beats.

    One point beats another if it is better and at most as expensive, or at least as good and
    cheaper. Equal points do not beat each other.

    Args:
        points: Quality and cost; None: one of them is not known, so the point beats nothing.

    Returns:
        For each point whether it is known and not beaten.
    """
    known = [point for point in points if point is not None]
    return [
        point is not None and not any(_beats(other, point) for other in known) for point in points
    ]


def _beats(one: tuple[float, float], other: tuple[float, float]) -> bool:
    return one != other and one[0] >= other[0] and one[1] <= other[1]


def _swept(scores: Floats, hallucinated: Bools, weights: Floats) -> tuple[Floats, Floats]:
    """Hallucinated answers and others that are flagged, for each threshold from the lowest.

    Returns:
        Each of shape (..., distinct scores + 1): the first flags none, the last all.
    """
    order = np.argsort(scores, kind="stable")
    ordered = scores[order]
    begins = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
    wrong = weights[..., order] * hallucinated[order]
    right = weights[..., order] * ~hallucinated[order]
    caught, alarms = (
        np.cumsum(np.add.reduceat(each, begins, axis=-1), axis=-1) for each in (wrong, right)
    )
    none = np.zeros((*weights.shape[:-1], 1))
    return np.concatenate([none, caught], axis=-1), np.concatenate([none, alarms], axis=-1)


def _confusion(
    flagged: Bools, hallucinated: Bools, weights: Floats
) -> tuple[Floats, Floats, Floats, Floats]:
    """Hallucinated answers flagged, others flagged, hallucinated answers, others."""
    return (
        np.sum(weights * (flagged & hallucinated), axis=-1),
        np.sum(weights * (flagged & ~hallucinated), axis=-1),
        np.sum(weights * hallucinated, axis=-1),
        np.sum(weights * ~hallucinated, axis=-1),
    )


def _ratio(part: Floats, whole: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(whole > 0, part / whole, np.nan)


def _interval(drawn: Sequence[Floats]) -> Interval | None:
    values = np.concatenate(drawn) if drawn else np.empty(0)
    known = values[~np.isnan(values)]
    if known.size < max(1, (1 - _MOST_UNDEFINED) * values.size):
        return None
    low, high = np.percentile(known, [2.5, 97.5])
    return float(low), float(high)


def _codes(groups: Sequence[Hashable]) -> tuple[NDArray[np.intp], int]:
    """Numbers for groups, in the order in which they come first."""
    numbers: dict[Hashable, int] = {}
    codes = np.array([numbers.setdefault(group, len(numbers)) for group in groups], dtype=np.intp)
    return codes, len(numbers)
