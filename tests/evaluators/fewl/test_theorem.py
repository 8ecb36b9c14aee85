"""Test what Theorem 3.4 promises of FEWL, and what it does not promise.

The theorem is about equation 5 with the best possible g, which is that of the density ratio. It
holds for answers that only lose what the references know on the way from the best answerer: h -> A*
-> A. The practical score is equation 4. It has a fixed g*, a similarity in place of the ratio, and
the weights inside g*. The theorem says nothing about that score, and tests below show where it
fails.
"""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from demur.evaluators.fewl.formula import DIVERGENCES, fewl, weights

Array = NDArray[np.float64]

NAMES = ["tv", "js", "kl"]


def xlogx(v: Array) -> Array:
    return np.where(v > 0, v * np.log(np.where(v > 0, v, 1)), 0)


# D_f(P || Q) is the sum of q f(p / q), with f(1) = 0.
F: dict[str, Callable[[Array], Array]] = {
    "tv": lambda v: np.abs(v - 1) / 2,
    "js": lambda v: xlogx(v) - (v + 1) * np.log((v + 1) / 2),
    "kl": xlogx,
}

# The g of equation 8's supremum at a density ratio v is f'(v).
OPTIMAL: dict[str, Callable[[Array], Array]] = {
    "tv": lambda v: np.sign(v - 1) / 2,
    "js": lambda v: np.log(2 * v / (1 + v)),
    "kl": lambda v: 1 + np.log(v),
}


def equation_5(name: str, joint: Array) -> float:
    """Return E_P[g] - E_Q[f*(g)] for the best g, over the joint distribution of two answers."""
    apart = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0, keepdims=True)
    possible = apart > 0
    p, q = joint[possible], apart[possible]
    with np.errstate(divide="ignore"):
        g = OPTIMAL[name](p / q)
    gained = np.sum(p[p > 0] * g[p > 0])
    return float(gained - np.sum(q * DIVERGENCES[name].f_star(g)))


def information(name: str, joint: Array) -> float:
    """Return I_f(A; h): the f-divergence of the joint distribution from its marginals' product."""
    apart = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0, keepdims=True)
    possible = apart > 0
    return float(np.sum(apart[possible] * F[name](joint[possible] / apart[possible])))


@st.composite
def channels(draw: st.DrawFn, inputs: int, outputs: int) -> Array:
    """Draw a transition matrix; its entries may be zero, as in a deterministic mapping."""
    parts = st.lists(st.integers(0, 5), min_size=outputs, max_size=outputs).filter(any)
    rows = np.array([draw(parts) for _ in range(inputs)], dtype=float)
    return rows / rows.sum(axis=1, keepdims=True)


@st.composite
def chains(draw: st.DrawFn) -> tuple[list[Array], Array]:
    """Draw joint distributions of A* and each reference, and a channel from A* to an answer."""
    size = draw(st.integers(2, 4))
    best = draw(channels(1, size))[0]
    references = [draw(channels(size, size)) for _ in range(draw(st.integers(1, 3)))]
    return [best[:, None] * to for to in references], draw(channels(size, size))


@settings(max_examples=20)
@given(chains(), st.sampled_from(NAMES))
def test_with_the_optimal_g_equation_5_is_the_mutual_information(
    chain: tuple[list[Array], Array], name: str
) -> None:
    for joint in chain[0]:
        assert equation_5(name, joint) == pytest.approx(information(name, joint), abs=1e-9)


@settings(max_examples=20)
@given(chains(), st.sampled_from(NAMES), st.data())
def test_the_best_answerer_scores_highest(
    chain: tuple[list[Array], Array], name: str, data: st.DataObject
) -> None:
    """Check Theorem 3.4 for each reference, hence for any constant weights (equation 6)."""
    joints, worse = chain
    lambdas = weights(data.draw(st.lists(st.floats(-1, 1), min_size=3, max_size=3))[: len(joints)])
    best = [equation_5(name, joint) for joint in joints]
    other = [equation_5(name, worse.T @ joint) for joint in joints]
    assert all(b >= o - 1e-9 for b, o in zip(best, other, strict=True))
    assert lambdas @ best >= lambdas @ other - 1e-9


# -- what does not carry over to equation 4 ----------------------------------------------------

FIVE = np.zeros(5)  # Five references have equal expertise.
PAPER, MEAN_ONE = weights(FIVE), weights(FIVE, normalization="mean_one")


def score(similarity: float, penalty: float, lambdas: Array, name: str = "tv") -> float:
    return float(fewl(np.full(5, similarity), lambdas, np.full(5, penalty), name))


@pytest.mark.parametrize(
    ("name", "penalty"), [("tv", 0.3), ("js", 0.3), ("kl", 0.5)], ids=lambda value: str(value)
)
def test_with_weights_that_sum_to_one_junk_beats_the_right_answer(
    name: str, penalty: float
) -> None:
    """Show that junk wins where the weights divide the truthfulness but not the penalty.

    The right answer has a similarity of 0.9 to every reference answer, and junk has none. With
    weights that sum to one, the truthfulness is divided by five and the penalty stays whole: 0.18
    against 0.3. With one reference, or with weights of mean one, the right answer scores higher.
    """
    right, junk = (0.9, penalty), (0.0, 0.0)
    assert score(*right, PAPER, name) < score(*junk, PAPER, name)
    assert score(*right, MEAN_ONE, name) > score(*junk, MEAN_ONE, name)
    one = weights([0.0])
    assert fewl([0.9], one, [penalty], name) > fewl([0.0], one, [0.0], name)
