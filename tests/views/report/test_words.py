"""Test numbers in words: a threshold in few digits is still the same threshold."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur.views.report.words import rounded_down, thresholds

ANY = st.floats(allow_nan=False, allow_infinity=False)
SCORES = st.one_of(
    st.lists(ANY, min_size=1, unique=True),
    st.lists(st.floats(0, 1), min_size=1, unique=True),
    st.integers(1, 50).map(lambda parts: [one / parts for one in range(parts + 1)]),
)


@given(SCORES)
def test_what_is_shown_lets_the_same_answers_pass(scores: list[float]) -> None:
    ordered = sorted(set(scores))
    above = math.nextafter(ordered[-1], math.inf)
    if math.isinf(above):
        return
    shown = [float(one) for one in thresholds([*ordered, above])]
    for before, short, value in zip([-math.inf, *ordered], shown, ordered, strict=False):
        assert before < short <= value
    assert shown[-1] >= above
    assert all(one < other for one, other in itertools.pairwise(shown[:-1]))


def test_thresholds_are_short() -> None:
    parts = [0.0, 1 / 3, 0.5, 2 / 3, 0.7, 1.0]
    shown = [*thresholds([*parts, math.nextafter(1, 2)])]
    assert shown == ["0", "0.333", "0.5", "0.666", "0.7", "1", "1.01"]
    close = [0.66661, 0.66662, 0.7]
    assert [*thresholds(close)][:2] == ["0.666", "0.66662"]


@pytest.mark.parametrize(("value", "shown"), [(2 / 3, "0.666666"), (0.7, "0.7"), (-2.0, "-2")])
def test_a_threshold_is_rounded_down(value: float, shown: str) -> None:
    assert rounded_down(value, digits=6) == shown
