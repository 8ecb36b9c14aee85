"""The threads of the sync driver, seen from the calls that are made in them."""

from __future__ import annotations

import contextvars
import os
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage, HumanMessage

from demur.models import threads
from demur.models.calls import ChatCall, ask, drive
from demur.models.retry import CallPolicy
from support.fakes import ScriptedModel

_who: contextvars.ContextVar[str] = contextvars.ContextVar("who", default="nobody")


def _watching(seen: list[Any], what: Callable[[], Any]) -> ScriptedModel:
    """A model that takes down `what` it sees in each call."""

    def script(stage: str, messages: Sequence[BaseMessage]) -> str:
        seen.append(what())
        return "x"

    return ScriptedModel(script=script)


def _ask(model: BaseChatModel, number: int) -> None:
    call = ChatCall(model, [HumanMessage(f"<claim-{number}>")], "stage")
    (outcome,) = drive(ask([call]), {}, CallPolicy(timeout=60))[0]
    assert outcome.error is None


def test_calls_one_after_another_share_their_threads() -> None:
    seen: list[threading.Thread] = []
    model = _watching(seen, threading.current_thread)
    for at in range(50):
        _ask(model, at)
    # A thread may not be free again at once, so there can be a few.
    assert len(set(seen)) < 25
    assert all(thread.daemon for thread in seen)


def test_a_thread_sees_the_context_of_each_caller_and_keeps_none() -> None:
    seen: list[str] = []
    model = _watching(seen, _who.get)
    for name in ("Ann", "Bo"):
        token = _who.set(name)
        _ask(model, len(seen))
        _who.reset(token)
    _ask(model, len(seen))
    assert seen == ["Ann", "Bo", "nobody"]


def test_threads_that_nobody_needs_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "_IDLE_SECONDS", 0.01)
    seen: list[threading.Thread] = []
    model = _watching(seen, threading.current_thread)
    with monkeypatch.context() as patch:
        patch.setattr(threads, "_idle", deque())  # none of another test's
        for at in range(20):  # with pauses about as long as a thread waits
            _ask(model, at)
            time.sleep(0.005 * (at % 4))
        for thread in seen:
            thread.join(60)
        assert not any(thread.is_alive() for thread in seen)
        assert not threads._idle


_FORKING = """
import os, sys
from langchain_core.messages import HumanMessage
from demur.models.calls import ChatCall, ask, drive
from demur.models.retry import CallPolicy
from support.fakes import scripted

def steps():
    return (yield from ask([ChatCall(model, [HumanMessage("<claim-1>")], "stage")]))

def call():
    return drive(steps(), {}, CallPolicy(attempts=1, timeout=30))[0][0].error

model = scripted("", claim="x")
assert call() is None
child = os.fork()
if not child:
    os._exit(0 if call() is None else 1)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_process_has_threads_of_its_own() -> None:
    path = os.pathsep.join([str(Path(__file__).parents[1]), *sys.path])
    command = [sys.executable, "-c", _FORKING]
    subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, check=True, timeout=120)
