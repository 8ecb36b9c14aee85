"""Figures: what is drawn is what there is, whatever the scores are."""

from __future__ import annotations

import itertools
import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur.calibration import reliability, roc
from demur.report.curves import reliability_curve, roc_curve
from demur.report.drawing import thinned
from demur.report.embedding import as_data
from demur.report.figures import BINS, MOST_POINTS, Scores, distribution, over_time

ANY = st.floats(allow_nan=False, allow_infinity=False)
SHARES = st.one_of(st.floats(0, 1), st.sampled_from([0.0, 0.05, 0.3, 0.95, 1.0]))
LABELS = st.sampled_from([True, False, None])
SCORES = st.one_of(
    st.lists(st.tuples(SHARES, LABELS), min_size=1, max_size=60),
    st.lists(st.tuples(ANY, LABELS), min_size=1, max_size=60),
    st.lists(st.tuples(st.just(-7.5), LABELS), min_size=1, max_size=5),
)


def _scores(given: list[tuple[float, bool | None]], apart: int = 1000) -> Scores:
    values, labels = zip(*given, strict=True)
    return Scores(values, labels, [at * apart for at in range(len(given))])


def _number(cell: str) -> int:
    return int(cell.replace(",", ""))


@given(SCORES)
def test_every_score_is_in_one_bin_under_its_label(given: list[tuple[float, bool | None]]) -> None:
    scores = _scores(given)
    chart = distribution(scores, given[0][0])
    as_data(chart.figure)  # finite
    traces = chart.figure["data"]
    assert len(traces) == len(scores.kinds) == len({label for _, label in given})
    for kind, trace in zip(scores.kinds, traces, strict=True):
        mine = [value for value, label in given if label is kind]
        assert sum(trace["y"]) == len(mine)
        if min(scores.values) >= 0 and max(scores.values) <= 1:
            bins = BINS + (max(scores.values) == 1)  # of 1, one of its own
            edges = [at / BINS for at in range(bins + 1)]
            inside = [
                sum(low <= one < high for one in mine) for low, high in itertools.pairwise(edges)
            ]
            assert trace["y"] == inside
            assert (chart.rows[-1][0] == "1") == (bins > BINS)
    for row in chart.rows:
        assert len(row) == len(chart.heads)
    assert sum(_number(cell) for row in chart.rows for cell in row[1:]) == len(given)


def test_a_given_threshold_is_marked_beside_the_one_that_moves() -> None:
    scores = _scores([(0.2, None), (0.7, None)])
    assert len(distribution(scores, 0.7).figure["layout"]["shapes"]) == 1
    first, second = distribution(scores, 0.7, 0.4).figure["layout"]["shapes"]
    assert (first["x0"], second["x0"]) == (0.7, 0.4)
    assert first["line"]["dash"] != second["line"]["dash"]


@given(SCORES)
def test_scores_over_time_are_the_scores(given: list[tuple[float, bool | None]]) -> None:
    chart = over_time(_scores(given))
    as_data(chart.figure)
    points = [one for one in chart.figure["data"] if one["mode"] == "markers"]
    assert sorted(value for one in points for value in one["y"]) == sorted(v for v, _ in given)
    assert sum(_number(row[2]) for row in chart.rows) == len(given)


def test_equal_times_are_drawn_in_order() -> None:
    given: list[tuple[float, bool | None]] = [(at / 40, None) for at in range(40)]
    (points, line) = over_time(_scores(given, apart=0)).figure["data"]
    assert points["x"] == list(range(1, 41))
    assert line["x"][0] == 1
    chart = over_time(_scores(given))
    assert chart.figure["data"][0]["x"][1] == "1970-01-01T00:00:01.000"
    assert chart.figure["layout"]["xaxis"]["type"] == "date"


def test_the_line_is_the_median_of_the_neighbours() -> None:
    values = [float(at % 7) / 7 for at in range(200)]
    (_, line) = over_time(_scores([(one, None) for one in values])).figure["data"]
    for at in (0, 3, 100, 199):
        around = values[max(0, at - 5) : at + 6]
        assert line["y"][at] == pytest.approx(np.median(around))
    few = over_time(_scores([(one, None) for one in values[:10]]))
    assert len(few.figure["data"]) == 1


def test_of_many_answers_some_are_drawn_and_the_page_says_so() -> None:
    chart = over_time(_scores([(at / 5000, None) for at in range(5000)]))
    points, line = chart.figure["data"]
    assert len(points["x"]) == MOST_POINTS
    assert len(line["x"]) <= 400
    assert "1,500 of the 5,000 answers" in chart.caption
    assert sum(_number(row[2]) for row in chart.rows) == 5000
    assert len(json.dumps(chart.figure)) < 200_000


@given(st.integers(1, 5000), st.integers(2, 600))
def test_thinned_places_have_both_ends(count: int, most: int) -> None:
    at = thinned(count, most)
    assert at == sorted(set(at))
    assert (at[0], at[-1]) == (0, count - 1)
    assert len(at) <= max(most, 1)
    assert len(at) == count or count > most


def _both(draw: Any) -> tuple[list[float], list[bool]]:
    values = draw(st.lists(st.one_of(SHARES, st.floats(-1e300, 1e300)), min_size=2, max_size=50))
    labels = draw(st.lists(st.booleans(), min_size=len(values), max_size=len(values)))
    return values, [True, False, *labels[2:]]


@given(st.composite(_both)())
def test_curves_are_those_of_the_calibration(given: tuple[list[float], list[bool]]) -> None:
    curve, binned = roc(*given), reliability(*given)
    chart = roc_curve(curve)
    as_data(chart.figure)
    _, line = chart.figure["data"]
    assert line["y"] == curve.true_positive_rate.tolist()
    assert line["x"] == curve.false_positive_rate.tolist()
    assert f"{curve.auc:.2f}" in chart.caption
    chart = reliability_curve(binned)
    as_data(chart.figure)
    points = chart.figure["data"][-1]
    assert points["y"] == [one.right.value for one in binned.bins]
    for at, low, high in zip(
        points["y"], points["error_y"]["arrayminus"], points["error_y"]["array"], strict=True
    ):
        assert -1e-9 <= at - low <= at + high <= 1 + 1e-9
    # Only a score that is a share could be a probability.
    assert (len(chart.figure["data"]) == 2) == (binned.binning == "equal-width")
    assert ("probability" in chart.caption) == (binned.binning == "equal-width")
