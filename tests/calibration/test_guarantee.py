"""Test calibrated thresholds: their value, when there is none, and whether the guarantee holds."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import binom

from demur import Threshold
from demur.calibration import CalibrationError, calibrate
from demur.calibration.binomial import least_samples

Sample = tuple[list[float], list[bool]]
SHARES = st.floats(0.02, 0.95)


@st.composite
def samples(draw: st.DrawFn) -> Sample:
    """Draw scores, with ties or without, and labels."""
    score = draw(
        st.sampled_from(
            [st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0]), st.floats(-3, 3), st.integers(0, 40)]
        )
    )
    drawn = draw(st.lists(st.tuples(score, st.booleans()), min_size=1, max_size=80))
    return [float(one) for one, _ in drawn], [label for _, label in drawn]


def tried(sample: Sample, target: float, confidence: float) -> Threshold | None:
    try:
        return calibrate(*sample, target=target, confidence=confidence)
    except CalibrationError:
        return None


def in_words(sample: Sample, target: float, confidence: float) -> float | None:
    """Return Learn then Test's threshold by its definition: go down until no test rejects."""
    scores, labels = sample
    wrong = [score for score, label in zip(scores, labels, strict=True) if label]
    chosen = None
    for candidate in sorted(set(scores), reverse=True):
        passing = sum(score >= candidate for score in wrong)
        p = binom.cdf(passing, len(wrong), target)
        assume(abs(p - (1 - confidence)) > 1e-9)  # Otherwise, rounding decides.
        if p > 1 - confidence:
            break
        chosen = candidate
    return chosen


@given(samples(), SHARES, SHARES)
def test_it_is_learn_then_test_and_says_what_it_was_chosen_from(
    sample: Sample, target: float, confidence: float
) -> None:
    found = tried(sample, target, confidence)
    assert (None if found is None else found.value) == in_words(sample, target, confidence)
    if found is None:
        return
    scores, labels = sample
    passing = [label for score, label in zip(scores, labels, strict=True) if score >= found.value]
    assert found.method == "learn-then-test"
    assert (found.target, found.confidence, found.percentile) == (target, confidence, None)
    assert (found.samples, found.hallucinated) == (len(scores), sum(labels))
    assert (found.passed, found.passed_hallucinated) == (len(passing), sum(passing))
    assert found.passed > 0
    assert Threshold.model_validate_json(found.model_dump_json()) == found


# -- when there is no threshold --------------------------------------------------------------------


def _refused(scores: Any, labels: Any, target: Any = 0.05, confidence: Any = 0.9) -> str:
    with pytest.raises(CalibrationError) as refused:
        calibrate(scores, labels, target=target, confidence=confidence)
    return str(refused.value)


def test_too_few_samples_are_told_how_many_are_needed() -> None:
    scores = [0.1] * 44 + [0.9] * 500
    said = _refused(scores, [True] * 44 + [False] * 500)
    assert "44 of the 544 answers are hallucinated" in said
    assert "at least 45 are needed" in said
    scores, labels = [0.1] * 45 + [0.9] * 500, [True] * 45 + [False] * 500
    assert calibrate(scores, labels, target=0.05, confidence=0.9).value == 0.9
    assert "0 of the 3 answers" in _refused([0.1, 0.2, 0.3], [False] * 3)


def test_an_evaluator_that_gives_hallucinations_its_highest_score_is_told() -> None:
    scores = [1.0] * 10 + [0.2] * 90 + [1.0] * 50
    labels = [True] * 100 + [False] * 50
    said = _refused(scores, labels)
    assert "10 of the 100 hallucinated answers have the highest score there is, 1," in said
    assert "at most 1 may pass" in said
    (lowest,) = re.findall(r"lowest target that can be met with these samples is ([\d.]+):", said)
    found = calibrate(scores, labels, target=float(lowest), confidence=0.9)
    assert (found.value, found.passed_hallucinated) == (1.0, 10)
    # It is the lowest target to three digits.
    assert "no score can be" in _refused(scores, labels, target=float(lowest) - 0.0011)


@given(samples(), SHARES, SHARES)
def test_the_target_that_an_error_names_can_be_met(
    sample: Sample, target: float, confidence: float
) -> None:
    assume(tried(sample, target, confidence) is None)
    said = _refused(*sample, target, confidence)
    if named := re.search(r"with these samples is ([\d.e-]+):", said):
        found = calibrate(*sample, target=float(named[1]), confidence=confidence)
        assert found.passed > 0
    elif "no score can be" in said:
        assert "cannot tell them" in said
    else:
        (needed,) = re.findall(r"at least ([\d,]+) are", said)
        assert sum(sample[1]) < int(needed.replace(",", "")) == least_samples(target, confidence)


def test_where_all_have_the_highest_score_no_target_will_do() -> None:
    said = _refused([1.0] * 60, [True] * 60)
    assert "This evaluator cannot tell them from the others" in said


@pytest.mark.parametrize("odd", [0, 1, float("nan"), "0.1", True])
def test_shares_are_between_zero_and_one(odd: Any) -> None:
    assert f"target: expected a number above 0 and below 1, such as 0.05, got {odd!r}" in _refused(
        [0.1], [True], target=odd
    )
    assert "confidence: expected" in _refused([0.1], [True], confidence=odd)


# -- a simulation ----------------------------------------------------------------------------------

DRAWS = 1000
_FLUKE = 1e-6
"""The probability below which a count speaks against the method.

The seeds are fixed: a test that passes once always passes.
"""

Draw = Callable[[np.random.Generator, int], NDArray[np.float64]]
Risk = Callable[[float], float]
GRID = np.array([0.0, 0.2, 0.4, 0.6, 0.8, 1.0])
WEIGHTS = np.array([0.5, 0.2, 0.15, 0.08, 0.05, 0.02])
WORLDS: dict[str, tuple[Draw, Risk]] = {
    "continuous": (lambda draw, n: draw.random(n), lambda t: 1 - t),
    "skewed to the top": (lambda draw, n: draw.random(n) ** 0.05, lambda t: 1 - t**20),
    "ties": (
        lambda draw, n: draw.choice(GRID, n, p=WEIGHTS),
        lambda t: float(np.sum(WEIGHTS, where=t <= GRID)),
    ),
    "ties at the target": (
        lambda draw, n: draw.choice([0.0, 0.5, 1.0], n, p=[0.9, 0.05, 0.05]),
        lambda t: 0.05 if t > 0.5 else 0.1 if t > 0 else 1.0,
    ),
}


def exceeding(
    world: str,
    hallucinated: int | None,
    others: int,
    target: float,
    confidence: float,
) -> int:
    """Return in how many of the drawn samples the threshold lets more than the target pass.

    If `hallucinated` is None, each of the `others` is hallucinated with a probability of 0.4.
    """
    draw, (scores_of, risk) = np.random.default_rng(9), WORLDS[world]
    count = 0
    for _ in range(DRAWS):
        wrong = draw.binomial(others, 0.4) if hallucinated is None else hallucinated
        right = others - wrong if hallucinated is None else others
        scores = np.concatenate([scores_of(draw, wrong), draw.random(right)])
        labels = np.arange(wrong + right) < wrong
        try:
            chosen = calibrate(scores, labels, target=target, confidence=confidence).value
        except CalibrationError:
            continue  # There is no threshold, so nothing passes.
        count += risk(chosen) > target + 1e-12
    return count


@pytest.mark.slow
@pytest.mark.parametrize(
    ("world", "hallucinated", "others", "target", "confidence"),
    [
        *((world, 60, 100, 0.1, 0.9) for world in WORLDS),
        # This is just enough.
        pytest.param("continuous", 22, 30, 0.1, 0.9, marks=pytest.mark.smoke),
        ("continuous", None, 150, 0.1, 0.9),
        ("ties at the target", 3, 5, 0.5, 0.8),
        ("ties at the target", 200, 20, 0.05, 0.75),
    ],
)
def test_of_a_thousand_samples_no_more_miss_the_target_than_the_confidence_allows(
    world: str, hallucinated: int | None, others: int, target: float, confidence: float
) -> None:
    most = binom.isf(_FLUKE, DRAWS, 1 - confidence)
    assert exceeding(world, hallucinated, others, target, confidence) <= most
