"""Test every call over real HTTP: outcomes, usage, retries, deadlines, slots, sharing, caches."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from langchain_core.caches import InMemoryCache
from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.runnables import RunnableLambda
from langchain_openai import ChatOpenAI

from demur.runtime import (
    CallPolicy,
    ChatCall,
    Reply,
    RunnableCall,
    Steps,
    UndeterminedError,
    adrive,
    ask_all,
    drive,
)
from support.calls import Run, chat, steps
from support.clock import Clock
from support.fakes import ScriptedModel
from support.openai_server import Answer, openai_server
from support.waiting import NEVER, PATIENCE, auntil, until

QUICK = CallPolicy(first_delay=0.01)


def together(count: int) -> Callable[[dict[str, Any], int], Answer]:
    """Return a server's script that answers only once `count` requests are there together."""
    barrier = threading.Barrier(count)

    def script(request: dict[str, Any], number: int) -> Answer:
        barrier.wait(PATIENCE)
        return Answer("x")

    return script


@pytest.fixture
def run(run: Run) -> Run:
    return partial(run, policy=QUICK)


def test_a_reply_comes_with_its_text_and_what_it_cost(run: Run) -> None:
    with openai_server(["one two three"]) as server:
        (outcome,) = run(chat(server.model(), "four words are here"))
    assert outcome.value == Reply("one two three")
    usage = outcome.usage
    assert (usage.calls, usage.cached, usage.input_tokens, usage.output_tokens) == (1, 0, 4, 3)
    assert usage.seconds > 0


def test_a_lasting_fault_is_not_tried_again(run: Run) -> None:
    with openai_server([Answer("no such thing", status=404)]) as server:
        (outcome,) = run(chat(server.model()))
        assert len(server.requests) == 1
    with pytest.raises(UndeterminedError, match="no such thing"):
        _ = outcome.value
    assert outcome.usage.calls == 1


def test_the_pause_is_what_the_server_asks_for(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    slept = SimpleNamespace(monotonic=time.monotonic, sleep=pauses.append)
    monkeypatch.setattr("demur.runtime.calls.time", slept)
    monkeypatch.setattr(asyncio, "sleep", sleep)
    with openai_server([Answer(status=429, headers={"Retry-After": "7"}), "fine"]) as server:
        (outcome,) = run(chat(server.model()))
    assert outcome.value.text == "fine"
    assert [one for one in pauses if one >= 1] == [7]


def test_a_pause_past_the_deadline_is_not_begun(run: Run) -> None:
    with openai_server([Answer(status=429, headers={"Retry-After": "3600"}), "fine"]) as server:
        (outcome,) = run(chat(server.model()))
        assert len(server.requests) == 1
    assert "429" in outcome.error


def test_tries_end(run: Run) -> None:
    with openai_server([Answer(status=500)]) as server:
        (outcome,) = run(chat(server.model()), policy=CallPolicy(attempts=3, first_delay=0))
        assert len(server.requests) == 3
    assert "after 3 tries" in outcome.error
    assert outcome.usage.calls == 3


def test_a_model_that_hangs_is_left_at_the_deadline(run: Run) -> None:
    with openai_server([Answer(held=NEVER)]) as server:
        policy = CallPolicy(timeout=0.1, deadline=0.3, first_delay=0, attempts=1_000_000)
        (outcome,) = run(chat(server.model()), policy=policy)
    assert "no reply within" in outcome.error


def test_waiting_for_a_slot_does_not_count_towards_the_deadline(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(monkeypatch, "demur.runtime.tries")

    def script(stage: str, messages: Sequence[BaseMessage]) -> str:
        clock.go_on(1000)
        return "x"

    model = ScriptedModel(script=script)
    policy = CallPolicy(deadline=60, max_concurrency=1)
    outcomes = run(*(chat(model, str(at)) for at in range(3)), policy=policy)
    assert [outcome.error for outcome in outcomes] == [None] * 3


def test_slots_are_shared_by_all_evaluations() -> None:
    with openai_server(together(3)) as server:
        model = server.model()
        policy = CallPolicy(attempts=1, max_concurrency=3)

        def evaluate(number: int) -> str | None:
            return drive(steps(chat(model, str(number))), {}, policy)[0][0].error

        with ThreadPoolExecutor(12) as pool:
            assert list(pool.map(evaluate, range(12))) == [None] * 12
        assert server.most_at_once == 3


def test_identical_requests_in_flight_are_sent_once(run: Run) -> None:
    asking: set[object] = set()

    class Counting(CallPolicy):
        """Be looked up by each request that asks whether an identical one is in flight."""

        def __hash__(self) -> int:
            asking.add(_current())
            return super().__hash__()

    def script(request: dict[str, Any], number: int) -> Answer:
        until(lambda: len(asking) == 7)
        return Answer("x")

    with openai_server(script) as server:
        model = server.model()
        same = [chat(model, "same") for _ in range(6)]
        outcomes = run(*same, chat(model, "other"), policy=Counting())
        assert len(server.requests) == 2
    assert {outcome.value.text for outcome in outcomes} == {"x"}
    assert sum(outcome.usage.calls for outcome in outcomes) == 2
    assert sum(outcome.usage.cached for outcome in outcomes) == 5


def _current() -> object:
    """Return the task or the thread in which this runs."""
    try:
        return asyncio.current_task()
    except RuntimeError:
        return threading.current_thread()


def test_requests_that_differ_in_an_option_are_not_shared(run: Run) -> None:
    with openai_server(together(2)) as server:
        model = server.model()
        run(*(chat(model, options={"max_tokens": at}) for at in (1, 2)))
        assert {request["max_completion_tokens"] for request in server.requests} == {1, 2}


def test_samples_are_never_shared(run: Run) -> None:
    with openai_server(together(4)) as server:
        model = server.model()
        run(*(chat(model, sample=at) for at in range(4)))
        assert len(server.requests) == 4
        first, *others = server.requests
        assert all(request == first for request in others), "the index itself is not sent"


def test_cached_replies_are_told_apart_and_samples_are_cached_apart(run: Run) -> None:
    with openai_server(lambda _, number: str(number)) as server:
        model = server.model(cache=InMemoryCache())
        first = [run(chat(model, sample=at))[0] for at in range(3)]
        second = [run(chat(model, sample=at))[0] for at in range(3)]
        assert len(server.requests) == 3
    assert [outcome.value.text for outcome in first] == ["0", "1", "2"]
    assert [outcome.value.text for outcome in second] == ["0", "1", "2"]
    assert [(o.usage.calls, o.usage.cached) for o in first] == [(1, 0)] * 3
    assert [(o.usage.calls, o.usage.cached, o.usage.input_tokens) for o in second] == [
        (0, 1, 0)
    ] * 3


def test_a_reply_is_read_with_what_came_beside_its_text(run: Run) -> None:
    tokens = {"Ent": -0.1, "Neutral": -2.5}
    cut = Answer("Ent", first_token=tokens, finish_reason="length")
    with openai_server([cut, Answer(None)]) as server:
        model = server.model()
        (outcome,) = run(chat(model, options={"logprobs": True, "top_logprobs": 2}))
        assert outcome.value == Reply("Ent", truncated=True, tokens=(("Ent", tokens),))
        (outcome,) = run(chat(model))
        assert outcome.value == Reply("")


def test_a_failing_runnable_is_an_outcome_and_others_go_on(run: Run) -> None:
    def fail(_: str) -> str:
        raise ValueError("out of order")

    broken, fine = run(
        RunnableCall(RunnableLambda(fail), "x", "retrieval"),
        RunnableCall(RunnableLambda(str.upper), "x", "retrieval"),
    )
    assert broken.error == "ValueError: out of order"
    assert fine.value == "X"


def test_usage_is_accounted_by_stage() -> None:
    with openai_server(["a b"]) as server:
        model = server.model()

        def twice() -> Steps[str]:
            yield from ask_all([ChatCall(model, [HumanMessage("one")], "first")])
            yield from ask_all(
                [ChatCall(model, [HumanMessage(str(at))], "second") for at in range(3)]
            )
            return "done"

        result, ledger = drive(twice(), {}, QUICK)
    assert result == "done"
    assert {stage: usage.calls for stage, usage in ledger.usage.items()} == {
        "first": 1,
        "second": 3,
    }


def test_an_interrupt_leaves_undone_what_has_not_begun() -> None:
    def script(stage: str, messages: Sequence[BaseMessage]) -> str:
        if messages[-1].content.startswith("<claim-0>"):
            raise KeyboardInterrupt
        free.wait(PATIENCE)
        return "x"

    free = threading.Event()
    model = ScriptedModel(script=script)
    calls = [chat(model, f"<claim-{at}>") for at in range(20)]
    with pytest.raises(KeyboardInterrupt):
        drive(steps(*calls), {}, CallPolicy(max_concurrency=3))
    free.set()
    assert len(model.requests) <= 3


async def test_cancelling_one_of_two_that_share_a_request_leaves_the_other() -> None:
    free = threading.Event()
    with openai_server([Answer("x", held=free)]) as server:
        call = chat(server.model())
        first = asyncio.create_task(call.arun({}, QUICK))
        second = asyncio.create_task(call.arun({}, QUICK))
        await auntil(lambda: server.requests)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        free.set()
        assert (await second).value.text == "x"
        assert len(server.requests) == 1


async def test_cancelling_leaves_no_task_and_no_slot_taken() -> None:
    with openai_server([Answer(held=NEVER), "x"]) as server:
        model = server.model()
        policy = CallPolicy(max_concurrency=1)
        task = asyncio.create_task(adrive(steps(chat(model, "a")), {}, policy))
        await auntil(lambda: server.requests)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert asyncio.all_tasks() == {asyncio.current_task()}
        (outcome,), _ = await adrive(steps(chat(model, "b")), {}, policy)
        assert outcome.value.text == "x"


def test_a_model_may_bring_a_policy_of_its_own(run: Run) -> None:
    class Patient(ChatOpenAI):
        call_policy: CallPolicy = CallPolicy(attempts=1, max_concurrency=2)

    for policy, limit in ((None, 2), (CallPolicy(attempts=1), 6)):
        with openai_server(together(limit)) as server:
            model = Patient(base_url=server.url, api_key="key", model="test", max_retries=0)
            outcomes = run(*(chat(model, str(at)) for at in range(6)), policy=policy)
            assert [outcome.error for outcome in outcomes] == [None] * 6
            assert server.most_at_once == limit


# --- Exceptions that are not failures ----------------------------------------------------------


def test_an_interrupt_of_langgraph_passes_through(run: Run) -> None:
    errors = pytest.importorskip("langgraph.errors")
    interrupt = errors.GraphInterrupt(())
    asked: list[str] = []

    def stop(*_: Any) -> Any:
        asked.append("stop")
        raise interrupt

    model = ScriptedModel(script=stop)
    for call in (RunnableCall(RunnableLambda(stop), "x", "stage"), chat(model)):
        with pytest.raises(errors.GraphInterrupt) as raised:
            run(call)
        assert raised.value is interrupt
        with pytest.raises(errors.GraphInterrupt):
            run(RunnableCall(RunnableLambda(str), "x", "stage"), call)
    assert asked == 4 * ["stop"]  # The call is not tried again.
