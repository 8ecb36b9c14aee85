"""Compute intervals of figures whose items may belong together.

Most intervals are by the bootstrap, which draws items that belong together as one group. A draw is
stored as the number of times that each item is in it. So a statistic of all draws is a product of
matrices.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from demur.schema import wilson
from demur.scoring import RESAMPLES, percentiles
from demur_research.bench import Figure

Floats: TypeAlias = NDArray[np.float64]

_MOST_UNDEFINED = 0.05
"""The greatest share of draws without a number for which a figure still has an interval."""


def drawn(groups: Sequence[str], seed: int) -> Floats:
    """Return how often each item is in each draw, of shape (draws, items).

    Args:
        groups: The group of each item. Each draw takes as many groups as there are, with
            replacement.
        seed: The seed of the draws.
    """
    if not groups:
        return np.zeros((RESAMPLES, 0), np.float64)
    names, member = np.unique(np.asarray(groups, dtype=np.str_), return_inverse=True)
    count = len(names)
    times = np.random.default_rng(seed).multinomial(count, [1 / count] * count, RESAMPLES)
    return times[:, member].astype(np.float64)


def drawn_alone(count: int, seed: int) -> Floats:
    """Return how often each of `count` items is in each draw, where no items belong together."""
    return drawn([str(at) for at in range(count)], seed)


def mean(values: ArrayLike, times: Floats) -> Floats:
    """Return the mean of each draw; NaN where the draw is empty.

    Args:
        values: A number for each item, or a row of numbers.
        times: How often each item is in each draw.

    Returns:
        A mean for each draw, or a row of means.
    """
    known = np.asarray(values, np.float64)
    sizes = times.sum(axis=1)
    with np.errstate(invalid="ignore"):
        means: Floats = times @ known / (sizes if known.ndim == 1 else sizes[:, None])
    return means


def auroc(scores: ArrayLike, positive: Sequence[bool], times: Floats | None = None) -> Floats:
    """Return how often a positive item scores above another item, where ties count half.

    Args:
        scores: One finite number for each item.
        positive: Which items should score higher.
        times: How often each item is in each draw; None: one draw that has each item once.

    Returns:
        A number in [0, 1] for each draw; NaN where one of the two kinds is missing.
    """
    values, mask = np.asarray(scores, np.float64), np.asarray(positive, np.bool_)
    weights = np.ones((1, len(values))) if times is None else times
    above, others = values[mask][:, None], values[~mask][None, :]
    wins = (above > others) + (above == others) / 2
    of_positive, of_others = weights[:, mask], weights[:, ~mask]
    pairs = of_positive.sum(axis=1) * of_others.sum(axis=1)
    with np.errstate(invalid="ignore"):
        areas: Floats = np.sum(of_positive @ wins * of_others, axis=1) / pairs
    return areas


def pass_rates(
    passes: ArrayLike, positive: Sequence[bool], times: Floats | None = None
) -> tuple[Floats, Floats]:
    """Return the share of the positive items that pass, and of the others.

    Args:
        passes: Whether each item passes.
        positive: Which items should pass.
        times: How often each item is in each draw; None: one draw that has each item once.

    Returns:
        Two numbers in [0, 1] for each draw; NaN where there is no item of the kind.
    """
    held, mask = np.asarray(passes, np.float64), np.asarray(positive, np.bool_)
    weights = np.ones((1, len(mask))) if times is None else times
    return mean(held[mask], weights[:, mask]), mean(held[~mask], weights[:, ~mask])


def balanced_accuracy(
    passes: ArrayLike, positive: Sequence[bool], times: Floats | None = None
) -> Floats:
    """Return the mean of two shares: of the positive items that pass, and of the others that fail.

    The arguments are those of `pass_rates`.

    Returns:
        A number in [0, 1] for each draw; NaN where one of the two kinds is missing.
    """
    of_positive, of_others = pass_rates(passes, positive, times)
    return (of_positive + 1 - of_others) / 2


def pearson(first: ArrayLike, second: ArrayLike) -> Floats:
    """Return Pearson's correlation of two lists of numbers, or of each draw's.

    Args:
        first: A number for each item, along the last axis; NaN where it is missing.
        second: The same, in the same order. An item that misses one of both is left out.

    Returns:
        A number in [-1, 1] for each draw; NaN where all items of a list are equal.
    """
    known = np.isfinite(first) & np.isfinite(second)
    one, two = (_standard(np.asarray(of, np.float64), known) for of in (first, second))
    found: Floats = np.where(known.any(axis=-1), np.clip(np.sum(one * two, axis=-1), -1, 1), np.nan)
    return found


def _standard(values: Floats, known: NDArray[np.bool_]) -> Floats:
    """Return numbers with a mean of 0 and a length of 1, or NaN if they are equal; 0 if missing."""
    lowest = np.min(values, axis=-1, keepdims=True, where=known, initial=np.inf)
    span = np.max(values, axis=-1, keepdims=True, where=known, initial=-np.inf) - lowest
    with np.errstate(invalid="ignore", divide="ignore"):
        # Scaled first, since the square of a very small number is 0.
        scaled = np.where(known, (values - lowest) / np.where(span > 0, span, np.nan), 0)
        centre = scaled.sum(axis=-1, keepdims=True) / known.sum(axis=-1, keepdims=True)
        centred = np.where(known, scaled - centre, 0)
        lengths = np.sqrt(np.sum(centred**2, axis=-1, keepdims=True))
        standard: Floats = centred / lengths
    return standard


def spearman(first: ArrayLike, second: ArrayLike) -> Floats:
    """Return Spearman's correlation, for which equal items share their mean rank.

    Arguments and result are those of `pearson`.
    """
    known = np.isfinite(first) & np.isfinite(second)
    return pearson(*(_ranks(np.asarray(of, np.float64), known) for of in (first, second)))


def _ranks(values: Floats, known: NDArray[np.bool_]) -> Floats:
    """Return how many items each item exceeds, less those that exceed it; NaN if not known."""
    of_known = np.where(known, values, np.nan)
    moves = np.sign(of_known[..., :, None] - of_known[..., None, :])
    return np.where(known, np.nansum(moves, axis=-1), np.nan)


def figure(value: float | None, resampled: Floats, paper: str = "") -> Figure:
    """Return a number with the middle 95 % of the resampled numbers as its interval.

    Draws without a number are left out. The figure has no interval if they are more than 5 %.
    """
    if value is None or not np.isfinite(value):
        return Figure(None, paper=paper)
    known = resampled[np.isfinite(resampled)]
    if not len(known) or len(known) < (1 - _MOST_UNDEFINED) * len(resampled):
        return Figure(float(value), paper=paper)
    return Figure(float(value), *percentiles(known), paper)


def area(scores: ArrayLike, positive: Sequence[bool], times: Floats) -> Figure:
    """Return the AUROC of scores, with its interval by these draws."""
    return figure(auroc(scores, positive)[0], auroc(scores, positive, times))


def share(holds: Sequence[bool], groups: Sequence[str] | None = None) -> Figure:
    """Return how often something holds, in percent, with Wilson's interval.

    Items of a group are alike and tell less than independent items. So the interval is that of
    fewer items: their number divided by the design effect. That is the factor by which the variance
    between groups exceeds the variance of independent items (Kish 1965). Where all items go one
    way, nothing varies, and a group counts as one item.

    Args:
        holds: Whether it holds for each item.
        groups: The group of each item; None: each item stands alone.
    """
    known = np.asarray(holds, np.float64)
    if not known.size:
        return Figure(None)
    value, number = float(known.mean()), float(known.size)
    if groups is not None:
        names, member = np.unique(np.asarray(groups, dtype=np.str_), return_inverse=True)
        count = len(names)
        alone = value * (1 - value) / number
        if count < 2 or not alone:
            number = float(count)
        else:
            beyond = np.bincount(member, known - value)  # a group's sum, less what is expected
            between = count / (count - 1) * float(beyond @ beyond) / number**2
            number /= max(1.0, between / alone)
    low, high = wilson(value, number)
    return Figure(100 * value, 100 * low, 100 * high)


def grouped_share(items: Iterable[tuple[bool, str]]) -> Figure:
    """Return the `share` of items, each of which is whether it holds, and its group."""
    known = [*items]
    return share([holds for holds, _ in known], [group for _, group in known])


def mean_figure(
    values: ArrayLike, seed: int, paper: str = "", groups: Sequence[str] | None = None
) -> Figure:
    """Return the mean of numbers; it has no value if there are none.

    Args:
        values: The numbers.
        seed: The seed of the draws.
        paper: The paper's figure.
        groups: The group of each number; None: the numbers are drawn one by one.
    """
    known = np.asarray(values, np.float64)
    if not known.size:
        return Figure(None, paper=paper)
    times = drawn_alone(len(known), seed) if groups is None else drawn(groups, seed)
    return figure(float(known.mean()), mean(known, times), paper)
