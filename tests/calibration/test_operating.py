"""Test the counts of what each threshold lets pass."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur.calibration import Operating, operating_points

SCORES = st.one_of(st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0]), st.floats(-1e300, 1e300))


@given(st.lists(st.tuples(SCORES, st.booleans()), min_size=1, max_size=40))
def test_points_are_what_counting_gives(drawn: list[tuple[float, bool]]) -> None:
    scores, labels = [score for score, _ in drawn], [label for _, label in drawn]
    points = operating_points(scores, labels)
    *thresholds, above = [point.threshold for point in points]
    assert thresholds == sorted(set(scores))
    assert above == math.nextafter(thresholds[-1], math.inf)
    for point in points:
        passing = [label for score, label in drawn if score >= point.threshold]
        assert (point.passed, point.passed_hallucinated) == (len(passing), sum(passing))
        assert (point.total, point.hallucinated) == (len(drawn), sum(labels))
    assert points[0].passed == len(drawn)
    assert points[-1].passed == points[-1].passed_hallucinated == 0
    blind = operating_points(scores)
    assert [point[:3] for point in blind] == [point[:3] for point in points]
    assert {point[3:] for point in blind} == {(None, None)}


def test_ratios_are_those_of_the_field() -> None:
    # Of 10 answers, 4 are hallucinated. 5 answers do not pass; 3 of these are hallucinated.
    point = Operating(0.5, passed=5, total=10, hallucinated=4, passed_hallucinated=1)
    assert point.pass_rate == 0.5
    assert point.found == 3
    assert point.precision == 3 / 5
    assert point.recall == 3 / 4
    assert point.f1 == pytest.approx(2 * (3 / 5) * (3 / 4) / (3 / 5 + 3 / 4))


def test_ratios_that_are_not_defined_are_none() -> None:
    all_pass = Operating(0.5, 10, 10, 4, 4)
    assert (all_pass.precision, all_pass.recall, all_pass.f1) == (None, 0, 0)
    none_there = Operating(0.5, 5, 10, 0, 0)
    assert (none_there.precision, none_there.recall, none_there.f1) == (0, None, None)
    blind = Operating(0.5, 5, 10, None, None)
    assert (blind.found, blind.precision, blind.recall, blind.f1) == (None,) * 4
