"""Test that `on_error` decides about an answer whose judge is too slow, within the limits.

What hangs here hangs until the test ends: a guard that waited for it would not end in time.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import pytest
from allpairspy import AllPairs
from langchain_core.documents import Document
from langchain_core.messages import HumanMessage
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda
from langchain_openai import ChatOpenAI

from demur import Budget, Evaluation, Guard, RefChecker, Regenerate, Sample
from demur.evaluators import Evaluator
from demur.guard import REFUSAL, UNCHECKED, EvaluatorFailed, Guarded
from demur.runtime import ChatCall, LocalCall, Steps, ask
from support.clock import Clock
from support.fakes import ScriptedModel, saying
from support.openai_server import Answer, openai_server
from support.streams import Client, Telling
from support.waiting import NEVER, PATIENCE, wait

SAID = "The tower is 84 metres tall."
TIME = 0.1
"""The number of seconds that judging may take."""
LIMITS = {"of all": Budget(seconds=TIME), "of judging": Budget(judge_seconds=TIME)}


class Blocked:
    """Provide work that ends when the test ends."""

    def __init__(self) -> None:
        self.free = threading.Event()
        self.begun = 0

    def block(self, *_: Any) -> Any:
        self.begun += 1
        self.free.wait()

    async def ablock(self, *_: Any) -> Any:
        self.begun += 1
        await asyncio.Future()

    async def deaf(self, *_: Any) -> Any:
        """Ignore cancellation."""
        self.begun += 1
        while not self.free.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(0.01)


@pytest.fixture
def blocked() -> Iterator[Blocked]:
    made = Blocked()
    yield made
    made.free.set()


# --- Judges that come too late -------------------------------------------------------------------


@contextmanager
def trickling() -> Iterator[str]:
    """Run a server that sends a byte from time to time and never finishes its reply."""
    closing = threading.Event()
    listening = socket.create_server(("127.0.0.1", 0), backlog=64)

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listening.accept()
                threading.Thread(target=trickle, args=(connection,), daemon=True).start()

    def trickle(connection: socket.socket) -> None:
        with contextlib.suppress(OSError), connection:
            connection.recv(65536)
            head = (
                "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 9999\r\n\r\n"
            )
            connection.sendall(head.encode())
            while not closing.wait(0.02):
                connection.sendall(b" ")

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/v1"
    finally:
        closing.set()
        listening.close()


@contextmanager
def asking(answer: Answer) -> Iterator[RefChecker]:
    """Yield a RefChecker on a server that always gives this answer."""
    with openai_server([answer]) as server:
        yield RefChecker(server.model(), claims="sentences")


@contextmanager
def of_a_trickle(blocked: Blocked) -> Iterator[RefChecker]:
    with trickling() as url:
        model = ChatOpenAI(base_url=url, api_key="key", model="test", max_retries=0)
        yield RefChecker(model, claims="sentences")


class Local(Evaluator):
    """Compute in this process, as a similarity does."""

    work: Callable[[], Any]

    @property
    def claim_level(self) -> bool:
        return True

    def _steps(self, sample: Sample) -> Steps[Evaluation]:
        yield from ask(LocalCall(self.work, "similarity"), "the similarity failed")
        return Evaluation(name="Local", passed=True)


class Searching(BaseRetriever):
    """Retrieve nothing until the work ends."""

    work: Callable[[], Any]

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        self.work()
        return []


Judging = Callable[[Blocked], AbstractContextManager[Any]]
BY_CLAIMS: dict[str, Judging] = {
    "a server that hangs": lambda _: asking(Answer(held=NEVER)),
    "a server that trickles": of_a_trickle,
    "a server that always fails": lambda _: asking(Answer(status=500)),
    "a similarity that hangs": lambda blocked: contextlib.nullcontext(Local(work=blocked.block)),
}
"""Judges that can also judge sentences."""
AS_A_WHOLE: dict[str, Judging] = {
    "a function that blocks": lambda blocked: contextlib.nullcontext(blocked.block),
    "an async function that hangs": lambda blocked: contextlib.nullcontext(blocked.ablock),
    "one that cannot be cancelled": lambda blocked: contextlib.nullcontext(blocked.deaf),
    "a Runnable of somebody else's": lambda blocked: contextlib.nullcontext(
        RunnableLambda(blocked.block, blocked.ablock)
    ),
    "a retriever that hangs": lambda blocked: contextlib.nullcontext(
        RefChecker(
            saying("x"),
            retriever=Searching(work=blocked.block),
        )
    ),
}
JUDGES = {**BY_CLAIMS, **AS_A_WHOLE}


def chain() -> Telling:
    return Telling(SAID)


def found_by(judge: Any, way: str, blocked: Blocked, **options: Any) -> Guarded[Any] | str:
    """Run a guard and return its result, and release the blocked work as soon as it is known."""
    guard: Guard[Any, Any] = Guard(
        chain(), judge, **{"contexts": lambda _: [SAID], "on_fail": "abstain", **options}
    )

    async def till_free(result: Awaitable[Any]) -> Any:
        try:
            return await result
        finally:
            blocked.free.set()  # Threads of the loop would delay its end.

    if way == "invoke":
        return guard.with_trace().invoke("How tall?")
    if way == "ainvoke":
        return asyncio.run(till_free(guard.with_trace().ainvoke("How tall?")))
    if way == "stream":
        return Client().read(guard, "How tall?", "sync").text
    return asyncio.run(till_free(Client().aread(guard, "How tall?"))).text


def outcome(found: Guarded[Any] | str) -> tuple[Any, str, str]:
    assert isinstance(found, Guarded)
    return found.output, found.trace.outcome, found.trace.attempts[-1].verdict


@pytest.fixture(params=["invoke", "ainvoke"])
def way(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "limit", "way"), [*AllPairs([[*JUDGES], [*LIMITS], ["invoke", "ainvoke"]])]
)
def test_a_judge_that_is_late_could_not_decide(
    name: str, limit: str, way: str, blocked: Blocked
) -> None:
    with JUDGES[name](blocked) as judge:
        found = found_by(judge, way, blocked, budget=LIMITS[limit])
    assert found.output == UNCHECKED  # type: ignore[union-attr]
    assert found.trace.attempts[-1].verdict == "undetermined"  # type: ignore[union-attr]


STREAMS = [["stream", "astream"], ["buffer", "sentence"]]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "limit", "reading", "streaming"), [*AllPairs([[*BY_CLAIMS], [*LIMITS], *STREAMS])]
)
def test_a_stream_ends_in_time_too(
    name: str, limit: str, reading: str, streaming: str, blocked: Blocked
) -> None:
    with BY_CLAIMS[name](blocked) as judge:
        options: dict[str, Any] = {"streaming": streaming, "budget": LIMITS[limit]}
        assert found_by(judge, reading, blocked, **options) == UNCHECKED


@pytest.mark.slow
@pytest.mark.parametrize(("limit", "way"), [("of all", "invoke"), ("of judging", "ainvoke")])
def test_on_error_decides(limit: str, way: str, blocked: Blocked) -> None:
    budget = LIMITS[limit]
    opened = found_by(blocked.block, way, blocked, budget=budget, on_error="open")
    assert outcome(opened) == (SAID, "evaluator_failed", "undetermined")
    blocked.free.clear()
    with pytest.raises(EvaluatorFailed) as failed:
        found_by(blocked.block, way, blocked, budget=budget, on_error="raise")
    trace = failed.value.trace
    assert trace.limit == ("seconds" if limit == "of all" else None)
    assert trace.attempts[-1].evaluations[0].cause == "TimeoutError"


@pytest.mark.slow
def test_on_error_decides_about_sentences(blocked: Blocked) -> None:
    options: dict[str, Any] = {"streaming": "sentence", "budget": LIMITS["of judging"]}
    judge = Local(work=blocked.block)
    assert found_by(judge, "astream", blocked, on_error="open", **options) == SAID
    blocked.free.clear()
    with pytest.raises(EvaluatorFailed):
        found_by(judge, "stream", blocked, on_error="raise", **options)


def test_what_a_slow_judge_has_spent_is_counted(
    way: str, blocked: Blocked, monkeypatch: pytest.MonkeyPatch
) -> None:
    Clock(monkeypatch)  # The request begins in time on a slow machine, too, ...
    monkeypatch.setattr("demur.guard.call.GRACE", PATIENCE)  # ... and the judge can report it.
    with asking(Answer(held=NEVER)) as judge:
        found = found_by(judge, way, blocked, budget=Budget(judge_seconds=TIME))
    assert isinstance(found, Guarded)
    assert found.trace.usage.calls == 1
    (evaluation,) = found.trace.attempts[0].evaluations
    assert "no reply within 0.1 s" in str(evaluation.error)


# --- Time that passes by a clock ------------------------------------------------------------------


class Late(Evaluator):
    """Pass an answer, but let the time go by before a model is asked about one that is late."""

    clock: Any
    late: Callable[[Sample], bool] = lambda sample: True
    after: Any = None
    """An event to wait for before the time goes by."""

    def _steps(self, sample: Sample) -> Steps[Evaluation]:
        if self.late(sample):
            if self.after is not None:
                yield from ask(LocalCall(lambda: wait(self.after), "waiting"))
            self.clock.go_on(100)
        model = saying("x")
        yield from ask(ChatCall(model, [HumanMessage(sample.answer)], "stage"))
        return Evaluation(name="Late", passed=True)


MINUTE = Budget(judge_seconds=60)


@pytest.mark.parametrize("passed", [True, False])
def test_of_several_the_slow_one_alone_could_not_decide_and_a_rejection_stands(
    passed: bool, way: str, blocked: Blocked, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = threading.Event()

    def quick(sample: Sample) -> bool:
        done.set()
        return passed

    judges = [quick, Late(clock=Clock(monkeypatch), after=done)]
    found = found_by(judges, way, blocked, budget=MINUTE, on_error="closed" if passed else "open")
    assert isinstance(found, Guarded)
    assert [one.finding for one in found.trace.attempts[0].evaluations] == [
        "passed" if passed else "failed",
        "undetermined",
    ]
    undecided = (UNCHECKED, "evaluator_failed", "undetermined")
    assert outcome(found) == (undecided if passed else (REFUSAL, "abstained", "failed"))


def test_each_answer_has_the_time_of_its_own(
    way: str, blocked: Blocked, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(monkeypatch)

    def script(stage: str, messages: Any) -> str:
        clock.go_on(50)
        return "no"

    model = ScriptedModel(script=script)

    class Strict(Evaluator):
        def _steps(self, sample: Sample) -> Steps[Evaluation]:
            yield from ask(ChatCall(model, [HumanMessage(sample.answer)], "stage"))
            return Evaluation(name="Strict", passed=False)

    answers = iter(["One.", "Two.", "Three."])
    budget = Budget(attempts=3, judge_seconds=60)
    guard = Guard(lambda _: next(answers), Strict(), budget=budget, on_fail=Regenerate())
    traced = guard.with_trace()
    found = traced.invoke("?") if way == "invoke" else asyncio.run(traced.ainvoke("?"))
    assert [one.verdict for one in found.trace.attempts] == ["failed"] * 3


def test_a_chain_that_took_all_the_time_leaves_a_quick_judge_its_say(
    way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(monkeypatch)
    monkeypatch.setattr("demur.guard.call.GRACE", PATIENCE)  # what is quick on any machine

    def slow(_: Any) -> str:
        clock.go_on(100)
        return SAID

    guard = Guard(slow, lambda sample: "84" in sample.answer, budget=Budget(seconds=60))
    found = guard.invoke("?") if way == "invoke" else asyncio.run(guard.ainvoke("?"))
    assert found == SAID


# --- Nothing goes on ------------------------------------------------------------------------------


def test_an_evaluator_that_was_left_behind_asks_no_model(blocked: Blocked) -> None:
    model = saying("1. Entailment")
    ended = threading.Event()

    class Dawdling(Evaluator):
        def _steps(self, sample: Sample) -> Steps[Evaluation]:
            yield from ()
            blocked.free.wait()
            try:
                yield from ask(ChatCall(model, [HumanMessage("late")], "stage"))
            finally:
                ended.set()
            return Evaluation(name="Dawdling", passed=True)

    found = found_by(Dawdling(), "invoke", blocked, budget=LIMITS["of judging"])
    assert outcome(found) == (UNCHECKED, "evaluator_failed", "undetermined")
    blocked.free.set()
    wait(ended)
    assert model.requests == []


async def test_nothing_is_left_running(blocked: Blocked) -> None:
    before = asyncio.all_tasks()
    guard = Guard(chain(), blocked.ablock, blocked.ablock, budget=Budget(judge_seconds=TIME))
    assert await guard.ainvoke("?") == UNCHECKED
    assert asyncio.all_tasks() == before
