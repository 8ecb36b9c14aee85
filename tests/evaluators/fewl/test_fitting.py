"""Test `fit`, which asks beforehand: no kept reply is paid for twice, whatever interrupts it."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import BaseMessage

from demur import FEWL
from demur.evaluators import Fitted, NeighborStore
from support.fakes import isolated
from support.fewl import PAIRS, QUESTION, fewl, model, store
from support.openai_server import Answer, openai_server
from support.vectors import Told
from support.waiting import PATIENCE

TESTS = Path(__file__).parents[2]
QUESTIONS = [f"0 1 | what of item {at}?" for at in range(12)]


def says(messages: Sequence[BaseMessage]) -> str:
    """Give answers that name the question they belong to."""
    return f"1. {isolated('question', messages)} First.\n2. Second."


async def run(mode: str, given: FEWL, *args: Any, **options: Any) -> Fitted:
    return given.fit(*args, **options) if mode == "sync" else await given.afit(*args, **options)


@pytest.fixture(params=["sync", "async"])
def mode(request: pytest.FixtureRequest) -> str:
    return request.param


async def test_all_are_learned_and_then_known(mode: str) -> None:
    asked, kept = model(reference=says), store()
    given = fewl(asked, neighbors=kept)
    found = await run(mode, given, [*QUESTIONS, QUESTIONS[0], f" {QUESTIONS[1]} "])
    assert (found.questions, found.done, found.failed) == (12, 12, ())
    assert found.usage.calls == 12
    assert sorted(kept.questions()) == sorted(QUESTIONS)
    for question in QUESTIONS:
        known = kept.get(question)
        assert known is not None
        assert known.answers == (f"{question} First.", "Second.")
        assert known.pairs is None
    again = await run(mode, given, QUESTIONS)
    assert (again.done, again.usage.calls) == (12, 0)
    assert asked.stages == ["reference"] * 12


async def test_pairs_are_asked_for_on_demand(mode: str) -> None:
    asked = model()
    given = fewl(asked)
    await run(mode, given, QUESTIONS[:2])
    found = await run(mode, given, QUESTIONS[:3], pairs=True)
    assert (found.done, found.usage.calls) == (3, 4)
    assert asked.stages.count("pairs") == 3
    assert given.invoke({"question": QUESTIONS[2], "answer": "So."}).usage.calls == 0
    unweighted = model()
    await run(mode, fewl(unweighted, weighting="uniform"), QUESTIONS[:3], pairs=True)
    assert unweighted.stages == ["reference"] * 3


async def test_what_failed_is_told_and_tried_again(mode: str) -> None:
    bad = {QUESTIONS[3], QUESTIONS[7]}

    def moody(messages: Sequence[BaseMessage]) -> str | Exception:
        if isolated("question", messages) in bad:
            return ValueError("not this one")
        return says(messages)

    asked = model(reference=moody)
    given = fewl(asked)
    found = await run(mode, given, QUESTIONS)
    assert (found.questions, found.done) == (12, 10)
    assert {question for question, _ in found.failed} == bad
    assert all("not this one" in why for _, why in found.failed)
    assert found.usage.calls == 12
    bad.clear()
    again = await run(mode, given, QUESTIONS)
    assert (again.done, again.failed, again.usage.calls) == (12, (), 2)


async def test_progress_is_told_from_none_to_all(mode: str) -> None:
    told: list[Fitted] = []
    await run(mode, fewl(), QUESTIONS, at_once=3, progress=told.append)
    assert [one.done for one in told] == list(range(13))
    assert [one.usage.calls for one in told] == list(range(13))
    assert {one.questions for one in told} == {12}


async def test_no_question_is_no_work(mode: str) -> None:
    assert await run(mode, fewl(), []) == Fitted(0)


async def test_an_interrupt_keeps_what_was_learned(mode: str) -> None:
    def interrupt(now: Fitted) -> None:
        if now.done == 4:
            raise KeyboardInterrupt if mode == "sync" else RuntimeError("enough")

    asked, kept = model(reference=says), store()
    given = fewl(asked, neighbors=kept)
    with pytest.raises((KeyboardInterrupt, RuntimeError)):
        await run(mode, given, QUESTIONS, at_once=2, progress=interrupt)
    await asyncio.to_thread(_settled, asked)
    assert 4 <= len(asked.stages) <= 4 + 2  # No other question was begun.
    found = await run(mode, given, QUESTIONS)
    assert found.done == 12
    # Only the replies that were under way, and so not kept, are paid for again.
    assert len(asked.stages) <= 12 + 2
    assert sorted(kept.questions()) == sorted(QUESTIONS)


def _settled(asked: Any) -> None:
    """Wait until no request has come for a while."""
    before = -1
    while before != len(asked.stages):
        before = len(asked.stages)
        time.sleep(0.2)


async def test_no_more_are_asked_at_a_time_than_allowed(mode: str) -> None:
    now, most, lock = 0, 0, threading.Lock()

    def counted(messages: Sequence[BaseMessage]) -> str:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        time.sleep(0.02)
        with lock:
            now -= 1
        return says(messages)

    await run(mode, fewl(model(reference=counted)), QUESTIONS, at_once=3)
    assert most == 3


@pytest.mark.parametrize(
    ("questions", "options", "error", "why"),
    [
        ("Who?", {}, TypeError, "a list of questions, got one text"),
        (["Who?", " "], {}, ValueError, "at place 1"),
        ([None], {}, ValueError, "at place 0 of the list, got None"),
        (["Who?"], {"at_once": 0}, ValueError, "at_once must be at least 1"),
    ],
    ids=["text", "blank", "none", "at_once"],
)
async def test_a_bad_argument_is_refused_before_anything_is_asked(
    mode: str, questions: Any, options: dict[str, Any], error: type[Exception], why: str
) -> None:
    asked = model()
    with pytest.raises(error, match=re.escape(why)):
        await run(mode, fewl(asked), questions, **options)
    assert asked.stages == []


# --- Killed --------------------------------------------------------------------------------------

_FITTING = """
import sys
from langchain_openai import ChatOpenAI
from demur import FEWL
from demur.evaluators.fewl import NeighborStore
from support.fewl import half
from support.vectors import Told

url, path, at_once = sys.argv[1:4]
model = ChatOpenAI(model="test", base_url=url, api_key="key", max_retries=0, temperature=0)
kept = NeighborStore(path, embedding=Told())
fewl = FEWL(model, similarity=half, n_answers=2, neighbors=kept)
found = fewl.fit(sys.argv[4:], pairs=True, at_once=int(at_once))
assert found.done == found.questions, found
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no kill -9")
def test_a_kill_at_any_moment_costs_what_was_on_its_way_at_most(tmp_path: Path) -> None:
    questions = [f"0 1 | what of item {at}?" for at in range(24)]
    at_once, kills = 4, (1, 13)

    def reply(request: dict[str, Any], number: int) -> Answer:
        shown = request["messages"][-1]["content"]
        item = re.findall(r"what of item \d+", shown)[-1]
        text = PAIRS if "wrong answers" in shown else f"1. {item} First.\n2. Second."
        return Answer(text, delay=0.02)

    with openai_server(reply) as server:
        command = [sys.executable, "-c", _FITTING, server.url, str(tmp_path), str(at_once)]
        env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path])}
        for more in kills:
            until = len(server.requests) + more
            with subprocess.Popen([*command, *questions], env=env) as child:
                while len(server.requests) < until and child.poll() is None:
                    time.sleep(0.002)
                child.kill()
            assert child.returncode == -signal.SIGKILL, "it was to be killed at work"
        subprocess.run([*command, *questions], env=env, check=True, timeout=10 * PATIENCE)
        # Each question takes a call for the answers and a call for the pairs.
        assert len(server.requests) <= 2 * (len(questions) + len(kills) * at_once)
    kept = NeighborStore(tmp_path, embedding=Told())
    assert sorted(kept.questions()) == sorted(questions)
    for one in kept.entries():
        assert one.answers == (f"{one.question[6:-1]} First.", "Second.")
        assert one.pairs is not None
        assert len(one.pairs.usable) == 3


def test_a_question_scored_in_line_is_learned_too() -> None:
    kept = store()
    given = fewl(model(reference=says), neighbors=kept, penalty=True)
    given.invoke({"question": QUESTION, "answer": "Ada."})
    assert kept.questions() == [QUESTION]
    other = given.invoke({"question": "0 1 | who built the bridge?", "answer": "Cy."})
    assert other.details["neighbors"] == [QUESTION]
