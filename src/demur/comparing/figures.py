"""Compute how well scores tell hallucinated answers from others, from numbers alone.

Positives are hallucinated answers, and low scores are suspicious. An answer is flagged if its score
is below a threshold, or if a detector rejects it. `weights` say how often each answer counts. Their
last axis is that of the answers, so that many resamples are computed at a time. A figure that is
not defined is NaN in this module and None outside of it. An example is a figure of answers that all
have one label.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from demur.calibration import cumulative
from demur.schema import wilson

Floats: TypeAlias = NDArray[np.float64]
Bools: TypeAlias = NDArray[np.bool_]
Figure: TypeAlias = Callable[[Floats], Floats]
"""A function from weights of shape (..., answers) to values of shape (...), NaN if not defined."""
Interval: TypeAlias = tuple[float, float]

RESAMPLES = 1000
_quantile = NormalDist().inv_cdf
_AT_A_TIME = 50
_MOST_UNDEFINED = 0.05
"""The largest share of resamples without a value for which there is still an interval."""


@dataclass(frozen=True)
class Estimate:
    """Hold a figure and its interval."""

    value: float | None
    """The figure; None if it is not defined."""
    interval: Interval | None
    """The interval of 95 %, by the bootstrap over groups. None if the figure has no value, if there
    are fewer than two groups, or if more than 5 % of the resamples have no value."""


def auroc(scores: Floats, hallucinated: Bools, weights: Floats) -> Floats:
    """Return how often a hallucinated answer scores below another one, in [0, 1].

    Equal scores count half.
    """
    caught, alarms = _swept(scores, hallucinated, weights)
    area = np.sum(np.diff(alarms) * (caught[..., 1:] + caught[..., :-1]), axis=-1)
    return _ratio(area, 2 * caught[..., -1] * alarms[..., -1])


def average_precision(scores: Floats, hallucinated: Bools, weights: Floats) -> Floats:
    """Return the area under the steps of precision over recall, in [0, 1].

    Answers with equal scores are one step, so a detector that guesses gets the share of
    hallucinated answers.
    """
    caught, alarms = _swept(scores, hallucinated, weights)
    flagged = (caught + alarms)[..., 1:]
    precision = caught[..., 1:] / np.maximum(flagged, 1e-12)
    area = np.sum(np.diff(caught) * precision, axis=-1)
    one_label = (caught[..., -1] == 0) | (alarms[..., -1] == 0)
    return np.where(one_label, np.nan, _ratio(area, caught[..., -1]))


def balanced_accuracy(flagged: Bools, hallucinated: Bools, weights: Floats) -> Floats:
    """Return the balanced accuracy of the flagged answers, in [0, 1].

    It is the mean of two shares: hallucinated answers that are flagged, and others that are not.
    """
    return _balanced(*_confusion(flagged, hallucinated, weights))


def f1(flagged: Bools, hallucinated: Bools, weights: Floats) -> Floats:
    """Return the harmonic mean of precision and recall of the flagged answers, in [0, 1].

    It is not defined if all answers have one label, since flagging all of them would then be
    perfect.
    """
    return _f1(*_confusion(flagged, hallucinated, weights))


def kappa(flagged: Bools, hallucinated: Bools, weights: Floats) -> Floats:
    """Return Cohen's kappa, in [-1, 1]; it is not defined if both always say the same label."""
    found, alarms, wrong, right = _confusion(flagged, hallucinated, weights)
    said, every = found + alarms, wrong + right
    return _ratio(2 * (found * every - said * wrong), said * right + wrong * (every - said))


def _balanced(found: Floats, alarms: Floats, wrong: Floats, right: Floats) -> Floats:
    return (_ratio(found, wrong) + _ratio(right - alarms, right)) / 2


def _f1(found: Floats, alarms: Floats, wrong: Floats, right: Floats) -> Floats:
    both = (wrong > 0) & (right > 0)
    return np.where(both, _ratio(2 * found, found + alarms + wrong), np.nan)


def halves(hallucinated: Bools, groups: Sequence[Hashable], seed: int) -> Bools:
    """Return which answers are in the first of two halves, as an array of shape (answers,).

    All answers of a group are in the same half. Groups are drawn at random, in pairs of groups with
    about the same share of hallucinated answers, so that both halves have both labels if possible.
    """
    codes, count = _codes(groups)
    rate = np.bincount(codes, hallucinated, count) / np.maximum(np.bincount(codes), 1)
    drawn = np.random.default_rng(seed).permutation(count)
    ordered = drawn[np.argsort(rate[drawn], kind="stable")]
    first = np.zeros(count, dtype=np.bool_)
    first[ordered[::2]] = True
    return first[codes]


def cross_fitted(scores: Floats, hallucinated: Bools, first: Bools, *, by_f1: bool) -> Bools | None:
    """Return which answers are flagged by the threshold that was best on the other half.

    Each half serves once as the other half, and the decisions on both are pooled. If several
    thresholds are equally good on a half, the lowest is used, which flags the fewest answers.

    Args:
        scores: The scores, of shape (answers,).
        hallucinated: The labels, of shape (answers,).
        first: Which answers are in the first half, of shape (answers,).
        by_f1: Whether the best threshold is that of the best F1; else that of the best balanced
            accuracy.

    Returns:
        An array of shape (answers,); None if a half has only one label, so that no threshold can be
        chosen on it.
    """
    flagged = np.zeros(len(scores), dtype=np.bool_)
    for half in (first, ~first):
        if len(set(hallucinated[half].tolist())) < 2:
            return None
        threshold = best_threshold(scores[half], hallucinated[half], by_f1=by_f1)
        flagged[~half] = scores[~half] < threshold
    return flagged


def best_threshold(scores: Floats, hallucinated: Bools, *, by_f1: bool) -> float:
    """Return the threshold of the best F1 or balanced accuracy on answers with both labels.

    It is halfway between two neighbouring scores, because other answers will have scores between
    them. It may also be the lowest score, which flags no answer, or infinite, which flags all.
    """
    caught, alarms = _swept(scores, hallucinated, np.ones(len(scores)))
    measure = _f1 if by_f1 else _balanced
    values = measure(caught, alarms, caught[-1:], alarms[-1:])
    known = np.unique(scores)
    middles = known[:-1] / 2 + known[1:] / 2
    apart = np.where(middles > known[:-1], middles, known[1:])
    return float(np.concatenate([known[:1], apart, [math.inf]])[int(np.argmax(values))])


def estimates(figures: Sequence[Figure], groups: Sequence[Hashable], seed: int) -> list[Estimate]:
    """Return figures of the same answers, each with its percentile bootstrap interval of 95 %.

    Whole groups are drawn with replacement, since the answers of a group are not independent.
    Decisions by a threshold stay the same in all resamples, so the interval does not show how the
    choice of the threshold would vary.

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


@dataclass(frozen=True)
class Shift:
    """Hold how a mean, or a share, shifts between two judgements of the same questions."""

    pairs: int
    groups: int
    """The number of groups; pairs of one group are not independent."""
    share: bool
    before: Estimate
    after: Estimate
    difference: Estimate
    p: float
    """The two-sided p-value of McNemar's exact test, which is the sign test over groups."""
    middle: float
    error: float
    """The standard error of the difference, whose interval is around `middle`."""

    def least(self, confidence: float, *, falls: bool = False) -> float:
        """Return the least rise, or the least fall, with this one-sided confidence.

        For a share it is above 0 only if the exact test agrees, which equal data seldom passes.
        """
        least = (-self.middle if falls else self.middle) - _quantile(confidence) * self.error
        return min(least, 0.0) if self.share and self.p / 2 > 1 - confidence else least


def shift(before: Floats, after: Floats, groups: Sequence[Hashable], *, share: bool) -> Shift:
    """Return how the mean of paired values, of shape (pairs,), shifts; a share's are 0 or 1.

    One group that rises as far as it can is added, and one that falls (Bonett and Price, 2012). So
    few changes, or none, do not look certain, as they would in a bootstrap.
    """
    codes, count = _codes(groups)
    means = float(before.mean()), float(after.mean())
    old, new = (Estimate(mean, wilson(mean, count) if share else None) for mean in means)
    sizes, changes = np.bincount(codes), np.bincount(codes, after - before)
    most, size = 1.0 if share else float(np.abs(after - before).max()), sizes.mean()
    added, weights = np.append(changes, [most * size, -most * size]), np.append(sizes, [size, size])
    middle = float(added.sum() / weights.sum())
    error = math.sqrt(np.sum((added - middle * weights) ** 2)) / float(weights.sum())
    reach = _quantile(0.975) * error
    within = (max(-most, middle - reach), min(most, middle + reach)) if most else None
    difference = Estimate(means[1] - means[0], within)
    rose, fell = int(np.sum(changes > 0)), int(np.sum(changes < 0))
    p = min(1.0, 2 * float(cumulative(rose + fell, 0.5)[min(rose, fell)]))
    return Shift(len(codes), count, share, old, new, difference, p, middle, error)


def on_pareto_line(points: Sequence[tuple[float, float] | None]) -> list[bool]:
    """Return which points no other point beats.

    One point beats another if it is better and at most as expensive, or at least as good and
    cheaper. Equal points do not beat each other.

    Args:
        points: Quality and cost of each point; None if one of them is not known, so that the point
            beats nothing.

    Returns:
        For each point, whether it is known and not beaten.
    """
    known = [point for point in points if point is not None]
    return [
        point is not None and not any(_beats(other, point) for other in known) for point in points
    ]


def _beats(one: tuple[float, float], other: tuple[float, float]) -> bool:
    return one != other and one[0] >= other[0] and one[1] <= other[1]


def _swept(scores: Floats, hallucinated: Bools, weights: Floats) -> tuple[Floats, Floats]:
    """Return how many hallucinated and other answers each threshold flags, from the lowest on.

    Returns:
        Two arrays of shape (..., distinct scores + 1): the first threshold flags none, the last
        all.
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
    """Count hallucinated answers flagged, others flagged, hallucinated answers, and others."""
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
    """Return a number for each group, in order of first appearance, and the number of groups."""
    numbers: dict[Hashable, int] = {}
    codes = np.array([numbers.setdefault(group, len(numbers)) for group in groups], dtype=np.intp)
    return codes, len(numbers)
