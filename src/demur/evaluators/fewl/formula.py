"""Compute FEWL's formulas under the paper's names: r_i, lambda_i, the laziness penalty, f* and g*.

The numbers of equations and Algorithm 1 are those of version 1 of the paper (arXiv 2402.10412). Its
equation 4, the score, is equation 1 of version 2. N is the number of reference answers h_i(x), R
the number of wrong (IW) and corrected (CO) answers, and K the number of neighbours. Similarities
are in [0, 1]. Arrays may have leading axes, one for each set of answers to be scored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
DivergenceName = Literal["tv", "js", "kl"]
Normalization = Literal["paper", "mean_one"]

_TOLERANCE = 1e-9  # how far outside its range rounding may put a value


@dataclass(frozen=True)
class Divergence:
    """Hold the functions by which an f-divergence joins truthfulness and penalty (equation 8)."""

    g_star: Callable[[ArrayLike], Floats]
    """An increasing function from the real numbers into the domain of f*."""
    f_star: Callable[[ArrayLike], Floats]
    """The Fenchel dual of f, an increasing function on its domain."""


def _tv_f_star(u: ArrayLike) -> Floats:
    return _within(u, "f* of total variation", -0.5, 0.5)


def _js_f_star(u: ArrayLike) -> Floats:
    values = _array(u, "f* of Jensen-Shannon")
    if np.any(values >= np.log(2)):
        raise ValueError(f"f* of Jensen-Shannon: expected values below log 2, got {values.max():g}")
    return np.asarray(-np.log1p(-np.expm1(values)))  # -log(2 - e^u), exact near 0


DIVERGENCES: Mapping[DivergenceName, Divergence] = MappingProxyType(
    {
        "tv": Divergence(
            g_star=lambda v: np.asarray(np.tanh(_array(v, "g*")) / 2),
            f_star=_tv_f_star,
        ),
        "js": Divergence(
            g_star=lambda v: np.asarray(np.log(2) - np.logaddexp(0, -_array(v, "g*"))),
            f_star=_js_f_star,
        ),
        "kl": Divergence(
            g_star=lambda v: _array(v, "g*"),
            f_star=lambda u: np.asarray(np.exp(_array(u, "f*") - 1)),
        ),
    }
)
"""Total variation (section 2.3), Jensen-Shannon and KL (version 2, section D.11)."""


def expertise(corrected: ArrayLike, wrong: ArrayLike) -> Floats:
    """Return how much better each reference agrees with corrected answers than with wrong answers.

    r_i = max_k Sim(h_i, CO_k) - max_k Sim(h_i, IW_k): equation 2, Algorithm 1 step 2.

    Args:
        corrected: Sim(h_i, CO_k), of shape (N, R).
        wrong: Sim(h_i, IW_k), of shape (N, R').

    Returns:
        r_i in [-1, 1], of shape (N,).

    Raises:
        ValueError: There is no answer to compare with, or the shapes or values do not fit.
    """
    right = _similarities(corrected, "corrected", axes=("references", "corrected answers"))
    false = _similarities(wrong, "wrong", axes=("references", "wrong answers"))
    if right.ndim != 2 or false.ndim != 2 or len(right) != len(false):
        raise ValueError(
            "expected two tables with one row per reference, got the shapes "
            f"{right.shape} (corrected) and {false.shape} (wrong)"
        )
    return np.asarray(right.max(axis=1) - false.max(axis=1))


def weights(
    expertise: ArrayLike, temperature: float = 1.0, normalization: Normalization = "paper"
) -> Floats:
    """Return the weights lambda_i, a softmax over the expertise (Algorithm 1, step 2).

    Equal expertise gives uniform weights.

    Args:
        expertise: r_i, of shape (N,).
        temperature: The number by which r_i is divided: 1 in Algorithm 1, "temperatured" in version
            2, section D.5. A small temperature gives nearly all the weight to the best reference,
            and a large one makes the weights uniform.
        normalization: "paper": the weights sum to 1. N references then divide the truthfulness by
            N, but not the penalty. "mean_one": N times these weights, so that both keep their
            scale.

    Returns:
        lambda_i, of shape (N,).

    Raises:
        ValueError: There is no reference, the temperature is not a positive number, or the
            normalization is unknown.
    """
    scores = _one_per_reference(expertise)
    if not (np.isfinite(temperature) and temperature > 0):
        raise ValueError(f"temperature: expected a positive number, got {temperature}")
    if normalization not in ("paper", "mean_one"):
        raise ValueError(f"normalization: expected 'paper' or 'mean_one', got {normalization!r}")
    with np.errstate(over="ignore"):  # a hopeless reference's exponent may reach -inf: weight 0
        powers = np.exp((scores - scores.max()) / temperature)
    shares = powers / powers.sum()
    return np.asarray(shares * scores.size if normalization == "mean_one" else shares)


def single_best(expertise: ArrayLike) -> int:
    """Return the index of the reference with the highest expertise (version 2, section D.10).

    Of equal references, the first counts. It is then scored as if it were alone: N = 1 and lambda =
    1, whatever the normalization.
    """
    return int(np.argmax(_one_per_reference(expertise)))


def truthfulness(similarities: ArrayLike, weights: ArrayLike) -> Floats:
    """Return each reference's term lambda_i Sim(y, h_i(x)); the sum of the terms is equation 1.

    Args:
        similarities: Sim(y, h_i(x)), of shape (..., N).
        weights: lambda_i, of shape (N,), none below 0.

    Returns:
        The terms, of shape (..., N).

    Raises:
        ValueError: Shapes or values do not fit.
    """
    known = _similarities(similarities, "similarities", axes=("references",))
    shares = _finite(weights, "weights")
    if shares.shape != known.shape[-1:]:
        raise ValueError(
            f"weights: expected one per reference, hence shape {known.shape[-1:]}, "
            f"got {shares.shape}"
        )
    if np.any(shares < 0):
        raise ValueError(f"weights: expected none below 0, got {shares.min():g}")
    return np.asarray(shares * known)


def laziness(neighbours: ArrayLike) -> Floats:
    """Return how much the answer resembles a reference's answers to other questions (equation 3).

    Args:
        neighbours: Sim(y, h_i(x_KNN-k)), of shape (..., N, K) with K of at least 1.

    Returns:
        The mean over the neighbours, in [0, 1], of shape (..., N).

    Raises:
        ValueError: There is no neighbour, so that there is no penalty, or values do not fit.
    """
    return np.asarray(
        _similarities(neighbours, "neighbours", axes=("references", "neighbours")).mean(axis=-1)
    )


def fewl(
    similarities: ArrayLike,
    weights: ArrayLike,
    penalties: ArrayLike | None,
    divergence: DivergenceName = "tv",
) -> Floats:
    """Return the score of equation 4: the mean over i of g*(lambda_i Sim_i) - f*(g*(penalty_i)).

    Higher is better. The range depends on the divergence and the weights. With total variation, it
    is within (-1/2, 1/2).

    Args:
        similarities: Sim(y, h_i(x)), of shape (..., N).
        weights: lambda_i, of shape (N,); see `weights`.
        penalties: The result of `laziness`, of the same shape as the similarities. None drops the
            f* term. Zeros would not drop it, since f*(g*(0)) is 1/e with KL.
        divergence: The pair of f* and g*: "tv", "js" or "kl".

    Returns:
        The scores, of shape (...).

    Raises:
        ValueError: Shapes or values do not fit; the message says which.
    """
    if divergence not in DIVERGENCES:
        raise ValueError(
            f"divergence: expected one of {', '.join(map(repr, DIVERGENCES))}, got {divergence!r}"
        )
    g_star, f_star = DIVERGENCES[divergence].g_star, DIVERGENCES[divergence].f_star
    terms = g_star(truthfulness(similarities, weights))
    if penalties is not None:
        lazy = _similarities(penalties, "penalties", axes=("references",))
        if lazy.shape != terms.shape:
            raise ValueError(
                f"penalties: expected the shape of the similarities, {terms.shape}, "
                f"got {lazy.shape}"
            )
        terms = terms - f_star(g_star(lazy))
    return np.asarray(terms.mean(axis=-1))


def _one_per_reference(expertise: ArrayLike) -> Floats:
    numbers = _finite(expertise, "expertise")
    if numbers.ndim != 1 or not numbers.size:
        raise ValueError(
            f"expertise: expected one number per reference, at least one, got shape {numbers.shape}"
        )
    return numbers


def _similarities(values: ArrayLike, name: str, axes: tuple[str, ...]) -> Floats:
    """Return an array of values in [0, 1] whose last axes are `axes`, none of them empty."""
    numbers = _within(_finite(values, name), name, 0, 1)
    if numbers.ndim < len(axes) or 0 in numbers.shape[-len(axes) :]:
        raise ValueError(
            f"{name}: expected the axes (..., {', '.join(axes)}) with at least one entry each, "
            f"got shape {numbers.shape}"
        )
    return numbers


def _finite(values: ArrayLike, name: str) -> Floats:
    numbers = _array(values, name)
    if np.isinf(numbers).any():
        raise ValueError(f"{name}: expected finite numbers, got an infinite one")
    return numbers


def _within(values: ArrayLike, name: str, low: float, high: float) -> Floats:
    numbers = _array(values, name)
    outside = numbers[(numbers < low - _TOLERANCE) | (numbers > high + _TOLERANCE)]
    if outside.size:
        raise ValueError(f"{name}: expected values in [{low:g}, {high:g}], got {outside[0]:g}")
    return numbers


def _array(values: ArrayLike, name: str) -> Floats:
    try:
        numbers = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name}: expected an array of numbers: {error}") from error
    if np.isnan(numbers).any():
        raise ValueError(f"{name}: expected numbers, got a missing one (NaN or None)")
    return numbers
