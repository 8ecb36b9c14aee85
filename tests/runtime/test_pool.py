"""Test the pool, mostly through the calls that are made in its threads."""

from __future__ import annotations

import asyncio
import contextvars
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage, HumanMessage

from demur.runtime import CallPolicy, ChatCall, ask, drive, in_own_loop, pool
from support.fakes import ScriptedModel
from support.processes import told
from support.waiting import PATIENCE, wait

_who: contextvars.ContextVar[str] = contextvars.ContextVar("who", default="nobody")


def _watching(seen: list[Any], what: Callable[[], Any]) -> ScriptedModel:
    """Return a model that records the result of `what()` in each call."""

    def script(stage: str, messages: Sequence[BaseMessage]) -> str:
        seen.append(what())
        return "x"

    return ScriptedModel(script=script)


def _ask(model: BaseChatModel, number: int) -> None:
    call = ChatCall(model, [HumanMessage(f"<claim-{number}>")], "stage")
    assert drive(ask(call), {}, CallPolicy())[0].text == "x"


def test_a_thread_sees_the_context_of_each_caller_and_keeps_none() -> None:
    seen: list[str] = []
    model = _watching(seen, _who.get)
    for name in ("Ann", "Bo"):
        token = _who.set(name)
        _ask(model, len(seen))
        _who.reset(token)
    _ask(model, len(seen))
    assert seen == ["Ann", "Bo", "nobody"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_forked_process_has_threads_of_its_own() -> None:
    def working() -> str:
        return f"{pool.within(PATIENCE, os.getpid) == os.getpid()}"

    assert working() == told(working) == "True"


_ALONE = """
import os, signal, threading
from queue import SimpleQueue
from demur.runtime.pool import as_completed, take

# An interrupt ends the wait of the main thread, although another thread has caught it.
asked, never = threading.Event(), threading.Event()

class Empty(SimpleQueue):
    def get(self, timeout):
        asked.set()
        return super().get(timeout=timeout)

def interrupt():
    asked.wait()
    os.kill(os.getpid(), signal.SIGINT)
    never.wait()

signal.signal(signal.SIGINT, signal.default_int_handler)
threading.Thread(target=interrupt, daemon=True).start()
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # in this thread alone
try:
    take(Empty())
except KeyboardInterrupt:
    print("heard")

# Work that is under way does not hold up the interpreter's end.
begun = threading.Event()
work = lambda number: begun.set() or never.wait() if number else number
found = as_completed(work, range(2), 2)
print(next(found), begun.wait())
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="signals are others here")
def test_waiting_hears_an_interrupt_and_the_interpreter_waits_for_no_work() -> None:
    command = [sys.executable, "-c", _ALONE]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.stdout == "heard\n0 True\n", done.stderr


# --- as_completed ---------------------------------------------------------------------------------


def test_results_come_in_the_order_in_which_they_are_ready() -> None:
    free = {name: threading.Event() for name in "abc"}
    free["c"].set()

    def work(name: str) -> str:
        wait(free[name])
        return name.upper()

    found = pool.as_completed(work, "abc", 3)
    assert next(found) == "C"
    free["a"].set()
    assert next(found) == "A"
    free["b"].set()
    assert list(found) == ["B"]


def test_items_are_taken_as_there_is_room() -> None:
    taken: list[int] = []

    def items() -> Iterator[int]:
        for number in range(10):
            taken.append(number)
            yield number

    together = threading.Barrier(3)

    def work(number: int) -> int:
        if number < 3:
            together.wait(PATIENCE)
        return number

    found = pool.as_completed(work, items(), 3)
    assert taken == []
    first = next(found)
    assert taken == [0, 1, 2]
    assert sorted([first, *found]) == list(range(10))


def test_who_stops_listening_has_nothing_further_begun() -> None:
    taken: list[int] = []
    begun, free, ended = threading.Event(), threading.Event(), threading.Event()

    def items() -> Iterator[int]:
        for number in range(10):
            taken.append(number)
            yield number

    def work(number: int) -> int:
        if number:
            begun.set()
            wait(free)
            ended.set()
        return number

    found = pool.as_completed(work, items(), 2)
    assert next(found) == 0
    wait(begun)
    found.close()  # type: ignore[attr-defined]  # and it waits for none
    free.set()
    wait(ended)
    assert taken == [0, 1]


def test_an_exception_of_the_work_is_the_callers() -> None:
    begun: list[int] = []

    def work(number: int) -> int:
        begun.append(number)
        if number == 2:
            raise KeyError(number)
        return number

    found = pool.as_completed(work, range(10), 1)
    assert [next(found), next(found)] == [0, 1]
    with pytest.raises(KeyError, match="2"):
        next(found)
    assert begun == [0, 1, 2]


def test_work_sees_the_callers_context() -> None:
    token = _who.set("Ann")
    found = pool.as_completed(lambda _: _who.get(), range(3), 2)
    assert list(found) == ["Ann"] * 3
    _who.reset(token)


def test_a_coroutine_function_runs_in_a_loop_of_its_own_wherever_it_is_called() -> None:
    seen: list[object] = []

    async def work() -> str:
        seen.append(asyncio.get_running_loop())
        return _who.get()

    async def called_by() -> str:
        seen.append(asyncio.get_running_loop())
        return in_own_loop(work)

    token = _who.set("Ann")
    assert in_own_loop(work) == asyncio.run(called_by()) == "Ann"
    _who.reset(token)
    first, asking, again = seen
    assert first is again  # All work shares one loop, so a client can be reused.
    assert asking is not first

    async def inside() -> str:
        return in_own_loop(work)

    assert in_own_loop(inside) == "nobody"  # In the same loop, it would wait for itself.
    assert seen[-1] is not first

    async def broken() -> None:
        raise KeyError("x")

    with pytest.raises(KeyError):
        in_own_loop(broken)
