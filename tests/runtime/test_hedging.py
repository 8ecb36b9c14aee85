"""Test requests that are made twice, over real HTTP: one reply counts, both are paid for."""

from __future__ import annotations

import asyncio
import threading
from functools import partial
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler

from demur import Evaluation, RefChecker, Sample
from demur.runtime import (
    Account,
    CallPolicy,
    Scope,
    within_scope,
)
from support.calls import Run, chat
from support.openai_server import Answer, OpenAIServer, openai_server
from support.waiting import NEVER, auntil

AFTER = 0.05
HEDGED = CallPolicy(hedge_after=AFTER, first_delay=0)
IN_VAIN = CallPolicy(hedge_after=AFTER, timeout=3 * AFTER, attempts=1)
"""The policy for a request without a reply: whatever follows `AFTER` has happened at its end."""
LATE = 3600.0


@pytest.fixture
def run(run: Run) -> Run:
    return partial(run, policy=HEDGED)


def test_the_second_reply_counts_where_it_comes_first(run: Run) -> None:
    with openai_server([Answer("first", held=NEVER), "second"]) as server:
        (outcome,) = run(chat(server.model()))
        assert len(server.requests) == 2
        assert server.requests[0] == server.requests[1]
    assert outcome.value.text == "second"
    assert (outcome.usage.calls, outcome.usage.output_tokens) == (2, 1)


def test_the_first_reply_counts_where_it_comes_first(run: Run) -> None:
    second_came = threading.Event()

    def script(request: dict[str, Any], number: int) -> Answer:
        if number:
            second_came.set()
            return Answer("second", held=NEVER)
        return Answer("first", held=second_came)

    with openai_server(script) as server:
        (outcome,) = run(chat(server.model()))
        assert len(server.requests) == 2
    assert outcome.value.text == "first"
    assert outcome.usage.calls == 2


def test_a_quick_request_is_made_once(run: Run) -> None:
    with openai_server(["quick"]) as server:
        (outcome,) = run(chat(server.model()), policy=CallPolicy(hedge_after=LATE))
        assert len(server.requests) == 1
    assert outcome.usage.calls == 1


class _Failing(BaseCallbackHandler):
    """Hear when a request has failed."""

    run_inline = True

    def __init__(self) -> None:
        self.failed = threading.Event()

    def on_llm_error(self, error: BaseException, **kwargs: Any) -> None:
        self.failed.set()


@pytest.mark.parametrize("failing", [0, 1])
def test_an_error_of_one_is_none_of_both(run: Run, failing: int) -> None:
    heard, second_came = _Failing(), threading.Event()

    def script(request: dict[str, Any], number: int) -> Answer:
        if number:
            second_came.set()
        if number == failing:
            return Answer(status=500, held=second_came)
        return Answer("fine", held=heard.failed)

    with openai_server(script) as server:
        (outcome,) = run(chat(server.model()), config={"callbacks": [heard]})
        assert len(server.requests) == 2
    assert outcome.value.text == "fine"
    assert outcome.usage.calls == 2


def test_a_failure_of_both_is_one_try(run: Run) -> None:
    server: OpenAIServer

    def script(request: dict[str, Any], number: int) -> Answer:
        server.arrived(number + 1 + (number + 1) % 2)  # The other request of this try has come.
        return Answer(status=500)

    with openai_server(script) as server:
        policy = CallPolicy(hedge_after=AFTER, attempts=2, first_delay=0)
        (outcome,) = run(chat(server.model()), policy=policy)
        assert len(server.requests) == 4
    assert "after 2 tries" in str(outcome.error)
    assert outcome.usage.calls == 4


@pytest.mark.parametrize(("after", "calls"), [(AFTER, 2), (LATE, 1)])
def test_both_have_the_time_of_one_try(run: Run, after: float, calls: int) -> None:
    with openai_server([Answer(held=NEVER)]) as server:
        policy = CallPolicy(hedge_after=after, timeout=0.15, attempts=1)
        (outcome,) = run(chat(server.model()), policy=policy)
    assert "no reply within 0.15 s" in str(outcome.error)
    assert outcome.usage.calls == calls


def test_none_is_made_while_all_slots_are_taken(run: Run) -> None:
    with openai_server([Answer(held=NEVER)]) as server:
        policy = CallPolicy(hedge_after=AFTER, timeout=0.15, attempts=1, max_concurrency=1)
        (outcome,) = run(chat(server.model()), policy=policy)
    assert outcome.usage.calls == 1


@pytest.mark.slow
def test_of_many_slow_requests_few_are_made_twice(run: Run) -> None:
    enough = threading.Event()

    def script(request: dict[str, Any], number: int) -> Answer:
        if number == 49:
            enough.set()
        return Answer("x", held=enough)

    with openai_server(script) as server:
        model = server.model()
        outcomes = run(*(chat(model, str(at)) for at in range(40)))
        # There are ten extra requests at first, and one more for every ten.
        assert 50 <= sum(outcome.usage.calls for outcome in outcomes) <= 54


def test_samples_are_made_once(run: Run) -> None:
    with openai_server([Answer(held=NEVER)]) as server:
        (outcome,) = run(chat(server.model(), sample=0), policy=IN_VAIN)
    assert outcome.usage.calls == 1


def test_both_are_of_the_budget(run: Run) -> None:
    account = Account(model_calls=2, tokens=1000)
    with openai_server([Answer(held=NEVER), "x"]) as server, within_scope(Scope(account)):
        (outcome,) = run(chat(server.model(), "one two three"))
    assert outcome.value.text == "x"
    assert outcome.usage.calls == 2
    assert account.exhausted == "model_calls"
    assert account.reserve(0) is not None


def test_a_second_one_that_the_budget_refuses_has_reached_no_limit(run: Run) -> None:
    account = Account(tokens=20)
    with openai_server([Answer(held=NEVER)]) as server, within_scope(Scope(account)):
        call = chat(server.model(), "one two three", options={"max_tokens": 8})
        (outcome,) = run(call, policy=IN_VAIN)
    assert "no reply within" in str(outcome.error)
    assert outcome.usage.calls == 1
    assert account.exhausted is None


async def test_cancelling_ends_both() -> None:
    with openai_server([Answer(held=NEVER)]) as server:
        before = asyncio.all_tasks()
        task = asyncio.create_task(chat(server.model()).arun({}, HEDGED))
        await auntil(lambda: len(server.requests) == 2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert asyncio.all_tasks() == before


def test_no_label_is_of_both() -> None:
    """Take all labels from the reply that comes first, and none from the other."""
    second = "1. Entailment\n2. Contradiction"
    said = "The Alder mill has two red floors. The Brack mill has nine heavy doors."
    sample = Sample(answer=said, contexts=["The Alder mill has two red floors."])
    with openai_server([Answer("1. Contradiction", held=NEVER), second]) as server:
        checker = RefChecker(server.model(), claims="sentences", call_policy=HEDGED)
        found: Evaluation = checker.invoke(sample)
    assert [str(claim.label) for claim in found.claims] == ["Entailment", "Contradiction"]
    assert (found.usage.calls, found.passed) == (2, False)
