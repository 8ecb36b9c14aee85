"""Test that counts, ratios and intervals are right, and never NaN."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from demur_research.bench import Figure
from demur_research.detection import detection, f1_difference

DECISIONS = st.lists(st.tuples(st.booleans(), st.booleans()), max_size=30)
PAIRS = st.lists(st.tuples(st.booleans(), st.booleans(), st.booleans()), max_size=30)


def columns(rows: list[tuple[bool, ...]], n: int) -> list[list[bool]]:
    return [[row[at] for row in rows] for at in range(n)]


def test_figures_are_those_of_the_counts() -> None:
    rows = [(True, True)] * 38 + [(False, True)] * 56 + [(True, False)] * 11
    found = detection(*columns([*rows, *[(False, False)] * 82], 2))
    values = (found.f1.value, found.precision.value, found.recall.value)
    assert [round(value or 0, 2) for value in values] == [53.15, 40.43, 77.55]


@given(DECISIONS)
@settings(max_examples=20)
def test_ratios_are_by_their_definitions(rows: list[tuple[bool, bool]]) -> None:
    found = detection(*columns(rows, 2))
    wrong, rejected = (sum(row[at] for row in rows) for at in range(2))
    both = sum(map(all, rows))
    for ratio, above, below in (
        (found.precision, both, rejected),
        (found.recall, both, wrong),
        (found.f1, 2 * both, wrong + rejected),
    ):
        assert ratio.value == (pytest.approx(100 * above / below) if below else None)
        if ratio.low is not None and ratio.high is not None:
            assert 0 <= ratio.low <= ratio.high <= 100
    assert not any(math.isnan(ratio.value or 0) for ratio in (found.f1, found.recall))


@given(PAIRS)
@settings(max_examples=20)
def test_the_difference_is_that_of_the_two(rows: list[tuple[bool, bool, bool]]) -> None:
    wrong, first, second = columns(rows, 3)
    found = f1_difference(wrong, first, second)
    one, other = detection(wrong, first).f1.value, detection(wrong, second).f1.value
    if one is None or other is None:
        assert found == Figure(None)
    else:
        assert found.value == pytest.approx(one - other, abs=1e-9)


def test_as_many_decisions_as_passages_are_expected() -> None:
    with pytest.raises(ValueError, match="expected as many decisions as answers, got 1 for 2"):
        detection([True, False], [True])
