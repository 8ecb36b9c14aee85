"""Test thresholds without a guarantee."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from demur.calibration import CalibrationError, best_f1, operating_points, percentile

SCORES = st.one_of(st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0]), st.floats(-1e300, 1e300))
LABELLED = st.lists(st.tuples(SCORES, st.booleans()), min_size=1, max_size=20)


# -- best F1 ---------------------------------------------------------------------------------------


@given(LABELLED)
def test_no_score_has_a_better_f1(drawn: list[tuple[float, bool]]) -> None:
    scores, labels = [score for score, _ in drawn], [label for _, label in drawn]
    *points, _ = operating_points(scores, labels)
    f1 = [point.f1 for point in points]
    if all(labels) or not any(labels):
        with pytest.raises(CalibrationError, match="hallucinated answers and others"):
            best_f1(scores, labels)
        return
    if not any(f1):
        with pytest.raises(CalibrationError, match="no threshold finds"):
            best_f1(scores, labels)
        return
    found = best_f1(scores, labels)
    known = [one for one in f1 if one is not None]
    assert len(known) == len(f1)
    (first, *_) = [point for point in points if point.f1 == max(known)]
    assert found.model_dump(exclude_none=True) == {
        "value": first.threshold,
        "method": "best-f1",
        "on_abstain": "pass",
        "fingerprints": {},
        "samples": first.total,
        "passed": first.passed,
        "hallucinated": first.hallucinated,
        "passed_hallucinated": first.passed_hallucinated,
    }


def test_of_equal_f1_the_lowest_threshold_lets_more_pass() -> None:
    # Both 0.3 and 0.9 have an F1 of 2/3: they find one of two, or both with two others.
    scores, labels = [0.1, 0.3, 0.3, 0.4, 0.9], [True, False, False, True, False]
    assert {point.threshold: point.f1 for point in operating_points(scores, labels)}[0.3] == 2 / 3
    assert {point.threshold: point.f1 for point in operating_points(scores, labels)}[0.9] == 2 / 3
    assert best_f1(scores, labels).value == 0.3


# -- percentiles -----------------------------------------------------------------------------------


@given(st.lists(SCORES, min_size=1, max_size=30), st.decimals(0, 100, places=3))
def test_so_many_of_a_hundred_fail_and_not_one_more_would_do(scores: list[float], of: Any) -> None:
    percent = float(of)
    found = percentile(scores, percent)
    failed = sum(score < found.value for score in scores)
    allowed = Fraction(of) * len(scores) / 100
    assert failed <= allowed
    assert found.value in scores
    assert found.passed == len(scores) - failed > 0
    assert (found.method, found.percentile) == ("percentile", percent)
    assert (found.samples, found.hallucinated, found.passed_hallucinated) == (
        len(scores),
        None,
        None,
    )
    higher = sorted({score for score in scores if score > found.value})
    assume(higher)
    assert sum(score < higher[0] for score in scores) > allowed


def test_percents_are_meant_as_they_are_written() -> None:
    scores = [float(at) for at in range(1000)]
    # 0.7 % are exactly 7, although the float 0.7 is a little less and 0.1 a little more.
    for percent, value in ((0.7, 7), (0.1, 1), (29, 290), (0, 0), (100, 999), (0.05, 0)):
        assert percentile(scores, percent).value == value


@pytest.mark.parametrize("odd", [-0.1, 100.1, math.nan, "10", True])
def test_a_percent_is_from_0_to_100(odd: Any) -> None:
    with pytest.raises(CalibrationError, match="from 0 to 100"):
        percentile([0.5], odd)
