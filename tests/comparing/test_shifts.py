"""Test how sure a shift between two judgements is: by hand, by properties, and by simulation."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur.comparing.figures import Shift, shift

VERDICTS = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=40)
SCORES = st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=40)


def _shift(rows: Any, groups: Any = None, share: bool = True) -> Shift:
    before, after = np.array(rows, dtype=np.float64).T
    return shift(before, after, range(len(before)) if groups is None else groups, share=share)


def _counted(worse: int, better: int, same: int) -> Shift:
    return _shift([(0, 1)] * worse + [(1, 0)] * better + [(0, 0)] * same)


def test_shares_and_their_difference_by_hand() -> None:
    found = _counted(worse=7, better=2, same=41)
    assert (found.before.value, found.after.value, found.pairs) == (2 / 50, 7 / 50, 50)
    assert found.difference.value == pytest.approx(5 / 50)
    middle = 5 / 52
    reach = 1.959964 * math.sqrt((11 / 52 - middle**2) / 52)
    assert found.difference.interval == pytest.approx((middle - reach, middle + reach))
    assert found.p == pytest.approx(2 * sum(math.comb(9, k) for k in range(3)) / 2**9)


def test_pairs_that_do_not_change_are_not_certain_to_stay_the_same() -> None:
    found = _counted(0, 0, 20)
    assert found.difference.interval is not None
    low, high = found.difference.interval
    assert low == pytest.approx(-high)
    assert 0.1 < high < 0.2
    assert found.p == 1
    assert (found.before.interval or (1, 1))[1] > 0.1


def test_scores_that_do_not_change_have_no_interval() -> None:
    found = _shift([(0.5, 0.5)] * 9, share=False)
    assert (found.difference.value, found.difference.interval, found.least(0.95)) == (0, None, 0)


@pytest.mark.parametrize(("pairs", "tells"), [(4, False), (5, True)])
def test_as_many_pairs_as_the_exact_test_needs_can_tell(pairs: int, tells: bool) -> None:
    assert (_counted(pairs, 0, 0).least(0.95) > 0) is tells


@given(st.one_of(st.tuples(VERDICTS, st.just(True)), st.tuples(SCORES, st.just(False))))
def test_the_other_way_round_everything_is_mirrored(drawn: Any) -> None:
    rows, share = drawn
    one, other = _shift(rows, share=share), _shift([row[::-1] for row in rows], share=share)
    assert one.difference.value == pytest.approx(-(other.difference.value or 0))
    assert one.p == other.p
    assert one.least(0.9) == pytest.approx(other.least(0.9, falls=True), abs=1e-12)
    if one.difference.interval is not None:
        low, high = one.difference.interval
        assert low - 1e-9 <= (one.difference.value or 0) <= high + 1e-9


@given(VERDICTS, st.integers(2, 5))
def test_pairs_of_one_question_count_as_one(rows: list[tuple[bool, bool]], times: int) -> None:
    together = _shift(rows * times, [*range(len(rows))] * times)
    alone = _shift(rows)
    assert together.p == alone.p
    assert together.groups == alone.groups
    assert together.least(0.95) == pytest.approx(alone.least(0.95))
    assert together.difference.interval == pytest.approx(alone.difference.interval)
    assert together.before.interval == pytest.approx(alone.before.interval)


# -- by simulation, with fixed seeds ---------------------------------------------------------------


def _share_above(
    margin: float, worse: float, better: float, rows: int = 200, times: int = 1000
) -> float:
    """Return how often a rise above `margin` is found with 95 % confidence.

    Args:
        margin: The margin.
        worse: The probability with which an answer gets worse.
        better: The probability with which it gets better.
        rows: The number of questions. A tenth of the others fail both times.
        times: The number of draws.
    """
    draw = np.random.default_rng(57)
    chances = [worse, better, 0.1, 0.9 - worse - better]
    turns = np.array([(0, 1), (1, 0), (1, 1), (0, 0)])
    drawn = (turns[draw.choice(4, size=rows, p=chances)] for _ in range(times))
    return float(np.mean([_shift(each).least(0.95) > margin for each in drawn]))


@pytest.mark.parametrize("noise", [0.01, 0.05, 0.1, 0.2])
@pytest.mark.parametrize("margin", [0, 0.02])
def test_equal_data_is_found_to_rise_in_at_most_one_of_twenty_draws(
    noise: float, margin: float
) -> None:
    assert _share_above(margin, noise, noise) <= 0.05


@pytest.mark.parametrize("noise", [0.0, 0.02, 0.05])
def test_a_rise_as_large_as_the_margin_is_seldom_found_to_be_above_it(noise: float) -> None:
    assert _share_above(0.02, 0.02 + noise, noise) <= 0.05


@pytest.mark.parametrize("noise", [0.0, 0.01, 0.015])
def test_a_rise_of_ten_points_in_200_rows_is_found_to_be_above_two(noise: float) -> None:
    assert _share_above(0.02, 0.1 + noise, noise) >= 0.95


@pytest.mark.parametrize("noise", [0.01, 0.05])
def test_intervals_of_95_percent_hold_the_true_difference(noise: float) -> None:
    draw = np.random.default_rng(3)
    chances, turns = [0.06 + noise, noise, 0.94 - 2 * noise], np.array([(0, 1), (1, 0), (0, 0)])
    drawn = [_shift(turns[draw.choice(3, 100, p=chances)]).difference for _ in range(1000)]
    inside = [low <= 0.06 <= high for one in drawn for low, high in [one.interval or (1, 0)]]
    assert np.mean(inside) >= 0.94
