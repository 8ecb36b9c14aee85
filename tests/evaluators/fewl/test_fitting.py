"""Test `fit`, which asks beforehand: no kept reply is paid for twice, whatever interrupts it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import BaseMessage

from demur import FEWL
from demur.evaluators import Fitted, NeighborStore
from support.fakes import isolated
from support.fewl import PAIRS, fewl, model, store
from support.openai_server import Answer, OpenAIServer, openai_server
from support.vectors import Told
from support.waiting import NEVER, PATIENCE

TESTS = Path(__file__).parents[2]
QUESTIONS = [f"0 1 | what of item {at}?" for at in range(12)]


def says(messages: Sequence[BaseMessage]) -> str:
    """Give answers that name the question they belong to."""
    return f"1. {isolated('question', messages)} First.\n2. Second."


def test_all_are_learned_and_then_known() -> None:
    asked, kept = model(reference=says), store()
    given = fewl(asked, neighbors=kept)
    found = given.fit([*QUESTIONS, QUESTIONS[0], f" {QUESTIONS[1]} "])
    assert (found.questions, found.done, found.failed) == (12, 12, ())
    assert found.usage.calls == 12
    assert sorted(kept.questions()) == sorted(QUESTIONS)
    for question in QUESTIONS:
        known = kept.get(question)
        assert known is not None
        assert known.answers == (f"{question} First.", "Second.")
        assert known.pairs is None
    again = given.fit(QUESTIONS)
    assert (again.done, again.usage.calls) == (12, 0)
    assert asked.stages == ["reference"] * 12


def test_pairs_are_asked_for_on_demand() -> None:
    asked = model()
    given = fewl(asked)
    given.fit(QUESTIONS[:2])
    found = given.fit(QUESTIONS[:3], pairs=True)
    assert (found.done, found.usage.calls) == (3, 4)
    assert asked.stages.count("pairs") == 3
    assert given.invoke({"question": QUESTIONS[2], "answer": "So."}).usage.calls == 0
    unweighted = model()
    fewl(unweighted, weighting="uniform").fit(QUESTIONS[:3], pairs=True)
    assert unweighted.stages == ["reference"] * 3


def test_what_failed_is_told_and_tried_again() -> None:
    bad = {QUESTIONS[3], QUESTIONS[7]}

    def moody(messages: Sequence[BaseMessage]) -> str | Exception:
        if isolated("question", messages) in bad:
            return ValueError("not this one")
        return says(messages)

    asked = model(reference=moody)
    given = fewl(asked)
    found = given.fit(QUESTIONS)
    assert (found.questions, found.done) == (12, 10)
    assert {question for question, _ in found.failed} == bad
    assert all("not this one" in why for _, why in found.failed)
    assert found.usage.calls == 12
    bad.clear()
    again = given.fit(QUESTIONS)
    assert (again.done, again.failed, again.usage.calls) == (12, (), 2)


def test_progress_is_told_from_none_to_all() -> None:
    told: list[Fitted] = []
    fewl().fit(QUESTIONS, at_once=3, progress=told.append)
    assert [one.done for one in told] == list(range(13))
    assert [one.usage.calls for one in told] == list(range(13))
    assert {one.questions for one in told} == {12}


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_an_interrupt_keeps_what_was_learned(error: type[BaseException]) -> None:
    def interrupt(now: Fitted) -> None:
        if now.done == 4:
            raise error

    asked, kept = model(reference=says), store()
    given = fewl(asked, neighbors=kept)
    with pytest.raises(error):
        given.fit(QUESTIONS, at_once=2, progress=interrupt)
    found = given.fit(QUESTIONS)
    assert found.done == 12
    # Only replies that were under way, at most two at a time, are paid for again.
    assert 12 <= len(asked.stages) <= 12 + 2
    assert sorted(kept.questions()) == sorted(QUESTIONS)


def test_no_more_are_asked_at_a_time_than_allowed() -> None:
    together, now, most, lock = threading.Barrier(3), 0, 0, threading.Lock()

    def counted(messages: Sequence[BaseMessage]) -> str:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        together.wait(PATIENCE)  # No request is answered before three have come.
        with lock:
            now -= 1
        return says(messages)

    found = fewl(model(reference=counted)).fit(QUESTIONS, at_once=3)
    assert (found.done, most) == (12, 3)


@pytest.mark.parametrize(
    ("questions", "options", "error", "why"),
    [
        ("Who?", {}, TypeError, "a list of questions, got one text"),
        (["Who?", " "], {}, ValueError, "at place 1"),
        (["Who?"], {"at_once": 0}, ValueError, "at_once must be at least 1"),
    ],
    ids=["text", "blank", "at_once"],
)
def test_a_bad_argument_is_refused_before_anything_is_asked(
    questions: Any, options: dict[str, Any], error: type[Exception], why: str
) -> None:
    asked = model()
    with pytest.raises(error, match=re.escape(why)):
        fewl(asked).fit(questions, **options)
    assert asked.stages == []


# --- Killed --------------------------------------------------------------------------------------

_FITTING = """
import sys
from test_fitting import fitting

url, path, at_once, *questions = sys.argv[1:]
fitting(url, path).fit(questions, pairs=True, at_once=int(at_once))
"""


def fitting(url: str, path: str | Path) -> FEWL:
    """Return a FEWL with a store in a folder, which asks the model that is served at `url`."""
    served = OpenAIServer(url).model()
    return fewl(served, neighbors=NeighborStore(path, embedding=Told()))


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no kill -9")
def test_a_kill_at_any_moment_costs_what_was_on_its_way_at_most(tmp_path: Path) -> None:
    questions = [f"0 1 | what of item {at}?" for at in range(24)]
    at_once, free = 4, 13

    def reply(request: dict[str, Any], number: int) -> Answer:
        shown = request["messages"][-1]["content"]
        item = re.findall(r"what of item \d+", shown)[-1]
        text = PAIRS if "wrong answers" in shown else f"1. {item} First.\n2. Second."
        # Without a reply to the others, the process is at work until it is killed.
        return Answer(text, held=NEVER if number >= free and child.poll() is None else None)

    with openai_server(reply) as server:
        command = [sys.executable, "-c", _FITTING, server.url, str(tmp_path), str(at_once)]
        paths = [str(Path(__file__).parent), str(TESTS), *sys.path]
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
        with subprocess.Popen([*command, *questions], env=env) as child:
            try:
                server.arrived(free)
            finally:
                child.kill()
        assert child.returncode == -signal.SIGKILL
        found = fitting(server.url, tmp_path).fit(questions, pairs=True, at_once=at_once)
        assert found.done == len(questions)
        # Each question takes a call for the answers and a call for the pairs.
        assert len(server.requests) <= 2 * len(questions) + 2 * at_once
    kept = NeighborStore(tmp_path, embedding=Told())
    assert sorted(kept.questions()) == sorted(questions)
    for one in kept.entries():
        assert one.answers == (f"{one.question[6:-1]} First.", "Second.")
        assert one.pairs is not None
        assert len(one.pairs.usable) == 3
