"""Test bootstrap intervals by hand and by their properties."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from demur.schema import wilson
from demur_research.resampling import (
    auroc,
    balanced_accuracy,
    drawn,
    figure,
    mean,
    pass_rates,
    pearson,
    share,
    spearman,
)

SCORED = st.lists(st.tuples(st.sampled_from([0.0, 0.25, 0.5, 1.0]), st.booleans()), max_size=12)


@given(SCORED)
def test_auroc_is_the_share_of_pairs_in_order(rows: list[tuple[float, bool]]) -> None:
    pairs = [(a > b) + (a == b) / 2 for a, yes in rows if yes for b, other in rows if not other]
    (value,) = auroc([score for score, _ in rows], [kind for _, kind in rows])
    assert value == pytest.approx(sum(pairs) / len(pairs)) if pairs else np.isnan(value)


@given(SCORED, st.data())
def test_an_item_that_is_drawn_twice_counts_as_two(
    rows: list[tuple[float, bool]], data: st.DataObject
) -> None:
    times = data.draw(st.lists(st.integers(0, 3), min_size=len(rows), max_size=len(rows)))
    repeated = [row for row, count in zip(rows, times, strict=True) for _ in range(count)]
    plain = auroc([score for score, _ in repeated], [kind for _, kind in repeated])
    weights = np.array([times], np.float64).reshape(1, len(rows))
    found = auroc([score for score, _ in rows], [kind for _, kind in rows], weights)
    assert found == pytest.approx(plain, nan_ok=True)
    average = mean([score for score, _ in rows], weights)
    expected = np.mean([score for score, _ in repeated]) if repeated else np.nan
    assert average == pytest.approx([expected], nan_ok=True)


PASSED = st.lists(st.tuples(st.booleans(), st.booleans()), max_size=12)


@given(PASSED)
def test_balanced_accuracy_is_the_mean_share_of_both_kinds(rows: list[tuple[bool, bool]]) -> None:
    held = [[passes is right for passes, right in rows if right is kind] for kind in (True, False)]
    (value,) = balanced_accuracy([passes for passes, _ in rows], [right for _, right in rows])
    if all(held):
        assert value == pytest.approx(np.mean([np.mean(of_kind) for of_kind in held]))
        # It is the AUROC of a score that is 1 or 0.
        assert value == pytest.approx(auroc([passes for passes, _ in rows], [of for _, of in rows]))
    else:
        assert np.isnan(value)


@given(PASSED, st.data())
def test_shares_of_what_passes_count_an_item_as_often_as_it_is_drawn(
    rows: list[tuple[bool, bool]], data: st.DataObject
) -> None:
    times = data.draw(st.lists(st.integers(0, 3), min_size=len(rows), max_size=len(rows)))
    repeated = [row for row, count in zip(rows, times, strict=True) for _ in range(count)]
    weights = np.array([times], np.float64).reshape(1, len(rows))
    for statistic in (pass_rates, balanced_accuracy):
        plain = statistic([passes for passes, _ in repeated], [right for _, right in repeated])
        found = statistic([passes for passes, _ in rows], [right for _, right in rows], weights)
        assert np.array(found) == pytest.approx(np.array(plain), nan_ok=True)


def test_what_belongs_together_is_drawn_together_and_as_often_as_there_are_groups() -> None:
    times = drawn(["a", "b", "a", "c"], seed=0)
    assert np.array_equal(times[:, 0], times[:, 2])
    assert set((times[:, 0] + times[:, 1] + times[:, 3]).tolist()) == {3.0}
    assert np.array_equal(times, drawn(["a", "b", "a", "c"], seed=0))
    assert not np.array_equal(times, drawn(["a", "b", "a", "c"], seed=1))


def test_the_interval_of_a_mean_has_the_width_of_its_standard_error() -> None:
    noise = np.random.default_rng(5).normal(0, 0.2, size=400)
    found = figure(float(noise.mean()), mean(noise, drawn([str(at) for at in range(400)], 0)))
    error = 1.96 * noise.std() / sqrt(400)
    assert found.low == pytest.approx(noise.mean() - error, abs=0.003)
    assert found.high == pytest.approx(noise.mean() + error, abs=0.003)


def test_what_is_undefined_has_no_number_and_no_interval() -> None:
    nothing = figure(float("nan"), np.array([np.nan]))
    assert (nothing.value, nothing.low, nothing.high) == (None, None, None)
    assert figure(0.5, np.array([np.nan])).low is None
    assert figure(0.5, auroc([], [], drawn([], 0))).low is None
    assert figure(0.5, np.array([0.4, np.nan, 0.4])).low is None
    assert figure(0.5, np.array([np.nan] + [0.4] * 20)).low == 0.4


HELD = st.lists(st.booleans(), min_size=2, max_size=40)


@given(HELD, st.integers(2, 5))
def test_items_of_a_group_that_are_all_alike_count_once(held: list[bool], times: int) -> None:
    names = [str(at) for at in range(len(held))]
    once, repeated = share(held, names), share(held * times, names * times)
    found = (repeated.value, repeated.low, repeated.high)
    assert found == pytest.approx((once.value, once.low, once.high))


@given(HELD)
@example([False, *[True] * 11])
def test_groups_of_one_item_count_as_independent_ones_but_for_one(held: list[bool]) -> None:
    alone, grouped = share(held), share(held, [str(at) for at in range(len(held))])
    assert (grouped.value, alone.value) == (alone.value, pytest.approx(100 * np.mean(held)))
    lows, highs = (grouped.low, alone.low), (alone.high, grouped.high)
    assert lows[0] <= lows[1] + 1e-9
    assert highs[0] <= highs[1] + 1e-9
    if any(held) and not all(held):
        low, high = wilson(float(np.mean(held)), len(held) - 1)
        assert (grouped.low, grouped.high) == pytest.approx((100 * low, 100 * high))


PAIRS = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), max_size=12)


@given(PAIRS)
def test_correlations_are_what_their_definitions_give(pairs: list[tuple[int, int]]) -> None:
    first, second = ([float(pair[at]) for pair in pairs] for at in range(2))
    differ = len({*first}) > 1 and len({*second}) > 1
    expected = np.corrcoef(first, second)[0, 1] if differ else np.nan
    assert pearson(first, second) == pytest.approx(expected, nan_ok=True, abs=1e-9)
    ranks = [[np.mean(np.flatnonzero(np.sort(of) == one)) for one in of] for of in (first, second)]
    assert spearman(first, second) == pytest.approx(pearson(*ranks), nan_ok=True, abs=1e-9)


def test_each_draw_has_a_correlation_without_the_items_that_it_lacks() -> None:
    first = np.array([[1, 2, 3, 4], [1, 2, np.nan, 40], [1, 1, 1, np.nan], [np.nan] * 4])
    second = np.array([[1, 2, 3, 40], [30, 20, 5, 10], [1, 2, 3, 4], [1, 2, 3, 4]])
    linear = np.corrcoef([1, 2, 40], [30, 20, 10])[0, 1]
    skewed = np.corrcoef([1, 2, 3, 4], [1, 2, 3, 40])[0, 1]
    found = pearson(first, second)
    assert found == pytest.approx([skewed, linear, np.nan, np.nan], nan_ok=True)
    assert spearman(first, second) == pytest.approx([1, -1, np.nan, np.nan], nan_ok=True)
    small = [3e-300, 2e-300, 1e-300]
    assert (pearson([1, 2, 3], small), spearman([1, 2, 3], small)) == pytest.approx((-1, -1))
