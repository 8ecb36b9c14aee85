"""Compute binomial tails, and bounds on a share from a count."""

from __future__ import annotations

import math

import numpy as np

from demur.calibration.samples import Floats

_STEPS = 30
_FAR = 1e18


def cumulative(n: int, share: float) -> Floats:
    """Return P(Binomial(n, share) <= k) for each k from 0 to n.

    Args:
        n: The number of draws, at least 0.
        share: The probability of each draw, in (0, 1).

    Returns:
        An array of shape (n + 1,), ascending to 1. Values below 1e-300 may be 0.
    """
    # Start at the most probable count and compute each value from its neighbour. So nothing
    # overflows, and no logarithm of a large factorial costs precision.
    mode = min(int((n + 1) * share), n)
    down, up = np.arange(mode, 0, -1.0), np.arange(mode, n, 1.0)
    below = np.cumprod(down * (1 - share) / ((n - down + 1) * share))
    above = np.cumprod((n - up) * share / ((up + 1) * (1 - share)))
    sums = np.cumsum(np.concatenate([below[::-1], [1.0], above]))
    return np.asarray(sums / sums[-1], dtype=np.float64)


def most_passing(n: int, target: float, confidence: float) -> int:
    """Return how many of `n` may pass, if at most the share `target` of all is to pass.

    It is the largest k with P(Binomial(n, target) <= k) <= 1 - confidence, or -1 if there is none.
    """
    if n < least_samples(target, confidence):
        return -1
    k = int(np.searchsorted(cumulative(n, target), 1 - confidence, side="right")) - 1
    return max(k, 0)  # n reaches `least_samples`, so 0 is right even if rounding says -1


def least_samples(target: float, confidence: float) -> int:
    """Return how many samples, none of which passes, show that at most `target` of all pass.

    It is the smallest n with (1 - target)^n <= 1 - confidence.
    """
    return math.ceil(min(math.log1p(-confidence) / math.log1p(-target), _FAR))


def upper_bound(k: int, n: int, confidence: float) -> float:
    """Return the largest share of all that may pass if k of n did: Clopper and Pearson, one-sided.

    Returns:
        A share in (0, 1]: the smallest one with P(Binomial(n, share) <= k) <= 1 - confidence, or a
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
