"""Test what a guard accepts as an evaluator, and how it reports mistakes in evaluators."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from langchain_core.runnables import RunnableLambda

import demur
from demur import (
    Annotate,
    Budget,
    DemurError,
    Evaluation,
    Guard,
    RefChecker,
    Sample,
)
from demur.evaluators import Evaluator, as_evaluator
from demur.guard import REFUSAL
from demur.runtime import Steps
from support.fakes import scripted
from support.guarded import Chain, judge, traced
from support.pages import DOCS, fences
from support.streams import Client

# --- Accepted evaluators --------------------------------------------------------------------------


def is_good(sample: Sample) -> bool:
    return "good" in sample.answer


async def ais_good(sample: Sample) -> bool:
    await asyncio.sleep(0)
    return "good" in sample.answer


def goodness(sample: Sample) -> float:
    return sample.answer.count("o") / 10


@pytest.mark.parametrize(
    ("evaluator", "name"),
    [(is_good, "is_good"), (ais_good, "ais_good"), (RunnableLambda(ais_good), "ais_good")],
)
def test_a_function_that_says_yes_or_no_judges_answers(evaluator: Any, name: str) -> None:
    found = traced(Guard(Chain("bad", "good"), evaluator), "why?")
    assert (found.output, found.trace.outcome) == ("good", "recovered")
    (evaluation,) = found.trace.attempts[0].evaluations
    assert evaluation.name == name


def test_a_score_without_a_threshold_says_what_to_write() -> None:
    guard = Guard(Chain("good"), goodness, on_error="open")
    for _ in range(2):
        with pytest.raises(DemurError, match=r"goodness scores answers but .*as_evaluator\(func"):
            guard.invoke("why?")


def test_what_is_no_evaluation_is_raised_each_time() -> None:
    guard = Guard(Chain("good"), lambda sample: "yes", on_error="open")
    for _ in range(2):
        with pytest.raises(DemurError, match="lambda returned a str, expected a bool"):
            guard.invoke("why?")


def test_evaluators_may_come_in_a_list() -> None:
    for given in ([judge, is_good], (judge, is_good)):
        found = traced(Guard(Chain("good"), given))
        assert [e.name for e in found.trace.attempts[0].evaluations] == ["judge", "is_good"]
    with pytest.raises(ValueError, match="a guard needs an evaluator"):
        Guard(Chain("good"), [])


def test_functions_of_one_name_are_numbered() -> None:
    guard = Guard(Chain("good"), lambda _: True, [lambda _: False, is_good], lambda _: None)
    names = ["lambda", "lambda 2", "is_good", "lambda 3"]
    assert [e.name for e in traced(guard).trace.attempts[0].evaluations] == names
    again = guard.model_copy(update={"budget": Budget(attempts=1)})
    assert [e.name for e in traced(again).trace.attempts[0].evaluations] == names


def test_a_scored_runnable_without_a_threshold_is_refused_and_with_one_taken() -> None:
    checker = RefChecker(scripted("x"), threshold=None).with_config(tags=["x"])
    with pytest.raises(ValueError, match="RefChecker scores answers but decides nothing"):
        Guard(Chain("x"), checker)
    Guard(Chain("x"), as_evaluator(checker, threshold=0.5))


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"contexts": ["a"]}, TypeError, r"contexts= says .* a key of the output .*, got a list"),
        ({"question": ["a"]}, TypeError, r"question= says .* a key of the input, .*, got a list"),
        ({"answer": 3}, TypeError, r"answer= says .* a key of the output, .*, got an int"),
        ({"on_error": "opne"}, ValueError, "on_error must be 'open', 'closed' or 'raise', got 'o"),
        ({"on_abstain": "no"}, ValueError, "on_abstain must be 'pass' or 'fail', got 'no'"),
        ({"streaming": "yes"}, ValueError, "streaming must be 'buffer' or 'sentence', got 'yes'"),
        ({"on_pass": "numbers"}, TypeError, r"on_pass: expected Cite\(...\)"),
        ({"budget": 3}, TypeError, r"budget: expected Budget\(.*, got an int"),
        ({"on_fail": {"neutrl": "abstain"}}, ValueError, "'neutrl'; expected .*'neutral'.*'end'"),
        (
            {"on_fail": "abstane"},
            TypeError,
            "strip, abstain, annotate, block.*'abstane'",
        ),
    ],
)
def test_arguments_are_refused_by_name(
    options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        Guard(Chain("x"), judge, **options)
    with pytest.raises(error, match=message):
        Guard(Chain("x"), judge).model_copy(update=options)


@pytest.mark.parametrize(
    ("evaluator", "message"),
    [
        (RefChecker, r"make one first, RefChecker\(model\)"),
        ("refchecker", "expected an evaluator, got 'refchecker'"),
        (lambda question, answer: True, r"called with one argument, a Sample.*sample\.question"),
    ],
)
def test_what_is_no_evaluator_is_refused(evaluator: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        Guard(Chain("x"), judge, evaluator)


# --- A custom note --------------------------------------------------------------------------------


def test_a_note_may_be_a_text() -> None:
    assert Guard(Chain("bad"), judge, on_fail=Annotate("Check it.")).invoke("?") == (
        "bad\n\nCheck it."
    )
    assert Guard(Chain("bad"), judge, on_fail=Annotate("")).invoke("?") == "bad"
    with pytest.raises(TypeError, match=r"Annotate: expected note to be a text or a function.*int"):
        Annotate(3)  # type: ignore[arg-type]  # the mistake that is tested


# --- Mistakes in evaluators -----------------------------------------------------------------------

MISTAKES = [TypeError("t"), AttributeError("a"), NameError("n"), NotImplementedError("i")]


class Failing:
    """Raise or return the items of a script, in order."""

    def __init__(self, *script: Any) -> None:
        self.script = list(script)

    def __call__(self, sample: Sample) -> Any:
        item = self.script.pop(0)
        if isinstance(item, Exception):
            raise item
        return item


class Mine(Evaluator):
    """Represent a user's own evaluator."""

    failing: Failing

    def _steps(self, sample: Sample) -> Steps[Evaluation]:
        yield from ()
        return Evaluation(name="Mine", passed=self.failing(sample))


def as_method(failing: Failing) -> Callable[[Sample], Any]:
    return lambda sample: failing(sample)


def as_async(failing: Failing) -> Any:
    async def judge(sample: Sample) -> Any:
        return failing(sample)

    return judge


FORMS: list[Callable[[Failing], Any]] = [
    as_method,
    as_async,
    lambda failing: failing,
    lambda failing: RunnableLambda(failing),
    lambda failing: RunnableLambda(failing).with_retry(stop_after_attempt=1),
    lambda failing: RunnableLambda(lambda sample: sample) | failing,
    lambda failing: Mine(failing=failing),
    lambda failing: Mine(failing=failing).with_config(tags=["x"]),
]


@pytest.mark.parametrize(
    ("form", "error"), [(form, MISTAKES[at % len(MISTAKES)]) for at, form in enumerate(FORMS)]
)
def test_a_mistake_before_the_first_evaluation_is_the_caller_s_to_see(
    error: Exception, form: Any
) -> None:
    guard = Guard(Chain("good"), judge, form(Failing(error, error, True, error)), on_error="open")
    for _ in range(2):
        with pytest.raises(type(error)) as raised:
            guard.invoke("why?")
        assert raised.value is error
        frames = traceback.extract_tb(raised.value.__traceback__)
        assert "raise item" in {frame.line for frame in frames}
    assert traced(guard, "why?").trace.outcome == "passed"
    # The evaluator has worked once, so the next error counts as its failure.
    found = traced(guard, "why?")
    assert (found.output, found.trace.outcome) == ("good", "evaluator_failed")
    assert found.trace.attempts[0].evaluations[1].cause == type(error).__name__


@pytest.mark.parametrize(
    ("streaming", "mode"), [("buffer", "sync"), ("sentence", "sync"), ("sentence", "async")]
)
def test_a_mistake_comes_out_of_a_stream_and_nothing_before_it(streaming: Any, mode: str) -> None:
    class ByClaim(RunnableLambda[Any, Any]):
        claim_level = True

    error = TypeError("t")

    def broken(sample: Sample) -> bool:
        raise error

    guard: Any = Guard(
        Chain("It is good. It is so good."),
        ByClaim(is_good),
        ByClaim(broken),
        streaming=streaming,
        on_error="open",
    )
    client = Client()
    with pytest.raises(TypeError) as raised:
        client.read(guard, "why?", mode)
    assert raised.value is error
    assert client.chunks == []


# --- The page -------------------------------------------------------------------------------------


def test_the_examples_of_the_page_are_guards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demur, "resolve_model", lambda name: scripted("No claims"))
    monkeypatch.setattr(demur, "RefChecker", lambda model: judge)
    page: dict[str, Any] = {}
    for fence in fences(DOCS / "evaluators.md", "python")[:3]:
        exec(fence.text, page)  # noqa: S102  # The code is the page's own.

    def answered(*evaluators: Any, on_fail: Any = None, answers: Sequence[str]) -> Any:
        return Guard(Chain(*answers), *evaluators, on_fail=on_fail).invoke("why?")

    assert answered(page["checker"], page["cites"], answers=["good [1]"]) == "good [1]"
    assert answered(page["checker"], page["cites"], answers=["good"]) == REFUSAL
    assert answered(page["judge"], answers=["good [1]"]) == REFUSAL
    again = {"vague": "regenerate"}
    assert answered(page["short"], on_fail=again, answers=["a" * 200, "good"]) == "good"
