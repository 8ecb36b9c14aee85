"""Test what is accepted as an evaluator, and what is refused, with advice on what to do."""

from __future__ import annotations

import asyncio
import functools
import math
from typing import Any

import numpy as np
import pytest
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda

from demur import Claim, DemurError, Evaluation, RefChecker, Sample, Threshold
from demur.evaluators import AllFalse, as_evaluator
from support.fakes import scripted

SAMPLE = Sample(question="How tall?", answer="324 metres [1].", contexts=["It is 324 metres."])


@pytest.fixture(params=["sync", "async", "sync in a loop"])
def mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def judged(evaluator: Runnable[Any, Evaluation], mode: str = "sync") -> Evaluation:
    async def in_a_loop() -> Evaluation:
        if mode == "async":
            return await evaluator.ainvoke(SAMPLE)
        return evaluator.invoke(SAMPLE)

    return evaluator.invoke(SAMPLE) if mode == "sync" else asyncio.run(in_a_loop())


def cites(sample: Sample) -> bool:
    return "[1]" in sample.answer


async def acites(sample: Sample) -> bool:
    await asyncio.sleep(0)
    return "[1]" in sample.answer


class Cites:
    def __init__(self, sign: str = "[1]") -> None:
        self.sign = sign

    def __call__(self, sample: Sample) -> bool:
        return self.sign in sample.answer

    def holds(self, sample: Sample) -> bool:
        return self(sample)


class ACites:
    async def __call__(self, sample: Sample) -> bool:
        return await acites(sample)


def cites_with(sign: str, sample: Sample) -> bool:
    return sign in sample.answer


def with_config(sample: Sample, config: RunnableConfig) -> bool:
    return "callbacks" in config


# --- What a function returns ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("judge", "name"),
    [
        (acites, "acites"),
        (Cites(), "Cites"),
        (ACites(), "ACites"),
        (Cites().holds, "holds"),
        (functools.partial(cites_with, "[1]"), "cites_with"),
        (with_config, "with_config"),
        (RunnableLambda(cites).with_retry(), "cites"),
        (RunnableLambda(lambda sample: sample.answer) | (lambda answer: "[1]" in answer), None),
    ],
)
def test_a_bool_says_whether_the_answer_passes(judge: Any, name: str | None, mode: str) -> None:
    evaluation = judged(as_evaluator(judge), mode)
    assert (evaluation.passed, evaluation.score, evaluation.error) == (True, None, None)
    assert name is None or evaluation.name == name
    assert judged(as_evaluator(judge, name="mine"), mode).name == "mine"


@pytest.mark.parametrize("score", [0.5, np.float32(0.5), np.array(0.5)])
def test_a_score_decides_with_a_threshold(score: Any) -> None:
    def overlap(sample: Sample) -> Any:
        return score

    assert judged(as_evaluator(overlap)).finding == "scored"
    assert judged(as_evaluator(overlap, threshold=0.5)).passed is True
    failed = judged(as_evaluator(overlap, threshold=0.6))
    assert (failed.passed, failed.score) == (False, 0.5)
    assert failed.explanation == "overlap scores it 0.5, below 0.6."
    assert judged(as_evaluator(as_evaluator(overlap), threshold=0.6)) == failed


def test_whole_numbers_are_scores_and_a_bool_of_numpy_s_decides() -> None:
    assert judged(as_evaluator(lambda sample: 1)).finding == "scored"
    assert judged(as_evaluator(lambda sample: 4, threshold=3)).passed is True
    assert judged(as_evaluator(lambda sample: np.bool_(False), threshold=3)).passed is False


def test_an_evaluation_stays_as_it_is() -> None:
    evaluation = Evaluation(name="x", passed=False, claims=(Claim(text="a"),), explanation="Why.")
    assert judged(as_evaluator(lambda sample: evaluation)) is evaluation
    assert judged(as_evaluator(lambda sample: evaluation, threshold=0.1)) is evaluation
    scored = evaluation.model_copy(update={"passed": None, "score": 0.4})
    decided = judged(as_evaluator(lambda sample: scored, threshold=0.3))
    assert decided == scored.model_copy(update={"passed": True})


@pytest.mark.parametrize("nothing", [None, math.nan, math.inf, np.float32("nan")])
def test_what_is_no_decision_is_undetermined(nothing: Any) -> None:
    evaluation = judged(as_evaluator(lambda sample: nothing, threshold=0.5, name="odd"))
    assert evaluation.finding == "undetermined"
    assert evaluation.error is not None
    assert evaluation.error.startswith("odd gave ")


@pytest.mark.parametrize("wrong", ["yes", {"score": 1.0}, [True], (1, "why"), np.array([1.0])])
def test_what_says_nothing_about_an_answer_is_refused(wrong: Any) -> None:
    with pytest.raises(DemurError, match=rf"odd returned an? {type(wrong).__name__}.*, expected a"):
        judged(as_evaluator(lambda sample: wrong, name="odd"))


def test_what_a_function_raises_is_raised(mode: str) -> None:
    error = KeyError("x")

    def broken(sample: Sample) -> bool:
        raise error

    with pytest.raises(KeyError) as raised:
        judged(as_evaluator(broken), mode)
    assert raised.value is error


# --- Evaluators -----------------------------------------------------------------------------------


def test_an_evaluator_is_returned_as_it_is() -> None:
    evaluator = AllFalse()
    assert as_evaluator(evaluator) is evaluator
    for options in ({"threshold": 0.5}, {"name": "x"}):
        with pytest.raises(ValueError, match="AllFalse is an evaluator already"):
            as_evaluator(evaluator, **options)  # type: ignore[arg-type]  # one of them each


# --- What is refused ------------------------------------------------------------------------------


def of_two(question: str, answer: str) -> bool:
    return True


def named_only(*, answer: str) -> bool:
    return True


@pytest.mark.parametrize(
    ("judge", "message"),
    [
        (RefChecker, r"got the class RefChecker: make one first, RefChecker\(model\)$"),
        (Cites, r"make one first, Cites\(\)$"),
        ("local", r"got 'local': .* such as RefChecker\('local'\)$"),
        (scripted("x"), r"got a ScriptedModel: .* such as RefChecker\(model\)$"),
        (
            {"cites": cites},
            "a Runnable or a function .*; got a dict with the keys 'cites'$",
        ),
        (
            of_two,
            r"^of_two\(.*\) -> 'bool' cannot judge: .*lambda sample: of_two\(sample.question, ",
        ),
        (named_only, "named_only.* is called with one argument, a Sample"),
    ],
)
def test_what_is_no_evaluator_is_refused_with_what_to_do(judge: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        as_evaluator(judge)


@pytest.mark.parametrize(
    ("threshold", "error", "message"),
    [
        (True, TypeError, "threshold: expected a number, got a bool"),
        (math.nan, ValueError, "threshold: expected a finite number, got nan"),
        (
            Threshold(
                value=0.7, method="percentile", percentile=5, on_abstain="pass", samples=9, passed=8
            ),
            ValueError,
            "pass its number, threshold=0.7",
        ),
    ],
)
def test_a_threshold_is_a_number(threshold: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        as_evaluator(cites, threshold=threshold)
