"""Test figures: they draw exactly the given data, whatever the scores are."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur.calibration import reliability, roc
from demur.views.report.curves import reliability_curve, roc_curve
from demur.views.report.drawing import Chart
from demur.views.report.embedding import as_data
from demur.views.report.figures import BINS, MOST_POINTS, Scores, distribution, over_time

SVG = "{http://www.w3.org/2000/svg}"
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


def _values(chart: Chart, mark: str) -> list[dict[str, Any]]:
    """Return the values that marks of one kind are drawn from."""
    assert chart.picture is not None
    as_data(chart.picture)  # This asserts that all values are finite.
    layers = [one for one in chart.picture["layer"] if one["mark"]["type"] == mark]
    return [value for one in layers for value in one["data"]["values"]]


def _column(values: list[dict[str, Any]], name: str) -> list[Any]:
    return [value[name] for value in values]


def _drawable(value: float) -> float:
    return min(max(value, -1e300), 1e300)


@given(SCORES)
def test_every_score_is_in_one_bin_under_its_label(given: list[tuple[float, bool | None]]) -> None:
    scores = _scores(given)
    chart = distribution(scores, given[0][0])
    bars = _values(chart, "bar")
    names = {False: "not hallucinated", True: "hallucinated", None: "no label"}
    assert {bar["kind"] for bar in bars} == {names[label] for _, label in given}
    for kind in scores.kinds:
        mine = [value for value, label in given if label is kind]
        drawn = [bar for bar in bars if bar["kind"] == names[kind]]
        assert sum(_column(drawn, "y")) == len(mine)
        if min(scores.values) >= 0 and max(scores.values) <= 1:
            for bar in drawn:
                assert bar["y"] == sum(bar["x"] <= one < bar["x2"] for one in mine)
            bins = BINS + (max(scores.values) == 1)  # A score of 1 has a bin of its own.
            assert len(chart.rows) == bins
            assert (chart.rows[-1][0] == "1") == (bins > BINS)
    for row in chart.rows:
        assert len(row) == len(chart.heads)
    assert sum(_number(cell) for row in chart.rows for cell in row[1:]) == len(given)


def test_a_given_threshold_is_marked_beside_the_one_that_moves() -> None:
    scores = _scores([(0.2, None), (0.7, None)])
    assert _column(_values(distribution(scores, 0.7), "rule"), "x") == [0.7]
    both = distribution(scores, 0.7, 0.4)
    assert _column(_values(both, "rule"), "x") == [0.7, 0.4]
    assert both.svg.count("stroke-dasharray") == 1


@given(SCORES)
def test_scores_over_time_are_the_scores(given: list[tuple[float, bool | None]]) -> None:
    chart = over_time(_scores(given))
    drawn = _column(_values(chart, "point"), "y")
    assert drawn == [_drawable(value) for value, _ in given]
    assert sum(_number(row[2]) for row in chart.rows) == len(given)


def test_the_line_is_the_median_of_the_neighbours() -> None:
    values = [float(at % 7) / 7 for at in range(200)]
    line = _values(over_time(_scores([(one, None) for one in values])), "line")
    for at in (0, 3, 100, 199):
        around = values[max(0, at - 5) : at + 6]
        assert line[at]["y"] == pytest.approx(np.median(around))
    assert not _values(over_time(_scores([(one, None) for one in values[:10]])), "line")


def test_of_many_answers_some_are_drawn_and_the_page_says_so() -> None:
    labels = (True, False, None)
    chart = over_time(_scores([(at / 5000, labels[at % 3]) for at in range(5000)]))
    assert len(_values(chart, "point")) == MOST_POINTS
    assert len(_values(chart, "line")) <= 200
    assert "1,000 of the 5,000 answers" in chart.caption
    assert sum(_number(row[2]) for row in chart.rows) == 5000
    assert len(chart.svg) < 250_000


def _both(draw: Any) -> tuple[list[float], list[bool]]:
    values = draw(st.lists(st.one_of(SHARES, st.floats(-1e300, 1e300)), min_size=2, max_size=50))
    labels = draw(st.lists(st.booleans(), min_size=len(values), max_size=len(values)))
    return values, [True, False, *labels[2:]]


@given(st.composite(_both)())
def test_curves_are_those_of_the_calibration(given: tuple[list[float], list[bool]]) -> None:
    curve, binned = roc(*given), reliability(*given)
    chart = roc_curve(curve)
    line = _values(chart, "line")[2:]  # The first two points are the diagonal.
    assert _column(line, "y") == curve.true_positive_rate.tolist()
    assert _column(line, "x") == curve.false_positive_rate.tolist()
    assert f"{curve.auc:.2f}" in chart.caption
    chart = reliability_curve(binned)
    points = _values(chart, "point")
    assert _column(points, "y") == [one.right.value for one in binned.bins]
    for bar in _values(chart, "errorbar"):
        assert 0 <= bar["low"] <= bar["y"] + 1e-9
        assert bar["y"] - 1e-9 <= bar["high"] <= 1
    # Only a score that is a share can be a probability.
    diagonal = len(_values(chart, "line")) > len(points)
    assert diagonal == (binned.binning == "equal-width")
    assert ("probability" in chart.caption) == (binned.binning == "equal-width")


# -- as SVG ----------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    "values",
    [
        [0.2, 0.7, 0.7, 1.0],
        [-3.0],
        [-1e308, 1e308],
    ],
    ids=["shares", "one", "huge"],
)
def test_every_value_is_drawn_within_the_axes_and_says_what_it_is(values: list[float]) -> None:
    labels = [(True, False, None)[at % 3] for at in range(len(values))]
    scores = Scores(values, labels, [at * 1000 for at in range(len(values))])
    for chart, mark in ((distribution(scores, 0.5), "bar"), (over_time(scores), "point")):
        drawn = ElementTree.fromstring(chart.svg)
        titles = [one.text for one in drawn.iter(f"{SVG}title")]
        assert sorted(titles) == sorted(_column(_values(chart, mark), "says"))
        assert "NaN" not in chart.svg
        assert "Infinity" not in chart.svg
        assert "url(#hatched)" in chart.svg or mark == "point" or len(values) < 2
