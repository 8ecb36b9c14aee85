"""Test what a scope's time bounds: requests, pauses, slots, and work without a limit."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableLambda

from demur.runtime import (
    Account,
    CallPolicy,
    ChatCall,
    LocalCall,
    Outcome,
    RunnableCall,
    Scope,
    Steps,
    adrive,
    ask_all,
    drive,
    within_scope,
)
from support.fakes import ScriptedModel
from support.openai_server import Answer, openai_server
from support.waiting import PATIENCE, until

TIME, LATE = 0.1, 60.0

Run = Callable[..., Sequence[Outcome[Any]]]


def _steps(calls: Sequence[Any]) -> Steps[list[Outcome[Any]]]:
    return (yield from ask_all(calls))


@pytest.fixture
def free() -> Iterator[threading.Event]:
    """Give an event that is set at the end of the test, to release hanging work."""
    event = threading.Event()
    yield event
    event.set()


@pytest.fixture(params=["sync", "async"])
def run(request: pytest.FixtureRequest, free: threading.Event) -> Run:
    """Return a function that makes calls with little time, in threads or in an event loop."""

    def made(
        *calls: Any, policy: CallPolicy | None = None, seconds: float = TIME
    ) -> Sequence[Outcome[Any]]:
        async def till_free() -> Sequence[Outcome[Any]]:
            try:
                return (await adrive(_steps(calls), {}, policy))[0]
            finally:
                free.set()  # The loop cannot end before its threads do.

        began = time.monotonic()
        with within_scope(Scope().ending_within(seconds)):
            if request.param == "sync":
                found = drive(_steps(calls), {}, policy)[0]
            else:
                found = asyncio.run(till_free())
        assert time.monotonic() - began < LATE / 4
        return found

    return made


def chat(model: Any, text: str = "hello") -> ChatCall:
    return ChatCall(model, [HumanMessage(text)], "stage")


def test_the_earlier_end_holds() -> None:
    scope = Scope()
    assert scope.remaining_seconds() is None
    assert scope.ending_within(None) is scope
    for first, second in ((50.0, 1.0), (1.0, 50.0)):
        left = scope.ending_within(first).ending_within(second).remaining_seconds()
        assert left is not None
        assert 0 < left <= 1
    left = Scope(Account(seconds=1)).ending_within(50).remaining_seconds()
    assert left is not None
    assert 0 < left <= 1
    assert Scope(Account(model_calls=1)).remaining_seconds() is None
    assert scope.ending_within(1e-9).remaining_seconds() == 0


def test_what_is_known_in_it_is_shared() -> None:
    scope = Scope()
    scope.ending_within(1).known["key"] = "value"
    assert scope.known == {"key": "value"}


def test_a_request_gets_what_is_left(run: Run) -> None:
    with openai_server([Answer("late", delay=LATE)]) as server:
        (outcome,) = run(chat(server.model()))
        assert len(server.requests) == 1
    assert "no reply within 0.0" in str(outcome.error) or "0.1 s" in str(outcome.error)
    assert outcome.cause is not None
    assert "Timeout" in outcome.cause


def test_a_pause_that_takes_all_that_is_left_is_not_begun(run: Run) -> None:
    with openai_server([Answer(status=429, headers={"Retry-After": "60"}), "x"]) as server:
        (outcome,) = run(chat(server.model()), seconds=30)
        assert len(server.requests) == 1
    assert str(outcome.cause).endswith("RateLimitError 429")


@pytest.mark.parametrize("taken_by", ["a thread", "a task"])
def test_a_slot_is_waited_for_no_longer(taken_by: str, free: threading.Event) -> None:
    policy = CallPolicy(max_concurrency=1)
    begun = threading.Event()

    def script(stage: str, messages: Any) -> str:
        begun.set()
        free.wait(LATE)
        return "x"

    model = ScriptedModel(script=script)

    async def beside() -> Outcome[Any]:
        first = asyncio.create_task(chat(model, "first").arun({}, policy))
        await asyncio.to_thread(begun.wait, PATIENCE)
        with within_scope(Scope().ending_within(TIME)):
            late = await chat(model, "late").arun({}, policy)
        free.set()
        assert (await first).value.text == "x"
        return late

    if taken_by == "a task":
        outcome = asyncio.run(beside())
    else:
        first = threading.Thread(target=chat(model, "first").run, args=({}, policy))
        first.start()
        assert begun.wait(PATIENCE)
        with within_scope(Scope().ending_within(TIME)):
            outcome = chat(model, "late").run({}, policy)
        free.set()
        first.join(PATIENCE)
    assert outcome.cause == "all slots for requests to the model were taken until the time was up"
    assert (outcome.usage.calls, len(model.requests)) == (0, 1)
    # The slot is given back, and the call that waited in vain holds none.
    assert chat(model, "next").run({}, policy).value.text == "x"
    assert asyncio.run(chat(model, "next").arun({}, policy)).value.text == "x"


def test_no_request_is_made_once_the_time_is_up(run: Run) -> None:
    model = ScriptedModel(script=lambda stage, messages: "x")
    (outcome,) = run(chat(model), seconds=1e-9)
    assert outcome.cause == "the time for judging is up"
    assert model.requests == []


def test_work_that_hangs_is_left(run: Run, free: threading.Event) -> None:
    def block(*_: Any) -> None:
        free.wait(LATE)

    async def ablock(*_: Any) -> None:
        await asyncio.sleep(LATE)

    calls = (
        LocalCall(block, "similarity"),
        RunnableCall(RunnableLambda(block), "x", "retrieval"),
        RunnableCall(RunnableLambda(block, ablock), "x", "retrieval"),
    )
    outcomes = run(*calls)
    assert [outcome.cause for outcome in outcomes] == ["TimeoutError"] * 3
    assert all("did not end within" in str(outcome.error) for outcome in outcomes)
    assert all(outcome.usage.seconds > 0 for outcome in outcomes)


def test_an_error_of_the_works_own_stays_what_it_was(run: Run) -> None:
    def fail(*_: Any) -> None:
        raise TimeoutError("the index is closed")

    for call in (LocalCall(fail, "local"), RunnableCall(RunnableLambda(fail), "x", "retrieval")):
        (outcome,) = run(call, seconds=LATE)
        assert outcome.error == "TimeoutError: the index is closed"


def test_work_that_is_quick_is_done_though_the_time_is_up(run: Run) -> None:
    """Do quick work although the time is up, so that a paid reply can still be kept."""
    written: list[str] = []
    (outcome,) = run(LocalCall(lambda: written.append("paid"), "keeping"), seconds=1e-9)
    assert outcome.error is None
    assert written == ["paid"]


def test_without_a_limit_work_runs_where_it_is_called() -> None:
    seen: list[threading.Thread] = []

    def look(*_: Any) -> None:
        seen.append(threading.current_thread())

    with within_scope(Scope(Account(model_calls=1))):
        drive(_steps([LocalCall(look, "local")]), {}, None)
        drive(_steps([RunnableCall(RunnableLambda(look), "x", "retrieval")]), {}, None)
    assert seen == [threading.current_thread()] * 2


def test_one_who_has_time_does_not_get_the_failure_of_one_who_has_not() -> None:
    with openai_server([Answer("x", delay=5 * TIME)]) as server:
        model = server.model()
        found: dict[float, Outcome[Any]] = {}

        def ask(seconds: float) -> None:
            with within_scope(Scope().ending_within(seconds)):
                found[seconds] = chat(model).run({}, None)

        threads = [threading.Thread(target=ask, args=(seconds,)) for seconds in (TIME, LATE)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)
        until(lambda: len(server.requests) == 2)
    assert found[TIME].error is not None
    assert found[LATE].value.text == "x"
