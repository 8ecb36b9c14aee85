"""Test requests that are made twice, over real HTTP: one reply counts, both are paid for."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from langchain_core.messages import HumanMessage

from demur import Evaluation, RefChecker, Sample
from demur.runtime import (
    Account,
    CallPolicy,
    ChatCall,
    Outcome,
    Scope,
    Steps,
    adrive,
    ask_all,
    drive,
    within_scope,
)
from support.fakes import ScriptedModel
from support.openai_server import Answer, openai_server
from support.waiting import until

AFTER = 0.1
HEDGED = CallPolicy(hedge_after=AFTER, first_delay=0, timeout=20)
SLOW = 60.0

Run = Callable[..., Sequence[Outcome[Any]]]


def chat(model: Any, text: str = "hello", **fields: Any) -> ChatCall:
    return ChatCall(model, [HumanMessage(text)], "stage", **fields)


def _steps(calls: Sequence[Any]) -> Steps[list[Outcome[Any]]]:
    return (yield from ask_all(calls))


@pytest.fixture(params=["sync", "async"])
def run(request: pytest.FixtureRequest) -> Iterator[Run]:
    """Return a function that makes calls, in threads or in an event loop."""
    loop = asyncio.new_event_loop()

    def sync(*calls: Any, policy: CallPolicy = HEDGED) -> Sequence[Outcome[Any]]:
        return drive(_steps(calls), {}, policy)[0]

    def asynchronous(*calls: Any, policy: CallPolicy = HEDGED) -> Sequence[Outcome[Any]]:
        found = loop.run_until_complete(adrive(_steps(calls), {}, policy))[0]
        assert asyncio.all_tasks(loop) == set()
        return found

    yield sync if request.param == "sync" else asynchronous
    loop.close()


@pytest.mark.parametrize("after", [0, -1, float("nan")])
def test_it_is_after_some_time(after: float) -> None:
    with pytest.raises(ValueError, match="hedge_after must be positive"):
        CallPolicy(hedge_after=after)


def test_the_second_reply_counts_where_it_comes_first(run: Run) -> None:
    with openai_server([Answer("first", delay=SLOW), "second"]) as server:
        (outcome,) = run(chat(server.model()))
        assert len(server.requests) == 2
        assert server.requests[0] == server.requests[1]
    assert outcome.value.text == "second"
    assert (outcome.usage.calls, outcome.usage.output_tokens) == (2, 1)


def test_the_first_reply_counts_where_it_comes_first(run: Run) -> None:
    with openai_server([Answer("first", delay=3 * AFTER), Answer("second", delay=SLOW)]) as server:
        (outcome,) = run(chat(server.model()))
        assert len(server.requests) == 2
    assert outcome.value.text == "first"
    assert outcome.usage.calls == 2


def test_a_quick_request_is_made_once(run: Run) -> None:
    with openai_server(["quick"]) as server:
        policy = CallPolicy(hedge_after=SLOW)
        (outcome,) = run(chat(server.model()), policy=policy)
        assert len(server.requests) == 1
    assert outcome.usage.calls == 1


def test_without_it_no_request_is_made_twice(run: Run) -> None:
    with openai_server([Answer("slow", delay=3 * AFTER)]) as server:
        run(chat(server.model()), policy=CallPolicy())
        assert len(server.requests) == 1


@pytest.mark.slow
@pytest.mark.parametrize("failing", [0, 1])
def test_an_error_of_one_is_none_of_both(run: Run, failing: int) -> None:
    answers = [Answer("fine", delay=5 * AFTER), Answer("fine", delay=5 * AFTER)]
    answers[failing] = Answer(status=500, delay=(2 - failing) * AFTER)
    with openai_server(answers) as server:
        (outcome,) = run(chat(server.model()))
        assert len(server.requests) == 2
    assert outcome.value.text == "fine"
    assert outcome.usage.calls == 2


@pytest.mark.slow
def test_a_failure_of_both_is_one_try(run: Run) -> None:
    with openai_server([Answer(status=500, delay=2 * AFTER)]) as server:
        policy = CallPolicy(hedge_after=AFTER, attempts=2, first_delay=0)
        (outcome,) = run(chat(server.model()), policy=policy)
        assert len(server.requests) == 4
    assert "after 2 tries" in str(outcome.error)
    assert outcome.usage.calls == 4


def test_an_error_before_it_is_tried_again_as_ever(run: Run) -> None:
    with openai_server([Answer(status=500), "fine"]) as server:
        policy = CallPolicy(hedge_after=SLOW, first_delay=0)
        (outcome,) = run(chat(server.model()), policy=policy)
        assert len(server.requests) == 2
    assert outcome.value.text == "fine"


@pytest.mark.parametrize("after", [AFTER, SLOW])
def test_both_have_the_time_of_one_try(run: Run, after: float) -> None:
    with openai_server([Answer(delay=SLOW)]) as server:
        policy = CallPolicy(hedge_after=after, timeout=3 * AFTER, attempts=1)
        began = time.monotonic()
        (outcome,) = run(chat(server.model()), policy=policy)
        assert time.monotonic() - began < SLOW / 4
    assert "no reply within 0.3 s" in str(outcome.error)
    assert outcome.usage.calls == (2 if after == AFTER else 1)


def test_none_is_made_while_all_slots_are_taken(run: Run) -> None:
    with openai_server([Answer("x", delay=3 * AFTER)]) as server:
        policy = CallPolicy(hedge_after=AFTER, max_concurrency=1)
        run(chat(server.model()), policy=policy)
        assert len(server.requests) == 1


def test_its_slot_is_free_again(run: Run) -> None:
    policy = CallPolicy(hedge_after=AFTER, max_concurrency=2, timeout=20)
    with openai_server(
        lambda request, number: Answer("x", delay=0 if number % 2 else SLOW)
    ) as server:
        model = server.model()
        for at in range(3):
            (outcome,) = run(chat(model, str(at)), policy=policy)
            assert outcome.usage.calls == 2


@pytest.mark.slow
def test_of_many_slow_requests_few_are_made_twice(run: Run) -> None:
    with openai_server([Answer("x", delay=4 * AFTER)]) as server:
        model = server.model()
        outcomes = run(*(chat(model, str(at)) for at in range(40)))
        # There are ten extra requests at first, and one more for every ten.
        assert 50 <= len(server.requests) <= 54
        assert sum(outcome.usage.calls for outcome in outcomes) == len(server.requests)


def test_samples_are_made_once(run: Run) -> None:
    with openai_server([Answer("x", delay=3 * AFTER)]) as server:
        run(chat(server.model(), sample=0))
        assert len(server.requests) == 1


def test_identical_requests_share_both(run: Run) -> None:
    with openai_server([Answer("x", delay=SLOW), Answer("x", delay=2 * AFTER)]) as server:
        model = server.model()
        outcomes = run(*(chat(model) for _ in range(4)))
        assert len(server.requests) == 2
    assert sum(outcome.usage.calls for outcome in outcomes) == 2


@pytest.mark.slow
@pytest.mark.parametrize(("most", "made"), [(1, 1), (2, 2)])
def test_both_are_of_the_budget(run: Run, most: int, made: int) -> None:
    account = Account(model_calls=most, tokens=1000)
    with openai_server([Answer("x", delay=3 * AFTER)]) as server, within_scope(Scope(account)):
        (outcome,) = run(chat(server.model(), "one two three"))
        assert len(server.requests) == made
    assert outcome.value.text == "x"
    assert outcome.usage.calls == made
    assert account.exhausted == "model_calls"
    assert account.reserve(0) is not None


def test_a_second_one_that_the_budget_refuses_has_reached_no_limit(run: Run) -> None:
    account = Account(tokens=20)
    with openai_server([Answer("x", delay=3 * AFTER)]) as server, within_scope(Scope(account)):
        (outcome,) = run(chat(server.model(), "one two three", options={"max_tokens": 8}))
        assert len(server.requests) == 1
    assert outcome.value.text == "x"
    assert account.exhausted is None


def test_an_interrupt_is_raised_at_once() -> None:
    free = threading.Event()

    def script(stage: str, messages: Any) -> str:
        if len(model.requests) == 2:
            raise KeyboardInterrupt
        free.wait(SLOW)
        return "x"

    model = ScriptedModel(script=script)
    with pytest.raises(KeyboardInterrupt):
        drive(_steps([chat(model)]), {}, HEDGED)
    free.set()


async def test_cancelling_ends_both() -> None:
    with openai_server([Answer("x", delay=SLOW)]) as server:
        before = asyncio.all_tasks()
        task = asyncio.create_task(chat(server.model()).arun({}, HEDGED))
        while len(server.requests) < 2:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert asyncio.all_tasks() == before


def test_no_label_is_of_both() -> None:
    """Take all labels from the reply that comes first, and none from the other."""

    def script(request: dict[str, Any], number: int) -> Answer:
        labels = ("Entailment", "Contradiction") if number else ("Contradiction", "Entailment")
        text = "\n".join(f"{at}. {label}" for at, label in enumerate(labels, start=1))
        return Answer(text, delay=0 if number else 6 * AFTER)

    said = "The Alder mill has two red floors. The Brack mill has nine heavy doors."
    sample = Sample(answer=said, contexts=["The Alder mill has two red floors."])
    with openai_server(script) as server:
        checker = RefChecker(server.model(), claims="sentences", call_policy=HEDGED)
        found: Evaluation = checker.invoke(sample)
        until(lambda: len(server.requests) == 2)
    assert [str(claim.label) for claim in found.claims] == ["Entailment", "Contradiction"]
    assert (found.usage.calls, found.passed) == (2, False)
