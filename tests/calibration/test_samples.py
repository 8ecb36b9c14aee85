"""Test which scores and labels are accepted, and the errors about the others."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from demur import DemurError, Evaluation
from demur.calibration import (
    CalibrationError,
    best_f1,
    calibrate,
    differences,
    operating_points,
    percentile,
    reliability,
    roc,
)
from demur.calibration.samples import read
from support.evaluators import Scripted


class Bound(Scripted):
    """Represent an evaluator with given fingerprints."""

    prints: dict[str, str] = {}  # noqa: RUF012  # a pydantic field, copied for each instance

    @property
    def fingerprints(self) -> dict[str, str]:
        return self.prints


def bound(name: str = "checker", **prints: str) -> Bound:
    return Bound(script=lambda sample: 0.5, name=name, prints=prints)


def found(score: float | None, name: str = "checker", **prints: str) -> Evaluation:
    error = "no labels" if score is None else None
    return Evaluation(name=name, score=score, error=error, fingerprints=prints)


def _refused(*arguments: Any, **named: Any) -> str:
    with pytest.raises(CalibrationError) as refused:
        read(*arguments, **named)
    assert isinstance(refused.value, (DemurError, ValueError))
    return str(refused.value)


# -- accepted values -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scores", "labels"),
    [
        ((0.0, 1, 0.5), (1, 0, 1)),
        (np.array([0, 1, 0.5], np.float32), np.array([True, False, True])),
        ([np.float32(0), np.int64(1), np.float64(0.5)], [np.True_, np.bool_(False), np.int8(1)]),
        (np.array([0, 1, 0.5], dtype=object), np.array([1, 0, 1])),
        ([found(0.0), found(1.0), found(0.5)], [True, False, True]),
    ],
)
def test_all_that_numbers_and_labels_come_as(scores: Any, labels: Any) -> None:
    samples = read(scores, labels)
    assert samples.scores.tolist() == [0, 1, 0.5]
    assert samples.hallucinated is not None
    assert samples.hallucinated.tolist() == [True, False, True]


# -- refused values --------------------------------------------------------------------------------


@pytest.mark.parametrize("odd", [None, math.nan, -math.inf, 10**400, 1.7976931348623157e308])
def test_scores_that_are_none_are_counted(odd: Any) -> None:
    said = _refused([0.5, odd, 0.1, None], [True] * 4)
    assert "2 of 4" in said
    assert "number 2 first" in said
    assert "Leave out" in said


@pytest.mark.parametrize(
    ("scores", "labels", "said"),
    [
        (np.array([0.1, np.nan, 0.3]), [True] * 3, "1 of 3"),
        (np.array([True, False]), [True] * 2, "number 1 is"),
        (np.zeros(2), np.zeros((2, 2)), "shape (2, 2)"),
        (np.ma.array([0.1, 0.2], mask=[False, True]), [True, False], "number 2 is masked"),
        ({0.1, 0.2}, [True, False], "scores: expected a list"),
        ([0.5, "0.5"], [True, False], "number 2 is '0.5'"),
        ([0.5, 0.5], [True, None], "number 2 is None"),
        ([0.5, 0.5], [True, "true"], "number 2 is 'true'"),
        ([0.1, 0.2, 0.3], [True, False], "got 3 scores and 2 labels"),
        ([], [], "at least one"),
        ([found(0.5), 0.5], [True, False], "number 2 is 0.5"),
        ([found(0.5), found(0.5, "other")], [True, False], "'checker' (1), 'other' (1)"),
    ],
)
def test_what_is_no_score_or_no_label_is_refused(scores: Any, labels: Any, said: str) -> None:
    assert said in _refused(scores, labels)


def test_evaluations_without_a_score_are_counted() -> None:
    said = _refused([found(0.5), found(None), found(None)], [True, False, True])
    assert "2 of 3" in said
    assert "number 2 first (undetermined: no labels)" in said
    nothing = Evaluation(name="checker", label="Abstain")
    assert read([found(0.5), nothing], [True, False]).scores.tolist() == [0.5, math.inf]
    failing = read([found(0.5), nothing], [True, False], on_abstain="fail")
    assert failing.scores.tolist() == [0.5, -math.inf]
    odd = Evaluation(name="checker", label="none")
    assert "label 'none'" in _refused([found(0.5), odd], [True, False])


def test_evaluations_with_different_fingerprints_are_refused_with_what_differs() -> None:
    some = [found(0.5, model="a", prompt="p")] * 3 + [found(0.5, model="b", prompt="p")] * 2
    said = _refused(some, [True] * 5)
    assert "model: 'a' (3), 'b' (2)" in said
    assert "prompt" not in said


# -- the evaluator of the scores -------------------------------------------------------------------

EVERY: dict[str, Callable[..., Any]] = {
    "calibrate": lambda scores, **more: calibrate(
        scores, [True, True, False, False], target=0.9, confidence=0.5, **more
    ),
    "best_f1": lambda scores, **more: best_f1(scores, [True, True, False, False], **more),
    "percentile": lambda scores, **more: percentile(scores, 50, **more),
}
NUMBERS = [0.1, 0.2, 0.3, 0.4]


@pytest.mark.parametrize("choose", EVERY.values(), ids=EVERY)
def test_a_threshold_is_bound_to_whose_scores_they_are(choose: Callable[..., Any]) -> None:
    prints = {"model": "a", "prompt": "p"}
    free = choose(NUMBERS)
    assert (free.evaluator, free.fingerprints) == (None, {})
    by_evaluations = choose([found(score, **prints) for score in NUMBERS])
    by_evaluator = choose(NUMBERS, evaluator=bound(**prints))
    both = choose([found(score, **prints) for score in NUMBERS], evaluator=bound(**prints))
    assert by_evaluations == by_evaluator == both
    assert both.model_dump() == {
        **free.model_dump(),
        "evaluator": "checker",
        "fingerprints": prints,
    }


def test_evaluations_of_another_evaluator_are_refused_with_what_differs() -> None:
    some = [found(0.5, model="a", prompt="p", old="x")]
    said = _refused(some, [True], bound("other", model="b", prompt="p"))
    assert "the name: 'checker' and 'other'" in said
    assert "model (a and b)" in said
    assert "old (x and not set)" in said
    assert "prompt" not in said


def test_nothing_is_bound_to_an_evaluator_that_tells_nothing() -> None:
    assert "define its property `fingerprints`" in _refused([0.5], [True], bound())
    assert "expected a demur Evaluator" in _refused([0.5], [True], "FEWL")


def test_differences_are_counted_and_few_are_told() -> None:
    assert differences([]) == []
    assert differences([{"a": "1"}, {"a": "1"}]) == []
    assert differences([{"a": "1"}, {}]) == ["a: '1' (1), none (1)"]
    said = differences([{"m": "C x (t=0, seed=1)"}, {"m": "C x (t=1, seed=1)"}])
    assert said == ["t of m: '0' (1), '1' (1)"]
    (told,) = differences([{"a": str(number)} for number in range(9)])
    assert told.endswith("and 4 more")


# -- errors of every function ----------------------------------------------------------------------


def test_every_function_checks_what_it_is_given() -> None:
    for use in (
        lambda: calibrate([math.nan], [True], target=0.5, confidence=0.5),
        lambda: best_f1([math.nan], [True]),
        lambda: percentile([math.nan], 5),
        lambda: roc([math.nan], [True]),
        lambda: reliability([math.nan], [True]),
        lambda: operating_points([math.nan]),
    ):
        with pytest.raises(CalibrationError, match="not finite"):
            use()
