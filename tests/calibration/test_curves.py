"""Test ROC and reliability curves."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from demur.calibration import CalibrationError, reliability, roc

GRID = st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0])
WIDE = st.floats(-1e300, 1e300)
LABELLED = st.one_of(
    st.lists(st.tuples(score, st.booleans()), min_size=2, max_size=40)
    for score in (GRID, st.floats(0, 1), WIDE)
)
Drawn = list[tuple[float, bool]]


def _apart(drawn: Drawn) -> tuple[list[float], list[bool]]:
    return [score for score, _ in drawn], [label for _, label in drawn]


# -- ROC -------------------------------------------------------------------------------------------


@given(LABELLED)
def test_the_area_is_how_often_a_hallucination_scores_lower(drawn: Drawn) -> None:
    scores, labels = _apart(drawn)
    assume(0 < sum(labels) < len(labels))
    found = roc(scores, labels)
    wrong = [score for score, label in drawn if label]
    right = [score for score, label in drawn if not label]
    wins = sum(1.0 if bad < good else 0.5 * (bad == good) for bad, good in product(wrong, right))
    assert found.auc == pytest.approx(wins / (len(wrong) * len(right)), abs=1e-12)


def test_a_curve_needs_both_kinds() -> None:
    for label in (True, False):
        with pytest.raises(CalibrationError, match="hallucinated answers and others"):
            roc([0.1, 0.2], [label, label])


# -- reliability -----------------------------------------------------------------------------------


@given(LABELLED)
def test_each_answer_is_in_one_bin(drawn: Drawn) -> None:
    scores, labels = _apart(drawn)
    found = reliability(scores, labels)
    within = all(0 <= score <= 1 for score in scores)
    assert found.binning == ("equal-width" if within else "quantile")
    assert 1 <= len(found.bins) <= 10
    assert sum(one.right.total for one in found.bins) == len(drawn)
    last = found.bins[-1]
    for one in found.bins:
        closed = not within or one.high == last.high
        inside = [
            (score, label)
            for score, label in drawn
            if one.low <= score < one.high or (closed and score == one.high)
        ]
        assert len(inside) == one.right.total
        assert one.right.count == sum(not label for _, label in inside)
        assert one.low <= one.mean <= one.high
        exact = sum(score / len(inside) for score, _ in inside)
        assert one.mean == pytest.approx(exact, rel=1e-9, abs=1e-9)


def test_bins_of_equal_width_are_closed_below() -> None:
    scores = [0.0, 0.29, 0.3, 0.7, 0.99, 1.0]  # As floats, 3 * 0.1 > 0.3.
    found = reliability(scores, [False, True, False, False, True, False])
    edges = [(one.low, one.high) for one in found.bins]
    assert edges == [(0, 0.1), (0.2, 0.3), (0.3, 0.4), (0.7, 0.8), (0.9, 1.0)]
    assert [one.right.total for one in found.bins] == [1, 1, 1, 1, 2]
    assert found.bins[-1].right.interval == pytest.approx((0.0945, 0.9055), abs=1e-3)


def test_quantiles_keep_equal_scores_together() -> None:
    scores = [-5.0] * 12 + [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]
    found = reliability(scores, [True] * 12 + [False] * 8)
    held = [(one.low, one.high, one.right.count, one.right.total) for one in found.bins]
    assert held == [(-5, -5, 0, 12), (1, 2, 2, 2), (3, 4, 2, 2), (5, 6, 2, 2), (7, 8, 2, 2)]
