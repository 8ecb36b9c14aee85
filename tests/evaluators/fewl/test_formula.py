from collections.abc import Callable
from math import exp, log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from numpy.typing import NDArray

from demur.evaluators.fewl.formula import (
    DIVERGENCES,
    expertise,
    fewl,
    laziness,
    single_best,
    truthfulness,
    weights,
)

Array = NDArray[np.float64]

NAMES = ["tv", "js", "kl"]
EXACT = {"rtol": 0, "atol": 1e-12}

# One question by hand: three references, two pairs, two neighbours, one answer.
CORRECTED = [[0.9, 0.4], [0.5, 0.6], [0.2, 0.3]]
WRONG = [[0.1, 0.2], [0.6, 0.3], [0.7, 0.1]]
R = [0.9 - 0.2, 0.6 - 0.6, 0.3 - 0.7]
SIMILARITIES = [0.8, 0.5, 0.1]
NEIGHBOURS = [[0.2, 0.4], [0.1, 0.1], [0.6, 0.0]]
PENALTIES = [0.3, 0.1, 0.3]
TOTAL = exp(0.7) + exp(0.0) + exp(-0.4)
OURS = [exp(0.7) / TOTAL, exp(0.0) / TOTAL, exp(-0.4) / TOTAL]

# -- known values ------------------------------------------------------------------------------


def test_expertise_is_the_best_agreement_with_corrected_less_that_with_wrong_answers() -> None:
    assert_allclose(expertise(CORRECTED, WRONG), R, **EXACT)
    assert_allclose(expertise([[0.4, 0.9, 0.1]], [[0.3]]), [0.6], **EXACT)


def test_weights_are_the_softmax_of_expertise() -> None:
    assert_allclose(weights(R), OURS, **EXACT)
    assert_allclose(weights(R, normalization="mean_one"), [3 * share for share in OURS], **EXACT)


def test_the_temperature_divides_the_expertise() -> None:
    total = exp(0.7 / 0.1) + exp(0.0) + exp(-0.4 / 0.1)
    expected = [exp(7.0) / total, 1 / total, exp(-4.0) / total]
    assert_allclose(weights(R, temperature=0.1), expected, **EXACT)


def test_the_single_best_reference_is_the_first_with_the_highest_expertise() -> None:
    assert single_best([0.1, 0.3, 0.3, 0.2]) == 1


def test_truthfulness_weighs_each_similarity() -> None:
    assert_allclose(
        truthfulness(SIMILARITIES, [0.5, 0.3, 0.2]), [0.8 * 0.5, 0.5 * 0.3, 0.1 * 0.2], **EXACT
    )


def test_laziness_is_the_mean_over_neighbours() -> None:
    assert_allclose(laziness(NEIGHBOURS), PENALTIES, **EXACT)


def test_a_penalty_of_zero_is_not_the_same_as_none_with_kl() -> None:
    without = fewl([0.5], [1.0], None, "kl")
    assert_allclose(without, 0.5, **EXACT)
    assert_allclose(fewl([0.5], [1.0], [0.0], "kl"), 0.5 - exp(-1), **EXACT)
    for name in ("tv", "js"):
        assert_allclose(fewl([0.5], [1.0], [0.0], name), fewl([0.5], [1.0], None, name), **EXACT)


# -- properties --------------------------------------------------------------------------------

SHARES = st.floats(0, 1)
SIGNED = st.floats(-1, 1)


@st.composite
def questions(draw: st.DrawFn) -> tuple[Array, Array, Array]:
    """Draw expertise (N,), similarities (A, N) and neighbours (A, N, K)."""
    references, answers = draw(st.integers(1, 5)), draw(st.integers(1, 3))
    kinds = draw(st.integers(1, 4))

    def table(element: st.SearchStrategy[float], *shape: int) -> Array:
        size = int(np.prod(shape))
        return np.reshape(draw(st.lists(element, min_size=size, max_size=size)), shape)

    return (
        table(SIGNED, references),
        table(SHARES, answers, references),
        table(SHARES, answers, references, kinds),
    )


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=6), st.floats(1e-3, 1e3))
def test_weights_sum_to_one_or_to_their_number(scores: list[float], temperature: float) -> None:
    assert_allclose(weights(scores, temperature).sum(), 1, **EXACT)
    assert_allclose(weights(scores, temperature, "mean_one").sum(), len(scores), **EXACT)


@pytest.mark.parametrize(
    ("scores", "temperature"), [([1e308, -1e308, 0.0], 1.0), ([1.0, 0.999, -1.0], 1e-300)]
)
def test_extreme_expertise_leaves_the_best_alone(scores: list[float], temperature: float) -> None:
    assert weights(scores, temperature).tolist() == [1.0, 0.0, 0.0]


@given(questions(), st.sampled_from(NAMES), st.data())
def test_the_order_of_references_does_not_matter(
    question: tuple[Array, Array, Array], name: str, data: st.DataObject
) -> None:
    scores, similarities, neighbours = question
    order = data.draw(st.permutations(range(len(scores))))
    straight = fewl(similarities, weights(scores), laziness(neighbours), name)
    shuffled = fewl(
        similarities[:, order], weights(scores[order]), laziness(neighbours[:, order]), name
    )
    assert_allclose(shuffled, straight, **EXACT)


@given(questions(), st.sampled_from(NAMES), st.data())
def test_a_closer_answer_never_scores_lower_and_a_closer_neighbour_never_higher(
    question: tuple[Array, Array, Array], name: str, data: st.DataObject
) -> None:
    scores, similarities, neighbours = question
    i = data.draw(st.integers(0, len(scores) - 1))
    closer, lazier = similarities.copy(), neighbours.copy()
    closer[:, i] = np.maximum(closer[:, i], data.draw(SHARES))
    lazier[:, i, 0] = np.maximum(lazier[:, i, 0], data.draw(SHARES))
    before = fewl(similarities, weights(scores), laziness(neighbours), name)
    assert np.all(fewl(closer, weights(scores), laziness(neighbours), name) >= before - 1e-15)
    assert np.all(fewl(similarities, weights(scores), laziness(lazier), name) <= before + 1e-15)


@given(questions(), st.sampled_from(NAMES))
def test_scores_are_finite_and_those_of_total_variation_bounded(
    question: tuple[Array, Array, Array], name: str
) -> None:
    scores, similarities, neighbours = question
    found = fewl(
        similarities, weights(scores, normalization="mean_one"), laziness(neighbours), name
    )
    assert np.isfinite(found).all()
    if name == "tv":
        assert np.all(np.abs(found) < 0.5)


# -- refusals ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: expertise(np.empty((2, 0)), WRONG[:2]), r"corrected: .*at least one entry"),
        (lambda: expertise(CORRECTED, WRONG[:2]), "one row per reference"),
        (lambda: expertise([[1.1]], [[0.1]]), r"corrected: expected values in \[0, 1\], got 1.1"),
        (lambda: weights([0.1], temperature=0), "temperature: expected a positive number"),
        (lambda: weights([0.1], normalization="sum"), "'paper' or 'mean_one'"),
        (lambda: fewl([0.5, None], [0.5, 0.5], None), "similarities: .*missing"),
        (lambda: fewl([0.5], [0.5, 0.5], None), r"weights: .*shape \(1,\), got \(2,\)"),
        (lambda: fewl([0.5], [1], None, "hellinger"), "'tv', 'js', 'kl'"),
        (lambda: DIVERGENCES["js"].f_star(log(2)), "below log 2"),
        (lambda: DIVERGENCES["tv"].f_star(0.6), "total variation"),
    ],
)
def test_bad_input_is_refused_with_the_reason(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
