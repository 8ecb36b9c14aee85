"""Test shares of counts and their intervals, which are wide where there are few counts."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur.schema import Share

shares = st.integers(1, 500).flatmap(
    lambda total: st.builds(Share, st.integers(0, total), st.just(total))
)


def test_nothing_has_no_share() -> None:
    assert (Share(0, 0).value, Share(0, 0).interval) == (None, None)


@given(shares)
def test_an_interval_holds_what_a_test_would_not_refuse(share: Share) -> None:
    assert share.interval is not None
    assert share.value is not None
    low, high = share.interval
    assert 0 <= low <= share.value <= high <= 1
    # The count is exactly 1.96 standard errors away from each of Wilson's bounds.
    for bound in (low, high):
        if 0 < bound < 1:
            error = math.sqrt(bound * (1 - bound) / share.total)
            assert abs(share.value - bound) / error == pytest.approx(1.96, abs=0.001)
    other = Share(share.total - share.count, share.total).interval
    assert other == pytest.approx((1 - high, 1 - low))


def test_few_leave_much_open_even_if_all_go_one_way() -> None:
    assert Share(0, 2).interval == pytest.approx((0, 0.658), abs=0.001)
    assert Share(50, 100).interval == pytest.approx((0.404, 0.596), abs=0.001)
