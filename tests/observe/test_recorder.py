"""Test that no acknowledged record is lost on the way to its file, however a process ends."""

from __future__ import annotations

import asyncio
import contextvars
import os
import random
import signal
import sqlite3
import textwrap
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.runnables import Runnable, RunnableLambda

from demur import Evaluation, Sample, ScoreCallbackHandler
from demur.observe import Record, Sink, is_scoring
from support.openai_server import openai_server
from support.spawned import Spawned
from support.waiting import PATIENCE, auntil, until

# Unless a test waits for them, the judges wait for the end of the main thread: at the exit of the
# interpreter, all runs are still to be scored.
PROGRAM = """
import asyncio, os, sys, threading, time
from langchain_core.runnables import RunnableLambda, RunnableParallel
import demur.observe.recorder
from demur import Evaluation, ScoreCallbackHandler

demur.observe.recorder._EXIT_SECONDS = 3600.0  # however slow the machine is
main, go = threading.main_thread(), threading.Event()

def judge(sample):
    while main.is_alive() and not go.is_set():
        time.sleep(0.001)
    return Evaluation(name="judge", score=1.0, passed=True)

async def ajudge(sample):
    while main.is_alive() and not go.is_set():
        await asyncio.sleep(0.001)
    # As clients do to find a host's address.
    await asyncio.to_thread(time.sleep, 0)
    return Evaluation(name="judge", score=1.0, passed=True)

chain = RunnableLambda(lambda text: f"the answer to {text}")
path = sys.argv[1]

async def ask(handler, questions):
    for question in questions:
        await chain.ainvoke(str(question), {"callbacks": [handler]})
"""


def started(body: str, path: Path) -> Spawned:
    return Spawned(PROGRAM + textwrap.dedent(body), path.parent, path)


def questions(path: Path) -> list[str]:
    """Return the questions that the file holds."""
    if path.suffix == ".jsonl":
        lines = path.read_bytes().splitlines()
        whole = [line for line in lines if line.endswith(b"}")]
        return [Record.model_validate_json(line).question or "" for line in whole]
    with sqlite3.connect(path) as database:
        return [question for (question,) in database.execute("select question from runs")]


ENDS = {
    "the script's end": """
        handler = ScoreCallbackHandler(judge, sink=path)
        for at in range(40):
            chain.invoke(str(at), {"callbacks": [handler]})
    """,
    "an exception out of a loop": """
        async def run():
            await ask(ScoreCallbackHandler(ajudge, sink=path), range(40))
            raise RuntimeError("over")
        asyncio.run(run())
    """,
    "flush and close in the loop, and then no end at all": """
        async def run():
            handler = ScoreCallbackHandler(ajudge, sink=path)
            go.set()
            await ask(handler, range(30))
            assert await asyncio.to_thread(handler.flush, 60)
            assert handler.counts.recorded == 30
            await ask(handler, range(30, 40))
            assert await asyncio.to_thread(handler.close)
            os._exit(0)
        asyncio.run(run())
    """,
}


@pytest.mark.slow
@pytest.mark.parametrize("end", ENDS)
def test_at_a_clean_end_all_is_written(end: str, tmp_path: Path) -> None:
    path = tmp_path / "scores.sqlite"
    process = started(ENDS[end], path)
    assert process.end() == ("exception" in end), process.err
    assert sorted(map(int, questions(path))) == [*range(40)], process.err
    assert ("RuntimeError: over" in process.err) == ("exception" in end)
    assert "exception" in end or process.err == ""


@pytest.mark.slow
def test_an_evaluator_that_needs_a_pool_at_the_end_is_undetermined_and_recorded(
    tmp_path: Path,
) -> None:
    """Record the answers, although Python has shut all pools by then; `close` comes before that."""
    path = tmp_path / "scores.jsonl"
    body = """
        def pooled(sample):
            judge(sample)
            RunnableParallel(a=RunnableLambda(str), b=RunnableLambda(str)).invoke(sample.answer)
            return True
        handler = ScoreCallbackHandler(pooled, sink=path)
        for at in range(40):
            chain.invoke(str(at), {"callbacks": [handler]})
    """
    assert started(body, path).end() == 0
    found = [Record.model_validate_json(line) for line in path.read_bytes().splitlines()]
    assert sorted(int(str(record.question)) for record in found) == [*range(40)]
    assert {record.verdict for record in found} == {"undetermined"}


@pytest.mark.slow
def test_the_end_waits_no_longer_than_it_says(tmp_path: Path) -> None:
    body = """
        demur.observe.recorder._EXIT_SECONDS = 0.1
        handler = ScoreCallbackHandler(lambda sample: threading.Event().wait(), sink=path)
        for at in range(40):
            chain.invoke(str(at), {"callbacks": [handler]})
    """
    process = started(body, tmp_path / "scores.jsonl")
    assert process.end() == 0
    assert "40 runs were not scored" in process.err


@pytest.mark.slow
@pytest.mark.smoke
def test_kill_9_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    paths = [tmp_path / "scores.jsonl", tmp_path / "scores.sqlite"]
    body = """
        import itertools
        go.set()
        sinks = [path, path.replace(".jsonl", ".sqlite")]
        handler = ScoreCallbackHandler(judge, sink=sinks)
        for at in itertools.count():
            chain.invoke(str(at), {"callbacks": [handler]})
            if at % 5 == 0:
                assert handler.flush(60)
                print(at + 1, handler.counts.recorded, flush=True)
    """
    process = started(body, paths[0])
    process.printed(random.randint(1, 40))
    process.signal(signal.SIGKILL)
    assert process.end() == -signal.SIGKILL
    told = [line for line in process.out.splitlines(keepends=True) if line.endswith("\n")]
    acknowledged, recorded = map(int, told[-1].split())
    assert recorded == acknowledged > 0
    for path in paths:
        found = questions(path)
        assert {*map(str, range(acknowledged))} <= {*found}
        assert len(found) == len({*found})
        # Another process goes on in the same file.
        handler = ScoreCallbackHandler(lambda sample: True, sink=path)
        echoing.invoke("more", {"callbacks": [handler]})
        assert handler.close(60)
        assert [*found, "more"] == questions(path)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_processes_that_fork_record_what_is_theirs(tmp_path: Path) -> None:
    """Fork as a server does that is set up before its workers are forked."""
    path = tmp_path / "scores.sqlite"
    body = """
        handler = ScoreCallbackHandler(judge, sink=path)
        for at in range(30):
            chain.invoke(f"parent {at}", {"callbacks": [handler]})
        workers = []
        for worker in range(3):
            if not (pid := os.fork()):
                go.set()
                for at in range(20):
                    chain.invoke(f"worker {worker} {at}", {"callbacks": [handler]})
                assert handler.flush(60)
                assert handler.counts.waiting == 0
                os._exit(0)
            workers.append(pid)
        for pid in workers:
            assert os.waitpid(pid, 0)[1] == 0
    """
    process = started(body, path)
    assert process.end() == 0, process.err
    expected = [f"parent {at}" for at in range(30)]
    expected += [f"worker {worker} {at}" for worker in range(3) for at in range(20)]
    assert sorted(questions(path)) == sorted(expected)


# --- The queue ------------------------------------------------------------------------------------


class Held:
    """Judge answers, but wait until `go` is set; count how many are judged at once."""

    def __init__(self) -> None:
        self.go = threading.Event()
        self.inside = threading.Semaphore(0)
        self.judged: list[str] = []
        self.now = self.most = 0
        self._lock = threading.Lock()

    def __call__(self, sample: Sample) -> bool:
        with self._lock:
            self.now += 1
            self.most = max(self.most, self.now)
        self.inside.release()
        self.go.wait()
        with self._lock:
            self.now -= 1
            self.judged.append(sample.answer)
        return True

    def begun(self, count: int = 1) -> None:
        """Wait until so many more answers are being judged."""
        for _ in range(count):
            assert self.inside.acquire(timeout=PATIENCE)


@pytest.fixture
def held() -> Iterator[Held]:
    held = Held()
    yield held
    held.go.set()


echoing: Runnable[Any, Any] = RunnableLambda(str)


def handler_of(evaluator: Any, **options: Any) -> ScoreCallbackHandler:
    return ScoreCallbackHandler(evaluator, **{"sink": lambda record: None, **options})


def asked(handler: ScoreCallbackHandler, *texts: object) -> None:
    for text in texts:
        echoing.invoke(str(text), {"callbacks": [handler]})


def test_what_an_evaluator_cannot_keep_up_with_is_dropped(held: Held) -> None:
    records: list[str] = []
    handler = handler_of(held, sink=lambda record: records.append(record.id), max_queue=20)
    asked(handler, *range(20))
    held.begun(4)
    asked(handler, *range(20, 60))
    counts = handler.counts
    assert (counts.runs, counts.waiting, counts.dropped) == (60, 20, 36)
    held.go.set()
    assert handler.flush(60)
    assert len(records) == len({*records}) == 24


def test_after_close_nothing_is_recorded(tmp_path: Path) -> None:
    path = tmp_path / "scores.jsonl"
    handler = handler_of(lambda sample: False, sink=path)
    asked(handler, "a")
    assert handler.close()
    assert handler.close()
    asked(handler, "b")
    assert handler.flush(30)
    assert questions(path) == ["a"]
    assert handler.counts.dropped == 1


def test_close_with_a_time_limit_gives_up_the_rest(
    held: Held, caplog: pytest.LogCaptureFixture
) -> None:
    handler = handler_of(held, max_concurrency=1)
    asked(handler, "a", "b", "c")
    assert not handler.close(0.05)
    assert "3 runs were not scored" in caplog.text
    assert handler.counts.dropped == 3


@pytest.mark.parametrize("hangs", ["write", "the end"])
def test_a_sink_that_hangs_holds_nobody_up(hangs: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("demur.observe.recorder._SINKS_SECONDS", 0.05)
    go = threading.Event()

    class Hangs(Sink):
        def write(self, record: Record) -> None:
            if hangs == "write":
                go.wait()

        def flush(self) -> None:
            go.wait()

        def close(self) -> None:
            go.wait()

    handler = handler_of(lambda sample: True, sink=Hangs())
    asked(handler, *range(10))
    recorded = 0 if hangs == "write" else 10
    until(lambda: handler.counts.recorded == recorded)
    assert not handler.flush(0.05)
    assert not handler.close(0.05)
    assert (handler.counts.recorded, handler.counts.dropped) == (recorded, 10 - recorded)
    go.set()


def test_so_many_at_a_time_are_judged(held: Held) -> None:
    handler = handler_of(held, max_concurrency=3)
    asked(handler, *range(50))
    held.begun(3)
    assert handler.counts.waiting == 47
    held.go.set()
    assert handler.flush(30)
    assert held.most == 3
    assert sorted(map(int, held.judged)) == [*range(50)]


def test_flush_waits_for_what_was_there_and_not_for_what_comes_later(held: Held) -> None:
    """Flush while runs come for ever, of which each is judged only after later ones have come."""
    offered, flushed = 0, threading.Event()

    def judge(sample: Sample) -> bool:
        number = int(sample.answer)
        until(lambda: flushed.is_set() or offered > number + 1)
        return number > 0 or held(sample)

    handler = handler_of(judge)

    def room() -> bool:
        return flushed.is_set() or offered < handler.counts.recorded + 4

    def offer() -> None:
        nonlocal offered
        while not flushed.is_set():
            until(room)
            asked(handler, offered)
            offered += 1

    offering = threading.Thread(target=offer)
    offering.start()
    held.begun()
    assert not handler.flush(0.05)
    held.go.set()
    try:
        assert handler.flush(30)
    finally:
        flushed.set()
        offering.join()
    assert handler.flush(30)


@pytest.mark.parametrize("mode", ["invoke", "ainvoke"])
def test_block_waits_for_room_and_drops_nothing(mode: str, held: Held) -> None:
    waiting: list[int] = []

    def judge(sample: Sample) -> bool:
        held(sample)
        waiting.append(handler.counts.waiting)
        return True

    handler = handler_of(judge, max_queue=1, max_concurrency=1, on_full="block")

    def some_wait() -> bool:
        return handler.counts.runs >= 3  # One is judged, one is queued, and one waits for room.

    async def in_loop() -> None:
        async def let_go() -> None:  # The loop goes on while chains wait.
            await auntil(some_wait)
            held.go.set()

        chains = (echoing.ainvoke(str(at), {"callbacks": [handler]}) for at in range(10))
        await asyncio.gather(let_go(), *chains)

    if mode == "ainvoke":
        asyncio.run(in_loop())
    else:
        offering = threading.Thread(target=asked, args=(handler, *range(10)))
        offering.start()
        until(some_wait)
        held.go.set()
        offering.join()
    assert handler.flush(30)
    assert sorted(map(int, held.judged)) == [*range(10)]
    assert handler.counts.dropped == 0
    assert max(waiting) <= 1


def test_close_lets_those_go_that_wait_for_room(held: Held) -> None:
    handler = handler_of(held, max_queue=1, max_concurrency=1, on_full="block")
    chains = threading.Thread(target=asked, args=(handler, *range(10)))
    chains.start()
    held.begun()
    assert not handler.close(0.05)
    chains.join()
    counts = handler.counts
    assert (counts.runs, counts.dropped, counts.waiting) == (10, 10, 0)


def test_evaluators_run_where_what_they_do_is_nobodys_run() -> None:
    found: list[bool] = []

    def note() -> None:
        found.append(is_scoring())

    def judge(sample: Sample) -> bool:
        note()
        started = threading.Thread(target=contextvars.copy_context().run, args=(note,))
        started.start()
        started.join()
        return True

    async def ajudge(sample: Sample) -> bool:
        note()
        return True

    handler = ScoreCallbackHandler(judge, ajudge, sink=lambda record: None)
    asked(handler, "q", "q")
    assert handler.close(30)
    assert found == [True] * 6
    assert not is_scoring()


# --- What must not be in any record ---------------------------------------------------------------

SECRETS = (
    "sk-proj-Zq81xW0aaPlantedKey77Lk2",
    "hunter2-planted-password",
    "Planted.Bearer.9x7Token",
)


def test_keys_and_headers_are_in_no_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLANTED_API_KEY", SECRETS[1])

    def judge(sample: Sample) -> Evaluation:
        raise PermissionError(f"401: the key {SECRETS[0]} is wrong; Authorization: {SECRETS[2]}")

    headers = {"Authorization": f"Bearer {SECRETS[2]}", "X-Password": SECRETS[1]}
    records: list[Record] = []
    sinks = [tmp_path / "scores.sqlite", tmp_path / "scores.jsonl", records.append]
    handler = ScoreCallbackHandler(judge, sink=sinks)
    with openai_server(["The tower is 84 metres tall."]) as server:
        server.model(api_key=SECRETS[0], default_headers=headers).invoke(
            "How tall?",
            {
                "callbacks": [handler],
                "metadata": {"openai_api_key": SECRETS[0], "note": f"with {SECRETS[1]}"},
                "configurable": {"password": SECRETS[1], "session_token": SECRETS[2]},
            },
        )
        assert handler.close(60)
    (record,) = records
    assert record.evaluations[0].undetermined
    kept = record.as_json() + (tmp_path / "scores.jsonl").read_text()
    database = sqlite3.connect(tmp_path / "scores.sqlite")
    kept += "\n".join(database.iterdump())
    database.close()
    assert "How tall?" in kept
    assert "401" in kept
    assert not [secret for secret in SECRETS if secret in kept]
    assert record.metadata.keys().isdisjoint({"openai_api_key", "password", "session_token"})


def test_what_a_run_was_lost_by_is_told_without_its_words(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(**fields: object) -> None:
        raise ValueError(f"cannot take {SECRETS[0]}")

    handler = handler_of(lambda sample: True)
    monkeypatch.setattr("demur.observe.scoring.Record", fails)
    asked(handler, "an answer")
    assert handler.flush(30)
    assert handler.counts.lost == 1
    assert "demur lost a run: ValueError, at test_recorder.py:" in caplog.text
    assert SECRETS[0] not in caplog.text
