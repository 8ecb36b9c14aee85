"""Test that the guarantee is about all hallucinated answers that a guard lets pass, each once."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from demur import ClaimLabel, Evaluation, Sample
from demur.calibration import (
    CalibrationError,
    RepeatsWarning,
    answer_key,
    best_f1,
    calibrate,
    operating_points,
    passes_up_to,
    percentile,
    reliability,
    roc,
)
from demur.evaluators.refchecker.aggregation import aggregate

SILENT = Evaluation(name="checker", label="Abstain")
OnAbstain = Literal["pass", "fail"]


def scored(score: float) -> Evaluation:
    return Evaluation(name="checker", score=score)


def judged(scores: Any) -> list[Evaluation]:
    return [scored(float(one)) for one in scores]


# -- answers that state nothing to check -----------------------------------------------------------

GRID = st.sampled_from([0.0, 0.25, 0.5, 1.0])
FOUND = st.lists(
    st.tuples(st.one_of(st.none(), GRID), st.booleans()), min_size=1, max_size=40
).filter(lambda drawn: any(score is not None for score, _ in drawn))
"""Pairs of a score, or None if the answer states nothing, and whether it is hallucinated."""


def passes(score: float | None, threshold: float, on_abstain: OnAbstain) -> bool:
    """Return whether a guard lets the answer pass."""
    return on_abstain == "pass" if score is None else score >= threshold


@given(FOUND, st.sampled_from(["pass", "fail"]), st.floats(0.1, 0.9), st.floats(0.1, 0.9))
def test_a_threshold_is_about_all_that_a_guard_lets_pass(
    drawn: list[tuple[float | None, bool]], on_abstain: OnAbstain, target: float, sure: float
) -> None:
    evaluations = [SILENT if score is None else scored(score) for score, _ in drawn]
    labels = [label for _, label in drawn]
    ways: list[Callable[[], Any]] = [
        lambda: calibrate(
            evaluations, labels, target=target, confidence=sure, on_abstain=on_abstain
        ),
        lambda: best_f1(evaluations, labels, on_abstain=on_abstain),
        lambda: percentile(evaluations, 60, on_abstain=on_abstain),
    ]
    for choose in ways:
        try:
            found = choose()
        except CalibrationError:
            continue
        let = [label for score, label in drawn if passes(score, found.value, on_abstain)]
        assert found.on_abstain == on_abstain
        assert (found.samples, found.passed) == (len(drawn), len(let))
        if found.method == "percentile":
            assert (len(drawn) - len(let)) * 100 <= 60 * len(drawn)
        else:
            assert (found.hallucinated, found.passed_hallucinated) == (sum(labels), sum(let))
        if found.method == "learn-then-test":
            assert binom.cdf(sum(let), sum(labels), target) <= 1 - sure + 1e-9


@given(FOUND, st.sampled_from(["pass", "fail"]))
def test_the_roc_curve_goes_from_none_to_all_of_them(
    drawn: list[tuple[float | None, bool]], on_abstain: OnAbstain
) -> None:
    evaluations = [SILENT if score is None else scored(score) for score, _ in drawn]
    labels = [label for _, label in drawn]
    if all(labels) or not any(labels):
        return
    found = roc(evaluations, labels, on_abstain=on_abstain)
    end = math.inf if on_abstain == "pass" else -math.inf
    assert (end in found.thresholds) is any(score is None for score, _ in drawn)
    points = operating_points(evaluations, labels, on_abstain=on_abstain)
    inner = np.isfinite(found.thresholds)
    assert found.true_positive_rate[inner].tolist() == [point.recall for point in points]
    for rate in (found.true_positive_rate, found.false_positive_rate):
        assert (rate[0], rate[-1]) == (0, 1)
        assert np.all(np.diff(rate) >= 0)
    wrong, right = (
        [end if s is None else s for s, label in drawn if label is is_] for is_ in (True, False)
    )
    wins = sum(1.0 if bad < good else 0.5 * (bad == good) for bad in wrong for good in right)
    assert found.auc == pytest.approx(wins / (len(wrong) * len(right)))


def test_reliability_is_of_scores() -> None:
    bins = reliability([scored(0.5), SILENT, scored(0.5)], [True, True, False]).bins
    assert [one.right.total for one in bins] == [2]
    with pytest.raises(CalibrationError, match="none of the 1 answers has a score"):
        reliability([SILENT], [True])


def test_where_too_many_state_nothing_it_is_said_what_to_do() -> None:
    found = [*judged(np.linspace(0, 0.5, 100)), *[SILENT] * 50, *judged(np.linspace(0.3, 1, 200))]
    labels = [True] * 150 + [False] * 200
    with pytest.raises(CalibrationError) as refused:
        calibrate(found, labels, target=0.05, confidence=0.9)
    said = str(refused.value)
    assert "50 of the 150 hallucinated answers state nothing to check" in said
    assert "at most 3 may pass" in said
    assert 'Guard(..., on_abstain="fail")' in said
    assert "look at their labels" in said
    chosen = calibrate(found, labels, target=0.05, confidence=0.9, on_abstain="fail")
    assert chosen.hallucinated == 150
    # The target that the message names can be met.
    assert calibrate(found, labels, target=0.388, confidence=0.9).passed_hallucinated >= 50


def test_a_percentile_cannot_undo_what_fails_anyway() -> None:
    found = [*judged([0.1, 0.9]), SILENT, SILENT]
    with pytest.raises(
        CalibrationError, match="2 of the 4 answers state nothing to check and fail"
    ):
        percentile(found, 40, on_abstain="fail")
    assert percentile(found, 50, on_abstain="fail").passed == 2
    assert percentile(found, 40).passed == 3


@pytest.mark.parametrize(
    ("found", "most"),
    [
        (scored(0.4), 0.4),
        (SILENT, math.inf),
        # Nine claims of ten hold; the one without a label does not matter at a threshold of 0.9.
        (Evaluation(name="x", passed=True, details={"score_bounds": [0.9, 1]}), 0.9),
        (Evaluation(name="x", error="-", details={"score_bounds": [0.9, 1]}), 0.9),
        (Evaluation(name="x", error="-", details={"score_bounds": "all"}), None),
        (Evaluation(name="x", error="-"), None),
        (Evaluation(name="x", passed=True), None),
    ],
)
def test_the_highest_threshold_that_an_answer_passes(found: Evaluation, most: float | None) -> None:
    assert passes_up_to(found) == most


@given(st.lists(st.sampled_from([*ClaimLabel, None]), min_size=1, max_size=8), st.floats(0, 1))
def test_that_is_what_refchecker_lets_pass_with_labels_missing(
    labels: list[ClaimLabel | None], threshold: float
) -> None:
    undecided = aggregate(labels, "soft", None)  # The threshold is not chosen yet.
    found = Evaluation(name="x", error="-", details={"score_bounds": list(undecided.share.bounds)})
    most = passes_up_to(found)
    assert most is not None
    assert (aggregate(labels, "soft", threshold).passed is True) is (most >= threshold)


def test_what_passes_without_a_score_makes_no_threshold() -> None:
    with pytest.raises(
        CalibrationError, match="number 2 of the evaluations passed without a score"
    ):
        percentile([scored(0.5), Evaluation(name="checker", passed=True)], 10)


# -- repeats ---------------------------------------------------------------------------------------


def test_the_same_is_the_same_but_for_white_space() -> None:
    key = answer_key("How  long?", "It is\n\t8,849 m. ")
    assert key == answer_key(" How long?", "It is 8,849\u00a0m.")
    others = [
        ("How tall?", "It is 8,849 m."),
        (None, "It is 8,849 m."),
        ("How long?", "It is 8 m."),
    ]
    assert len({key, *(answer_key(*one) for one in others)}) == 4
    assert answer_key("How long? It", "is 8,849 m.") != key
    assert answer_key("Why?", " \n") is None


def _once(scores: Sequence[float], labels: Sequence[bool], keys: Sequence[str | None]) -> Any:
    with pytest.warns(RepeatsWarning) as told:
        found = calibrate(scores, labels, target=0.4, confidence=0.5, samples=keys)
    return found, str(told[0].message), told[0].filename


def test_repeats_are_counted_once_with_a_warning() -> None:
    found, said, where = _once([0.1, 0.1, 0.9, 0.2], [True, True, False, True], [*"aabc"])
    assert (found.samples, found.hallucinated) == (3, 2)
    assert said.startswith("1 of the 4 answers repeat others")
    assert where == __file__


def test_of_repeats_with_different_scores_none_looks_better_than_it_was() -> None:
    # The hallucinated repeats count as 0.7, not as 0.1; the right ones as 0.6, not as 0.9.
    found, _, _ = _once([0.1, 0.7, 0.5, 0.9, 0.6, 1.0], [True] * 3 + [False] * 3, [*"aabccd"])
    assert (found.value, found.passed, found.samples, found.hallucinated) == (1.0, 1, 4, 2)
    with pytest.warns(RepeatsWarning):
        assert percentile([0.9, 0.1, 0.5], 0, samples=[*"aab"]).value == 0.1


def test_samples_and_mappings_tell_repeats_too() -> None:
    samples: list[Any] = [
        Sample(question="Q", answer="A  b", contexts=["one"]),  # type: ignore[arg-type]
        {"question": "Q", "answer": "A b"},
        {"question": "R", "answer": "A b"},
    ]
    with pytest.warns(RepeatsWarning):
        assert percentile([0.5, 0.4, 0.6], 0, samples=samples).samples == 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert percentile([0.5, 0.4, 0.6], 0, samples=[None, None, "x"]).samples == 3


def test_labels_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(CalibrationError, match="numbers 2 and 4 are the same answer to the same"):
        best_f1([0.1, 0.2, 0.3, 0.4], [True, True, False, False], samples=[*"abcb"])
    with pytest.raises(CalibrationError, match="one sample for each score, got 2 scores and 1"):
        percentile([0.1, 0.2], 5, samples=["a"])


def test_too_few_say_how_many_repeats_there_were() -> None:
    with pytest.warns(RepeatsWarning), pytest.raises(CalibrationError) as refused:
        calibrate([0.1] * 100, [True] * 100, target=0.1, confidence=0.9, samples=[*"abcde"] * 20)
    assert "5 of the 5 answers are hallucinated (95 repeats are counted once)" in str(refused.value)


# -- simulations -----------------------------------------------------------------------------------

DRAWS = 300
_FLUKE = 1e-6
"""The probability below which a count speaks against the method, as in test_guarantee.py."""
TARGET, CONFIDENCE = 0.1, 0.9
MOST = binom.isf(_FLUKE, DRAWS, 1 - CONFIDENCE)
"""The number of draws in which the target may be missed."""

World = Callable[[np.random.Generator], tuple[list[Any], list[str | None]]]
"""A function that draws scores or evaluations of hallucinated answers, with the keys of repeats."""


def missed(world: World, risk: Callable[[float], float], **options: Any) -> tuple[int, int]:
    """Return in how many draws more than the target passes, and how many draws give a threshold."""
    draw, count, chosen = np.random.default_rng(24), 0, 0
    others = [float(one) for one in np.linspace(0, 1, 40)]
    as_evaluations = judged(others)
    for _ in range(DRAWS):
        found, keys = world(draw)
        right: list[Any] = as_evaluations if isinstance(found[0], Evaluation) else others
        labels = [True] * len(found) + [False] * len(right)
        samples = [*keys, *[None] * len(right)] if options.get("samples", True) else None
        given = {"target": TARGET, "confidence": CONFIDENCE, **options, "samples": samples}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RepeatsWarning)
            try:
                value = calibrate([*found, *right], labels, **given).value
            except CalibrationError:
                continue  # There is no threshold, so nothing passes.
        chosen += 1
        count += risk(value) > TARGET + 1e-12
    return count, chosen


def abstaining(share: float) -> World:
    def world(draw: np.random.Generator) -> tuple[list[Any], list[str | None]]:
        silent = draw.random(120) < share
        return [SILENT if one else scored(float(draw.random())) for one in silent], [None] * 120

    return world


@pytest.mark.slow
@pytest.mark.parametrize(
    ("share", "on_abstain"),
    [(0.08, "pass"), (0.33, "fail")],
)
def test_the_guarantee_holds_with_answers_that_state_nothing(
    share: float, on_abstain: OnAbstain
) -> None:
    always = share if on_abstain == "pass" else 0
    count, _ = missed(
        abstaining(share), lambda t: always + (1 - share) * (1 - t), on_abstain=on_abstain
    )
    assert count <= MOST


def repeated(different: int, times: int) -> World:
    """Return a world of `different` answers, each of them `times` times."""

    def world(draw: np.random.Generator) -> tuple[list[Any], list[str | None]]:
        scores = draw.random(different)
        return [*np.repeat(scores, times)], [str(at) for at in np.repeat(range(different), times)]

    return world


@pytest.mark.slow
@pytest.mark.parametrize(("different", "times"), [(20, 5), (30, 8)])
def test_the_guarantee_holds_with_repeats(different: int, times: int) -> None:
    count, chosen = missed(repeated(different, times), lambda t: 1 - t)
    assert count <= MOST
    assert (chosen > 0) is (different >= 22)  # With fewer answers there is no guarantee.
    before, _ = missed(repeated(different, times), lambda t: 1 - t, samples=False)
    assert before > MOST
