"""Test a comparison's figures by hand, against their definitions, and by properties."""

from __future__ import annotations

import math
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from demur.calibration import roc
from demur.comparing.figures import (
    Estimate,
    auroc,
    average_precision,
    balanced_accuracy,
    best_threshold,
    cross_fitted,
    estimates,
    f1,
    halves,
    on_pareto_line,
)

GRID = st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0])
ANSWERS = st.one_of(
    st.lists(st.tuples(score, st.booleans(), st.integers(0, 3)), min_size=2, max_size=30)
    for score in (GRID, st.floats(-1e9, 1e9))
)
"""Lists of scores, whether the answer is hallucinated, and how often the answer counts."""
Drawn = list[tuple[float, bool, int]]


def _columns(drawn: Drawn) -> tuple[Any, Any, Any]:
    scores, labels, weights = zip(*drawn, strict=True)
    return np.array(scores), np.array(labels), np.array(weights, dtype=np.float64)


def _repeated(drawn: Drawn) -> tuple[Any, Any, Any]:
    """Return the columns with each answer repeated as often as it counts."""
    return _columns([(score, label, 1) for score, label, times in drawn for _ in range(times)])


def _both(drawn: Drawn) -> bool:
    return len({label for _, label, times in drawn if times}) == 2


def _ones(count: int) -> Any:
    return np.ones(count)


SCORES = np.array([1.0, 2.0, 3.0, 4.0])
WRONG = np.array([True, False, True, False])


# -- without a threshold ---------------------------------------------------------------------------


def test_areas_worked_out_by_hand() -> None:
    # The pairs of a hallucinated and another answer: (1, 2), (1, 4), (3, 2), (3, 4). One is wrong.
    assert float(auroc(SCORES, WRONG, _ones(4))) == 0.75
    # The first is found at precision 1, the second at 2/3. Each adds half of the recall.
    assert float(average_precision(SCORES, WRONG, _ones(4))) == pytest.approx((1 + 2 / 3) / 2)
    # If all scores are equal, the figures are those of chance.
    equal = np.zeros(5)
    wrong = np.array([True, False, False, False, False])
    assert float(auroc(equal, wrong, _ones(5))) == 0.5
    assert float(average_precision(equal, wrong, _ones(5))) == pytest.approx(1 / 5)


@given(ANSWERS)
def test_auroc_is_how_often_a_hallucinated_answer_scores_lower(drawn: Drawn) -> None:
    assume(_both(drawn))
    scores, labels, _ = _repeated(drawn)
    wrong, right = scores[labels], scores[~labels]
    wins = sum(1.0 if bad < good else 0.5 * (bad == good) for bad, good in product(wrong, right))
    found = float(auroc(*_columns(drawn)))
    assert found == pytest.approx(wins / (len(wrong) * len(right)), abs=1e-12)
    assert found == pytest.approx(roc(scores, labels).auc, abs=1e-12)


@given(ANSWERS)
def test_average_precision_sums_precision_over_steps_of_recall(drawn: Drawn) -> None:
    assume(_both(drawn))
    scores, labels, _ = _repeated(drawn)
    area, recall = 0.0, 0.0
    for threshold in sorted(set(scores.tolist())):
        flagged = scores <= threshold
        now = (flagged & labels).sum() / labels.sum()
        area += (now - recall) * (flagged & labels).sum() / flagged.sum()
        recall = now
    assert float(average_precision(*_columns(drawn))) == pytest.approx(area, abs=1e-12)


@pytest.mark.parametrize("label", [True, False])
def test_nothing_is_told_apart_where_all_answers_have_one_label(label: bool) -> None:
    labels, flagged = np.full(4, label), np.array([True, True, False, False])
    values = [
        auroc(SCORES, labels, _ones(4)),
        average_precision(SCORES, labels, _ones(4)),
        balanced_accuracy(flagged, labels, _ones(4)),
        f1(flagged, labels, _ones(4)),
    ]
    assert all(math.isnan(float(value)) for value in values)


# -- decisions -------------------------------------------------------------------------------------


def test_decisions_counted_by_hand() -> None:
    # Of 3 hallucinated answers 2 are flagged, and of 4 others 1.
    wrong = np.array([True, True, True, False, False, False, False])
    flagged = np.array([True, True, False, True, False, False, False])
    assert float(balanced_accuracy(flagged, wrong, _ones(7))) == pytest.approx((2 / 3 + 3 / 4) / 2)
    assert float(f1(flagged, wrong, _ones(7))) == pytest.approx(2 * 2 / (3 + 3))


@given(ANSWERS, st.booleans())
def test_no_threshold_is_better_than_the_best_and_no_lower_one_as_good(
    drawn: Drawn, by_f1: bool
) -> None:
    scores, labels, _ = _columns(drawn)
    assume(0 < labels.sum() < len(labels))
    measure = f1 if by_f1 else balanced_accuracy
    best = best_threshold(scores, labels, by_f1=by_f1)
    reached = float(measure(scores < best, labels, _ones(len(labels))))
    for other in [*scores.tolist(), math.inf]:
        value = float(measure(scores < other, labels, _ones(len(labels))))
        assert value <= reached + 1e-12
        assert other >= best or value < reached


def test_the_threshold_leaves_room_on_both_sides() -> None:
    assert (
        best_threshold(np.array([0.1, 0.2, 0.8]), np.array([True, True, False]), by_f1=True) == 0.5
    )
    close = np.array([1.0, np.nextafter(1.0, 2)])
    for scores in (close, np.array([-1.7e308, 1.7e308])):
        best = best_threshold(scores, np.array([True, False]), by_f1=False)
        assert (scores < best).tolist() == [True, False]


# -- halves ----------------------------------------------------------------------------------------

GROUPED = st.lists(st.tuples(GRID, st.booleans(), st.integers(0, 9)), min_size=2, max_size=40)


@given(GROUPED, st.integers(0, 5))
def test_a_group_is_in_one_half_and_halves_have_as_many_groups(drawn: Drawn, seed: int) -> None:
    _, labels, groups = _columns(drawn)
    first = halves(labels, groups.tolist(), seed)
    inside, outside = set(groups[first]), set(groups[~first])
    assert not inside & outside
    assert 0 <= len(inside) - len(outside) <= 1
    assert (first == halves(labels, groups.tolist(), seed)).all()


@given(st.integers(2, 20), st.integers(2, 20), st.integers(0, 5))
def test_both_halves_have_both_labels_where_they_can(wrong: int, right: int, seed: int) -> None:
    labels = np.array([True] * wrong + [False] * right)
    first = halves(labels, range(wrong + right), seed)
    for half in (first, ~first):
        assert set(labels[half].tolist()) == {True, False}


@given(ANSWERS, st.booleans(), st.integers(0, 3))
def test_a_half_is_decided_by_the_labels_of_the_other_half_alone(
    drawn: Drawn, by_f1: bool, seed: int
) -> None:
    scores, labels, _ = _columns(drawn)
    first = halves(labels, range(len(labels)), seed)
    flagged = cross_fitted(scores, labels, first, by_f1=by_f1)
    assume(flagged is not None)
    assert flagged is not None
    threshold = best_threshold(scores[~first], labels[~first], by_f1=by_f1)
    assert (flagged[first] == (scores[first] < threshold)).all()
    turned = labels ^ first  # All labels of the first half are wrong.
    again = cross_fitted(scores, turned, first, by_f1=by_f1)
    assert again is not None
    assert (again[first] == flagged[first]).all()
    # Nothing is chosen on a half of one label.
    assert cross_fitted(scores, first, first, by_f1=by_f1) is None


# -- intervals -------------------------------------------------------------------------------------


def _share(labels: Any, weights: Any) -> Any:
    return np.sum(weights * labels, axis=-1) / np.sum(weights, axis=-1)


def test_the_interval_of_a_mean_is_that_of_its_standard_error() -> None:
    labels = np.arange(400) % 2 == 0
    (found,) = estimates([partial(_share, labels)], range(400), 0)
    assert found.value == 0.5
    assert found.interval == pytest.approx((0.5 - 1.96 * 0.025, 0.5 + 1.96 * 0.025), abs=0.006)


def test_answers_of_one_group_count_as_one() -> None:
    labels = np.arange(50) % 2 == 0
    (alone,) = estimates([partial(_share, labels)], range(50), 0)
    times = np.repeat(labels, 20)
    (together,) = estimates([partial(_share, times)], np.repeat(np.arange(50), 20).tolist(), 0)
    assert together == alone
    (apart,) = estimates([partial(_share, times)], range(1000), 0)
    assert alone.interval is not None
    assert apart.interval is not None
    assert np.diff(apart.interval) < np.diff(alone.interval) / 3


def test_there_is_no_interval_of_one_group_or_of_what_is_mostly_undefined() -> None:
    figure = partial(auroc, SCORES, WRONG)
    (found,) = estimates([figure], ["all"] * 4, 0)
    assert found == Estimate(0.75, None)
    # More than a third of the resamples do not contain the only hallucinated answer.
    wrong = np.array([True, *[False] * 9])
    (found,) = estimates([partial(auroc, np.arange(10.0), wrong)], range(10), 0)
    assert found == Estimate(1.0, None)
    (found,) = estimates([partial(auroc, np.arange(10.0), ~wrong & wrong)], range(10), 0)
    assert found == Estimate(None, None)


# -- the Pareto line -------------------------------------------------------------------------------


def test_the_line_by_hand() -> None:
    points = [(0.7, 1.0), (0.6, 2.0), (0.9, 5.0), (0.9, 6.0), None, (0.7, 1.0), (0.5, 0.0)]
    assert on_pareto_line(points) == [True, False, True, False, False, True, True]


@given(st.lists(st.one_of(st.none(), st.tuples(GRID, GRID)), max_size=12))
def test_whoever_is_off_the_line_is_beaten_by_one_on_it_and_nobody_on_it_is(points: Any) -> None:
    line = on_pareto_line(points)
    on = [point for point, here in zip(points, line, strict=True) if here]
    off = [point for point, here in zip(points, line, strict=True) if not here and point]

    def beats(one: Any, other: Any) -> bool:
        return bool(
            (one[0] > other[0] and one[1] <= other[1]) or (one[0] >= other[0] and one[1] < other[1])
        )

    assert all(not beats(one, other) for one, other in product(on, on))
    assert all(any(beats(one, other) for one in on) for other in off)
    assert bool(on) == any(point is not None for point in points)
