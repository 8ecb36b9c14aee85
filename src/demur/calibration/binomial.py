"""Binomial tails: what a count says of the share behind it."""

from __future__ import annotations

import math

import numpy as np

from demur.calibration.samples import Floats

_STEPS = 30
_FAR = 1e18


def cumulative(n: int, share: float) -> Floats:
    """P(Binomial(n, share) <= k) for each k.

    Args:
        n: How many are drawn, at least 0.
        share: In (0, 1).

    Returns:
        Shape (n + 1,), ascending to 1. What is below 1e-300 may be 0.
    """
    # From the most probable count outwards, each by its neighbour: nothing overflows, and no
    # logarithm of a large factorial takes away digits.
    mode = min(int((n + 1) * share), n)
    down, up = np.arange(mode, 0, -1.0), np.arange(mode, n, 1.0)
    below = np.cumprod(down * (1 - share) / ((n - down + 1) * share))
    above = np.cumprod((n - up) * share / ((up + 1) * (1 - share)))
    sums = np.cumsum(np.concatenate([below[::-1], [1.0], above]))
    return np.asarray(sums / sums[-1], dtype=np.float64)


def most_passing(n: int, target: float, confidence: float) -> int:
    """How many of `n` may pass, if at most the share `target` of all is to pass.

    The largest k with P(Binomial(n, target) <= k) <= 1 - confidence; -1 if there is none.
    """
    if n < least_samples(target, confidence):
        return -1
    k = int(np.searchsorted(cumulative(n, target), 1 - confidence, side="right")) - 1
    return max(k, 0)  # of the least number, whatever the last digit says


def least_samples(target: float, confidence: float) -> int:
    """How many must be drawn, none of which passes, to know that at most `target` of all pass.

    The smallest n with (1 - target)^n <= 1 - confidence.
    """
    return math.ceil(min(math.log1p(-confidence) / math.log1p(-target), _FAR))


def upper_bound(k: int, n: int, confidence: float) -> float:
    """What share of all passes at most, if k of n did: Clopper and Pearson's, one-sided.

    Returns:
        In (0, 1]: the smallest share with P(Binomial(n, share) <= k) <= 1 - confidence, or a
        billionth more; 1 if all pass.
    """
    low, high = 0.0, 1.0
    if k < n:
        for _ in range(_STEPS):
            middle = (low + high) / 2
            if cumulative(n, middle)[k] <= 1 - confidence:
                high = middle
            else:
                low = middle
    return high
