"""Test what a scope's time bounds: requests, pauses, slots, and work without a limit."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from langchain_core.runnables import RunnableLambda

from demur.runtime import (
    Account,
    CallPolicy,
    LocalCall,
    Outcome,
    RunnableCall,
    Scope,
    within_scope,
)
from support.calls import Run, chat
from support.clock import Clock
from support.fakes import ScriptedModel, saying
from support.openai_server import Answer, openai_server
from support.waiting import NEVER, PATIENCE, wait

TIME, LATE = 0.1, 3600.0


@pytest.fixture
def free() -> Iterator[threading.Event]:
    """Give an event that is set at the end of the test, to release hanging work."""
    event = threading.Event()
    yield event
    event.set()


@pytest.fixture
def run(run: Run, free: threading.Event) -> Run:
    """Return a function that makes calls with little time, in threads or in an event loop."""

    def made(*calls: Any, seconds: float = TIME) -> Sequence[Outcome[Any]]:
        with within_scope(Scope().ending_within(seconds)):
            return run(*calls)

    return made


def test_the_earlier_end_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    scope = Scope()
    assert scope.remaining_seconds() is None
    assert scope.ending_within(None) is scope
    both = scope.ending_within(50), scope.ending_within(1)
    assert [one.ending_within(20).remaining_seconds() for one in both] == [20, 1]
    assert Scope(Account(seconds=3)).ending_within(50).remaining_seconds() == 3
    assert Scope(Account(model_calls=1)).remaining_seconds() is None
    clock.go_on(30)
    assert [one.remaining_seconds() for one in both] == [20, 0]


def test_a_request_gets_what_is_left(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    Clock(monkeypatch)  # The request begins without a delay, however slow the machine is.
    with openai_server([Answer(held=NEVER)]) as server:
        (outcome,) = run(chat(server.model()))
    assert "no reply within 0.1 s" in str(outcome.error)
    assert "Timeout" in str(outcome.cause)
    assert outcome.usage.calls == 1


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
        wait(free)
        return "x"

    model = ScriptedModel(script=script)

    async def beside() -> Outcome[Any]:
        first = asyncio.create_task(chat(model, "first").arun({}, policy))
        await asyncio.to_thread(wait, begun)
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
        wait(begun)
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
    model = saying("x")
    (outcome,) = run(chat(model), seconds=1e-9)
    assert outcome.cause == "the time for judging is up"
    assert model.requests == []


def test_work_that_hangs_is_left(run: Run, free: threading.Event) -> None:
    def block(*_: Any) -> None:
        free.wait()

    async def ablock(*_: Any) -> None:
        await asyncio.Future()

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


def test_work_that_is_quick_is_done_though_the_time_is_up(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Do quick work although the time is up, so that a paid reply can still be kept."""
    monkeypatch.setattr("demur.runtime.calls.GRACE", PATIENCE)  # what is quick on any machine
    written: list[str] = []
    (outcome,) = run(LocalCall(lambda: written.append("paid"), "keeping"), seconds=1e-9)
    assert outcome.error is None
    assert written == ["paid"]


def test_one_who_has_time_does_not_share_the_request_of_one_who_has_not(
    free: threading.Event,
) -> None:
    with openai_server([Answer("x", held=free)]) as server:
        model = server.model()
        found: dict[float, Outcome[Any]] = {}

        def ask(seconds: float) -> None:
            with within_scope(Scope().ending_within(seconds)):
                found[seconds] = chat(model).run({}, None)

        patient, hasty = (threading.Thread(target=ask, args=(it,)) for it in (LATE, TIME))
        patient.start()
        server.arrived(1)
        hasty.start()
        hasty.join(PATIENCE)
        assert found[TIME].error is not None
        free.set()
        patient.join(PATIENCE)
    assert found[LATE].value.text == "x"
