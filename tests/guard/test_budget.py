"""Test the limits on what one guarded call may spend."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from langchain_core.caches import InMemoryCache

from demur import Annotate, Budget, Evaluation, Guard, RefChecker, Regenerate, Usage
from demur.guard import REFUSAL, UNCHECKED, Guarded
from support.openai_server import openai_server
from support.rag import QUESTION, RIGHT, WRONG, application


def chain(answers: Sequence[str]) -> Callable[[Any], Any]:
    coming = list(answers)
    return lambda _: {"answer": coming.pop(0), "context": ["The tower is 84 metres tall."]}


def traced(guard: Guard[Any, Any], given: Any = QUESTION) -> Guarded[Any]:
    return guard.with_trace().invoke(given)


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"attempts": 0}, "attempts must be a whole number of at least 1, got 0"),
        ({"model_calls": 0}, "model_calls"),
        ({"tokens": 1.5}, "tokens must be a whole number of at least 1, got 1.5"),
        ({"seconds": 0}, "seconds must be positive"),
        ({"seconds": float("nan")}, "seconds must be positive"),
        ({"judge_seconds": 0}, "judge_seconds must be positive"),
        ({"judge_seconds": -1.0}, "judge_seconds must be positive, got -1.0"),
    ],
)
def test_limits_have_their_ranges(limits: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Budget(**limits)


def answers(count: int) -> list[str]:
    """Return different wrong answers."""
    return [f"The tower is {900 + number} metres tall." for number in range(count)]


@pytest.mark.parametrize("calls", [1, 2, 4, 7])
def test_no_more_judge_and_repair_calls_than_the_budget_has(calls: int) -> None:
    with openai_server(application(*answers(9))) as server:
        judge = RefChecker(server.model(), checker="joint")
        budget = Budget(attempts=9, model_calls=calls)
        guard = Guard(chain([WRONG]), judge, model=server.model(), budget=budget)
        found = traced(guard)
        asked = len(server.requests)
    assert asked == calls  # All attempts would have needed more calls.
    assert found.trace.usage.calls == asked
    unchecked = found.trace.attempts[-1].verdict == "undetermined"
    assert found.output["answer"] == (UNCHECKED if unchecked else REFUSAL)
    assert (found.trace.outcome, found.trace.limit) == ("abstained", "model_calls")
    assert f"the budget of {calls} model calls is used up" in found.trace.reason


@pytest.mark.parametrize(
    ("calls", "outcome", "limit"), [(3, "abstained", "model_calls"), (5, "recovered", None)]
)
def test_what_is_within_the_budget_is_not_disturbed(
    calls: int, outcome: str, limit: str | None
) -> None:
    with openai_server(application(RIGHT)) as server:
        judge = RefChecker(server.model(), checker="joint")
        budget = Budget(attempts=2, model_calls=calls, tokens=100_000, seconds=600)
        guard = Guard(chain([WRONG]), judge, model=server.model(), budget=budget)
        found = traced(guard)
    assert (found.trace.outcome, found.trace.limit) == (outcome, limit)
    assert found.trace.usage.calls == calls
    assert found.output["answer"] == (UNCHECKED if limit else RIGHT)


@pytest.mark.parametrize("tokens", [1, 400, 700, 1500])
def test_tokens_are_counted_before_and_after(tokens: int) -> None:
    with openai_server(application(*answers(9))) as server:
        judge = RefChecker(server.model(), checker="joint")
        budget = Budget(attempts=9, tokens=tokens)
        guard = Guard(chain([WRONG]), judge, model=server.model(), budget=budget)
        found = traced(guard)
    assert found.trace.limit == "tokens"
    assert found.trace.usage.input_tokens <= tokens
    if tokens == 1:
        assert server.requests == []  # A prompt with more tokens is not sent.


def test_the_chains_own_calls_count_when_they_are_made() -> None:
    def judge(_: Any) -> Evaluation:
        return Evaluation(name="judge", passed=False)

    with openai_server([f"answer {number}" for number in range(9)]) as server:
        two = server.model() | (lambda message: message.text) | server.model()
        guard = Guard(two, judge, budget=Budget(attempts=9, model_calls=5))
        found = traced(guard)
        asked = len(server.requests)
    assert asked == found.trace.usage.calls == 6  # The chain is never interrupted.
    assert (found.trace.limit, len(found.trace.attempts)) == ("model_calls", 3)


def test_what_an_evaluator_says_it_spent_counts() -> None:
    def judge(_: Any) -> Evaluation:
        return Evaluation(name="judge", passed=False, usage=Usage(calls=2, input_tokens=50))

    coming = iter(range(99))
    guard = Guard(lambda _: f"{next(coming)}", judge, budget=Budget(attempts=9, model_calls=5))
    found = traced(guard)
    assert (found.trace.limit, len(found.trace.attempts)) == ("model_calls", 3)
    coming = iter(range(99))
    guard = Guard(lambda _: f"{next(coming)}", judge, budget=Budget(attempts=9, tokens=200))
    found = traced(guard)
    assert (found.trace.limit, len(found.trace.attempts)) == ("tokens", 4)


def test_replies_out_of_a_cache_are_no_calls() -> None:
    with openai_server(application(RIGHT)) as server:
        judge = RefChecker(server.model(cache=InMemoryCache()), checker="joint")
        guard = Guard(lambda _: chain([RIGHT])(_), judge, budget=Budget(model_calls=2))
        assert traced(guard).trace.outcome == "passed"
        assert traced(guard).trace.outcome == "passed"
        one = Guard(lambda _: chain([RIGHT])(_), judge, budget=Budget(model_calls=1))
        assert traced(one).trace.outcome == "passed"
        # A call in flight counts as a call until its reply is known to come from the cache.
        two = Guard(lambda _: chain([RIGHT])(_), judge, judge, budget=Budget(model_calls=2))
        assert traced(two).trace.outcome == "passed"
    assert len(server.requests) == 2


def test_out_of_budget_the_best_attempt_can_leave() -> None:
    def judge(sample: Any) -> Evaluation:
        score = int(sample.answer) / 10
        return Evaluation(name="judge", passed=False, score=score, usage=Usage(calls=1))

    coming = iter("375")
    policy = {"any": Regenerate(), "end": Annotate(lambda _: "")}
    budget = Budget(attempts=9, model_calls=3)
    guard = Guard(lambda _: next(coming), judge, on_fail=policy, budget=budget)
    found = traced(guard)
    assert (found.output, found.trace.outcome) == ("7", "best_effort")
    assert found.trace.limit == "model_calls"


def test_a_guard_inside_has_a_budget_of_its_own_and_counts_for_the_outer_one() -> None:
    with openai_server(application(RIGHT)) as server:
        inner_judge = RefChecker(server.model(), checker="joint")
        inner = Guard(chain([RIGHT]), inner_judge, budget=Budget(model_calls=2))
        outer_judge = RefChecker(server.model(), checker="joint")
        outer = Guard(inner, outer_judge, budget=Budget(model_calls=3))
        found = traced(outer)
    assert found.trace.attempts[0].usage.calls == 2
    assert found.trace.limit == "model_calls"
    assert len(server.requests) == 3
