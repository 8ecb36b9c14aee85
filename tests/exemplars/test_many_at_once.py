"""Test many users of one store at once: what is reported as kept stays, whatever others remove."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from demur import ExampleStore
from exemplars.conftest import Open
from support.exemplars import answers, scorer, stale
from support.vectors import Told

pytest.importorskip("chromadb")
pytest.importorskip("filelock")

TESTS = Path(__file__).parents[1]


@pytest.mark.slow
def test_threads_add_and_look_up_at_once(anywhere: Open) -> None:
    store = anywhere()

    def use(thread: int) -> None:
        for at in range(3):
            question = f"{thread + 1} {at - 5} | {thread} {at}"
            store.add(question, ["a", question], [0, 1])
            store.add("0 1 | shared", [f"{thread} {at}"], [thread + at / 10])
            assert answers(store.get(question)) == [question, "a"]
            assert question not in {one.question for one in store.nearest(question, 5)}

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(use, range(4)))
    assert len(store) == 13
    expected = [f"{thread} {at}" for thread in range(3, -1, -1) for at in range(2, -1, -1)]
    assert answers(anywhere().get("0 1 | shared")) == expected


# --- Processes ------------------------------------------------------------------------------------

ADDING = """
import itertools
import math
import sys
from demur import ExampleStore
from support.exemplars import scorer
from support.vectors import Told

path, who = sys.argv[1:]
kept = ExampleStore(path, collection="killed", embedding=Told(), scorer=scorer())
for at in itertools.count(1):
    # Apart from each other: of vectors that are nearly equal Chroma's index may reach but one.
    question = f"{math.cos(2.4 * at):.4f} {math.sin(2.4 * at):.4f} | question {at}"
    kept.add(question, [f"0.5 by {who}", f"0.7 by {who} too"])
    kept.add("0 1 | shared", [f"0.{at} of {who}"])
    print(question, flush=True)
"""


@contextmanager
def adding(path: object, *names: str) -> Iterator[dict[str, subprocess.Popen[str]]]:
    """Start processes that add questions for ever and print each when it is kept."""
    env = {"PYTHONPATH": ":".join([str(TESTS), *filter(None, sys.path)])}
    writers = {
        who: subprocess.Popen(
            [sys.executable, "-c", ADDING, str(path), who],
            stdout=subprocess.PIPE,
            text=True,
            env=env,
        )
        for who in names
    }
    try:
        yield writers
    finally:
        for one in writers.values():
            one.kill()


def told_by(process: subprocess.Popen[str], count: int) -> list[str]:
    """Wait for so many questions that a process tells as kept."""
    assert process.stdout is not None
    return [process.stdout.readline().strip() for _ in range(count)]


def kill(process: subprocess.Popen[str]) -> list[str]:
    """Kill a process at some moment of its next writes; return what it told until then."""
    time.sleep(random.uniform(0, 0.03))
    process.kill()
    rest = process.communicate()[0].splitlines(keepends=True)
    assert process.returncode == -signal.SIGKILL
    return [line.strip() for line in rest if line.endswith("\n")]


@pytest.mark.slow
@pytest.mark.smoke
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no kill -9")
def test_a_kill_loses_nothing_that_was_told_as_kept(tmp_path: Path) -> None:
    with adding(tmp_path, "ada") as writers:
        told = told_by(writers["ada"], 5) + kill(writers["ada"])
    graded = scorer()
    store = ExampleStore(tmp_path, collection="killed", embedding=Told(), scorer=graded)
    found = {entry.question: entry for entry in store.entries()}
    assert found.keys() >= {*told, "0 1 | shared"}
    for question in told:
        assert answers(found[question]) == ["0.7 by ada too", "0.5 by ada"]
    assert {one.question for one in store.nearest("-1 0 | q", 9999)} == found.keys()
    # A process that goes on scores only what is missing.
    store.add_many([(question, ["0.5 by ada", "0.7 by ada too"]) for question in told])
    assert graded.similarity.asked == 0
    store.close()


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no kill -9")
def test_processes_that_write_to_the_same_questions_on_one_server_lose_nothing(chroma: str) -> None:
    """Test the same on a server, with a reader and remover beside the writers."""
    store = ExampleStore(chroma, collection="killed", embedding=Told(), scorer=scorer())

    told: dict[str, list[str]] = {"ada": [], "bo": []}
    with adding(chroma, *told) as writers:
        for _ in range(5):
            for who, one in writers.items():
                told[who] += told_by(one, 1)
            for entry in store.entries():
                assert entry.best is not None
                store.remove(entry.question, "0.5 by ada")
            store.nearest("-1 0 | q", 5)
        for who, one in writers.items():
            told[who] += kill(one)
    for who, questions in told.items():
        for question in questions:
            store.remove(question, "0.5 by ada")
            left = answers(store.get(question))
            assert "0.5 by ada" not in left
            assert f"0.7 by {who} too" in left
            assert "0.5 by bo" in left or who == "ada"
        shared = {f"0.{at + 1} of {who}" for at in range(len(questions))}
        assert shared <= {*answers(store.get("0 1 | shared"))}
    assert stale(store) == 0
    found = {entry.question for entry in store.entries()}
    assert {one.question for one in store.nearest("-1 0 | q", 9999)} == found
