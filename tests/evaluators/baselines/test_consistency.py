"""Test the arithmetic of SelfCheck against figures by hand and against its laws."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur.evaluators.baselines.consistency import Unigrams, contradiction, mean, unlike
from demur.schema import ClaimLabel

shares = st.floats(0, 1)


def test_what_is_unknown_does_not_count() -> None:
    assert mean([0.5, None, 1.0]) == 0.75
    assert mean([None, None]) is None
    assert mean([]) is None


@given(st.lists(shares, min_size=1))
def test_unlike_is_told_by_the_most_similar(similarities: list[float]) -> None:
    assert unlike(similarities) == 1 - max(similarities)
    assert 0 <= unlike(similarities) <= unlike([]) == 1


@given(shares, shares)
def test_contradiction_leaves_neutral_out(first: float, second: float) -> None:
    entails, contradicts = sorted((first / 2, second / 2))
    found = contradiction(
        {
            ClaimLabel.ENTAILMENT: entails,
            ClaimLabel.NEUTRAL: 1 - entails - contradicts,
            ClaimLabel.CONTRADICTION: contradicts,
        }
    )
    assert 0.5 <= found <= 1
    if contradicts > 0:
        assert found * (contradicts + entails) == pytest.approx(contradicts)
    else:
        assert found == 0.5


def test_unigrams_by_hand() -> None:
    # Of seven words, "a" occurs four times and "b" once. Smoothing adds one for each of the three
    # distinct words.
    found = Unigrams(["A a b", "a, c c a."]).surprises("A b.")
    assert found == pytest.approx([-math.log(5 / 10), -math.log(2 / 10)])


texts = st.lists(st.sampled_from("abcd"), min_size=1, max_size=8).map(" ".join)


@given(st.lists(texts, min_size=1, max_size=4))
def test_the_probabilities_sum_to_one(said: list[str]) -> None:
    vocabulary = sorted({word for text in said for word in text.split()})
    surprises = Unigrams(said).surprises(" ".join(vocabulary))
    assert sum(math.exp(-surprise) for surprise in surprises) == pytest.approx(1)
