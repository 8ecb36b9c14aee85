"""Test binomial tails against scipy's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta, binom

from demur.calibration.binomial import cumulative, least_samples, most_passing, upper_bound

SHARES = st.floats(1e-4, 0.999)
CONFIDENCES = st.floats(0.01, 0.999)


@given(st.integers(0, 1000), SHARES)
def test_tails_are_scipys(n: int, share: float) -> None:
    ours, theirs = cumulative(n, share), binom.cdf(np.arange(n + 1), n, share)
    assert ours.shape == (n + 1,)
    told = ours > 1e-200  # Below this, scipy's are not exact.
    np.testing.assert_allclose(ours[told], theirs[told], rtol=1e-9)
    assert np.all(np.diff(ours) >= 0)
    assert ours[-1] == 1


@given(st.integers(1, 2000), SHARES, CONFIDENCES)
def test_so_many_may_pass_and_no_more(n: int, target: float, confidence: float) -> None:
    most = most_passing(n, target, confidence)
    below, above = binom.cdf([most, most + 1], n, target)
    assert most < n
    assert below <= (1 - confidence) * (1 + 1e-9)
    assert above > (1 - confidence) * (1 - 1e-9)
    assert (most < 0) == (n < least_samples(target, confidence))


@pytest.mark.parametrize(
    ("target", "confidence", "least"),
    [(0.05, 0.9, 45), (0.1, 0.9, 22), (0.01, 0.99, 459), (0.2, 0.8, 8), (0.5, 0.75, 2)],
)
def test_the_least_number_of_samples(target: float, confidence: float, least: int) -> None:
    assert least_samples(target, confidence) == least
    assert most_passing(least, target, confidence) == 0
    assert most_passing(least - 1, target, confidence) == -1


@given(st.integers(1, 500), st.data(), CONFIDENCES)
def test_the_upper_bound_is_clopper_and_pearsons(
    n: int, data: st.DataObject, confidence: float
) -> None:
    k = data.draw(st.integers(0, n))
    expected = 1.0 if k == n else beta.ppf(confidence, k + 1, n - k)
    bound = upper_bound(k, n, confidence)
    assert bound == pytest.approx(expected, abs=1e-8)
    if bound < 1:
        assert most_passing(n, bound, confidence) >= k
