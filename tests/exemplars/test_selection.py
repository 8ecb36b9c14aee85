"""Test which of the exemplars found are shown: nearness, scores, maximal marginal relevance."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from demur.exemplars.selection import Exemplar, check_limits, choose

SHARE = st.sampled_from([0.0, 0.25, 0.5, 0.9, 1.0])
# Values in steps, so that some are equal.
STEPS = st.integers(-4, 4).map(lambda step: step / 4)


@st.composite
def founds(draw: st.DrawFn) -> tuple[list[Exemplar], NDArray[np.float32]]:
    """Draw exemplars that were found, and their vectors."""
    rows = draw(st.lists(st.tuples(STEPS, STEPS, STEPS, STEPS), max_size=9))
    found = [Exemplar(f"id{at}", f"q{at}", f"a{at}", row[0], row[1]) for at, row in enumerate(rows)]
    vectors = np.array([[row[2], row[3], 1.0] for row in rows], np.float32).reshape(-1, 3)
    return found, vectors


def worths(
    found: list[Exemplar],
    vectors: list[list[float]],
    shown: list[Exemplar],
    score_weight: float,
    diversity: float,
) -> dict[str, float]:
    """Return by id the worth of each exemplar that is not shown yet, as the definition says."""

    def place(one: Exemplar) -> float:
        others = [other for other in found if other is not one]
        beaten = sum(other.score < one.score for other in others)
        equal = sum(other.score == one.score for other in others)
        return (beaten + equal / 2) / len(others) if others else 0.0

    def cosine(one: Exemplar, other: Exemplar) -> float:
        a, b = (vectors[found.index(which)] for which in (one, other))
        product = math.fsum(x * y for x, y in zip(a, b, strict=True))
        return product / (math.hypot(*a) * math.hypot(*b))

    def worth(one: Exemplar) -> float:
        relevance = (1 - score_weight) * one.similarity + score_weight * place(one)
        alike = max((cosine(one, other) for other in shown), default=0.0)
        return (1 - diversity) * relevance - diversity * alike

    return {one.id: worth(one) for one in found if one not in shown}


@given(founds(), st.integers(1, 10), SHARE, SHARE, st.randoms())
def test_each_is_worth_most_of_those_that_are_left_whatever_their_order(
    told: tuple[list[Exemplar], NDArray[np.float32]],
    k: int,
    score_weight: float,
    diversity: float,
    chance: Any,
) -> None:
    found, vectors = told
    chosen = choose(found, k, score_weight, diversity, vectors)
    assert len(chosen) == len({one.id for one in chosen}) == min(k, len(found))
    for at, one in enumerate(chosen):
        left = worths(found, vectors.tolist(), chosen[:at], score_weight, diversity)
        assert left[one.id] >= max(left.values()) - 1e-9  # The tolerance is for rounding.
    order = list(range(len(found)))
    chance.shuffle(order)
    again = choose([found[at] for at in order], k, score_weight, diversity, vectors[order])
    assert again == chosen


@given(founds(), st.integers(1, 10), SHARE)
def test_without_shares_the_nearest_come_first(
    told: tuple[list[Exemplar], NDArray[np.float32]], k: int, share: float
) -> None:
    found, vectors = told
    nearest = sorted(found, key=lambda one: (-one.similarity, one.id))
    assert choose(found, k) == nearest[:k]
    assert choose(found, k, 0.0, 0.0, vectors) == nearest[:k]
    assert choose(found, k, 0.0, share, None) == nearest[:k]
    best = sorted(nearest, key=lambda one: -one.score)
    assert choose(found, k, 1.0) == best[:k]


@given(founds(), st.integers(1, 10), SHARE, SHARE)
def test_only_the_order_of_the_scores_counts_and_no_vectors_length(
    told: tuple[list[Exemplar], NDArray[np.float32]], k: int, score_weight: float, diversity: float
) -> None:
    found, vectors = told
    warped = [Exemplar(f.id, f.question, f.answer, 7 * f.score**3 + 2, f.similarity) for f in found]
    ids = [one.id for one in choose(found, k, score_weight, diversity, vectors)]
    # Scaling by powers of two rounds nothing.
    lengths = 2.0 ** np.arange(len(found), dtype=np.float32)[:, None]
    again = choose(warped, k, score_weight, diversity, vectors * lengths)
    assert [one.id for one in again] == ids


def test_diversity_prefers_what_is_not_shown_yet() -> None:
    found = [Exemplar(name, name, name, 0.0, near) for name, near in [("a", 0.9), ("b", 0.89)]]
    found.append(Exemplar("c", "c", "c", 0.0, 0.6))
    vectors = np.array([[1, 0], [1, 0.01], [0, 1]], np.float32)
    assert [one.id for one in choose(found, 2)] == ["a", "b"]
    assert [one.id for one in choose(found, 2, 0.0, 0.5, vectors)] == ["a", "c"]
    # Of equal exemplars, the nearest comes first, then the first by its id.
    same = [Exemplar(name, name, name, 0.0, 0.5) for name in "cab"]
    apart = np.eye(3, dtype=np.float32)
    assert [one.id for one in choose(same, 3, 0.5, 0.5, apart)] == ["a", "b", "c"]
    # A zero vector has no direction, so it is similar to nothing.
    empty = np.array([[1, 0], [0, 0], [0, 1]], np.float32)
    assert [one.id for one in choose(found, 3, 0.0, 0.5, empty)] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ((0, None, None), "k must be an integer, at least 1, got 0"),
        ((2.5, None, None), r"k must be an integer, at least 1, got 2\.5"),
        ((5, 1.5, None), r"max_similarity is a cosine, above -1 and up to 1, got 1\.5"),
        ((5, float("nan"), None), "max_similarity is a cosine, above -1 and up to 1, got nan"),
        ((5, None, float("nan")), "min_score must be a finite number, got nan"),
    ],
    ids=lambda value: str(value) if isinstance(value, tuple) else "",
)
def test_impossible_limits_are_refused(limits: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_limits(*limits)
