"""Test that no acknowledged record is lost on the way to its file, however a process ends."""

from __future__ import annotations

import asyncio
import contextvars
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import textwrap
import threading
import time
import tracemalloc
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.runnables import Runnable, RunnableLambda

from demur import Evaluation, Sample, ScoreCallbackHandler
from demur.observe import Record, Sink, is_scoring

PROGRAM = """
import asyncio, os, sys, threading, time
from langchain_core.runnables import RunnableLambda, RunnableParallel
from demur import Evaluation, ScoreCallbackHandler

def judge(sample):
    time.sleep(0.01)
    return Evaluation(name="judge", score=1.0, passed=True)

async def ajudge(sample):
    await asyncio.sleep(0.01)
    # As clients do to find a host's address.
    await asyncio.to_thread(time.sleep, 0)
    return Evaluation(name="judge", score=1.0, passed=True)

chain = RunnableLambda(lambda text: f"the answer to {text}")
path = sys.argv[1]
"""


def program(body: str) -> str:
    return PROGRAM + textwrap.dedent(body)


def questions(path: Path) -> list[str]:
    """Return the questions that the file holds."""
    if path.suffix == ".jsonl":
        lines = path.read_bytes().splitlines()
        whole = [line for line in lines if line.endswith(b"}")]
        return [Record.model_validate_json(line).question or "" for line in whole]
    with sqlite3.connect(path) as database:
        return [question for (question,) in database.execute("select question from runs")]


def findings(path: Path) -> list[str]:
    """Return the findings in a file of JSON lines."""
    found = map(Record.model_validate_json, path.read_bytes().splitlines())
    return [record.evaluations[0].finding for record in found]


def ended(body: str, path: Path, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program(body), str(path)],
        capture_output=True,
        text=True,
        timeout=60,
        **options,
    )


ENDS = {
    "the script's end": """
        handler = ScoreCallbackHandler(judge, sink=path)
        for at in range(40):
            chain.invoke(str(at), {"callbacks": [handler]})
    """,
    "an exception": """
        handler = ScoreCallbackHandler(judge, sink=path)
        for at in range(40):
            chain.invoke(str(at), {"callbacks": [handler]})
        raise RuntimeError("over")
    """,
    "the loop's end": """
        handler = ScoreCallbackHandler(judge, sink=path)
        async def main():
            for at in range(40):
                await chain.ainvoke(str(at), {"callbacks": [handler]})
        asyncio.run(main())
    """,
    "an asynchronous evaluator, the loop's end": """
        handler = ScoreCallbackHandler(ajudge, sink=path)
        async def main():
            for at in range(40):
                await chain.ainvoke(str(at), {"callbacks": [handler]})
        asyncio.run(main())
    """,
    "close in the loop": """
        handler = ScoreCallbackHandler(ajudge, sink=path)
        async def main():
            for at in range(40):
                await chain.ainvoke(str(at), {"callbacks": [handler]})
            assert await asyncio.to_thread(handler.close)
            os._exit(0)
        asyncio.run(main())
    """,
    "flush, and then no end at all": """
        handler = ScoreCallbackHandler(judge, sink=path)
        for at in range(40):
            chain.invoke(str(at), {"callbacks": [handler]})
        assert handler.flush(60)
        os._exit(0)
    """,
}


@pytest.mark.slow
@pytest.mark.parametrize("end", ENDS)
def test_at_a_clean_end_all_is_written(end: str, tmp_path: Path) -> None:
    path = tmp_path / "scores.sqlite"
    done = ended(ENDS[end], path)
    assert sorted(map(int, questions(path))) == [*range(40)], done.stderr
    expected = "RuntimeError: over" if end == "an exception" else ""
    assert expected in done.stderr
    if end != "an exception":
        assert done.stderr == ""


@pytest.mark.slow
def test_an_evaluator_that_needs_a_pool_at_the_end_is_undetermined_and_recorded(
    tmp_path: Path,
) -> None:
    """Record the answers, although Python has shut all pools by then; `close` comes before that."""
    path = tmp_path / "scores.jsonl"
    body = """
        def pooled(sample):
            time.sleep(0.01)
            RunnableParallel(a=RunnableLambda(str), b=RunnableLambda(str)).invoke(sample.answer)
            return True
        handler = ScoreCallbackHandler(pooled, sink=path)
        for at in range(40):
            chain.invoke(str(at), {"callbacks": [handler]})
    """
    ended(body, path)
    assert sorted(map(int, questions(path))) == [*range(40)]
    assert {*findings(path)} <= {"passed", "undetermined"}
    path.unlink()
    ended(f"{body}    handler.close()", path)
    assert findings(path) == ["passed"] * 40


@pytest.mark.slow
def test_the_end_waits_no_longer_than_it_says(tmp_path: Path) -> None:
    path = tmp_path / "scores.jsonl"
    body = """
        import demur.observe.recorder
        demur.observe.recorder._EXIT_SECONDS = 1.0
        handler = ScoreCallbackHandler(lambda sample: time.sleep(600), sink=path)
        for at in range(40):
            chain.invoke(str(at), {"callbacks": [handler]})
    """
    started = time.monotonic()
    done = ended(body, path)
    assert time.monotonic() - started < 30
    assert "40 runs were not scored" in done.stderr
    assert done.returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".jsonl", ".sqlite"])
def test_kill_9_loses_nothing_that_was_acknowledged(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"scores{suffix}"
    body = """
        handler = ScoreCallbackHandler(judge, sink=path)
        for at in range(100_000):
            chain.invoke(str(at), {"callbacks": [handler]})
            if at % 5 == 0:
                assert handler.flush(60)
                print(at + 1, handler.counts.recorded, flush=True)
    """
    process = subprocess.Popen(
        [sys.executable, "-c", program(body), str(path)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    told = [process.stdout.readline()]
    time.sleep(random.Random(0).uniform(0.1, 1.0))
    process.send_signal(signal.SIGKILL)
    told += process.stdout.readlines()
    process.wait()
    process.stdout.close()
    acknowledged, recorded = map(int, [line for line in told if line.endswith("\n")][-1].split())
    assert recorded == acknowledged > 0
    found = questions(path)
    assert {*map(str, range(acknowledged))} <= {*found}
    assert len(found) == len({*found})
    # The next process goes on in the same file.
    ended(ENDS["the script's end"], path)
    assert len(questions(path)) == len(found) + 40


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
                for at in range(20):
                    chain.invoke(f"worker {worker} {at}", {"callbacks": [handler]})
                assert handler.flush(60)
                assert handler.counts.waiting == 0
                os._exit(0)
            workers.append(pid)
        for pid in workers:
            assert os.waitpid(pid, 0)[1] == 0
    """
    done = ended(body, path)
    expected = [f"parent {at}" for at in range(30)]
    expected += [f"worker {worker} {at}" for worker in range(3) for at in range(20)]
    assert sorted(questions(path)) == sorted(expected), done.stderr


@pytest.mark.slow
def test_thousands_of_runs_and_an_evaluator_that_cannot_keep_up() -> None:
    go = threading.Event()
    records: list[str] = []

    def slow(sample: Sample) -> Evaluation:
        go.wait(120)
        return Evaluation(name="slow", score=1.0, passed=True)

    chain: Runnable[Any, Any] = RunnableLambda(lambda text: f"{text} " * 1000)
    handler = ScoreCallbackHandler(slow, sink=lambda r: records.append(r.id), max_queue=100)
    config: Any = {"callbacks": [handler]}
    for at in range(1000):
        chain.invoke(str(at), config)
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    for at in range(2000):
        chain.invoke(str(at), config)
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # An answer has at least 4 kB, and there is room for 104 answers. The ids of ended runs are kept
    # for a while.
    assert (after - before) / 2**20 < 4
    counts = handler.counts
    assert counts.runs == 3_000
    assert 100 <= counts.runs - counts.dropped <= 104
    assert counts.waiting == 100
    go.set()
    assert handler.flush(60)
    assert len(records) == len({*records}) == counts.runs - counts.dropped
    handler.close()


def test_all_kinds_of_sinks_at_once(tmp_path: Path) -> None:
    seen: list[Record] = []
    sinks = [tmp_path / "scores.sqlite", str(tmp_path / "scores.jsonl"), seen.append]
    handler = ScoreCallbackHandler(
        lambda sample: Evaluation(name="judge", score=0.25, passed=False), sink=sinks
    )
    chain: Runnable[Any, Any] = RunnableLambda(lambda text: text.upper())
    chain.batch(["a", "b"], {"callbacks": [handler]})
    assert handler.close()
    assert sorted(questions(tmp_path / "scores.sqlite")) == ["a", "b"]
    assert sorted(questions(tmp_path / "scores.jsonl")) == ["a", "b"]
    assert sorted(record.answer for record in seen) == ["A", "B"]


def test_after_close_nothing_is_recorded(tmp_path: Path) -> None:
    path = tmp_path / "scores.jsonl"
    handler = ScoreCallbackHandler(
        lambda sample: Evaluation(name="judge", score=0.25, passed=False), sink=path
    )
    chain: Runnable[Any, Any] = RunnableLambda(lambda text: text.upper())
    chain.invoke("a", {"callbacks": [handler]})
    assert handler.close()
    assert handler.close()
    chain.invoke("b", {"callbacks": [handler]})
    assert handler.flush(30)
    assert questions(path) == ["a"]
    assert handler.counts.dropped == 1


def test_close_with_a_time_limit_gives_up_the_rest(caplog: pytest.LogCaptureFixture) -> None:
    go = threading.Event()
    records: list[Record] = []

    def slow(sample: Sample) -> Evaluation:
        go.wait(30)
        return Evaluation(name="slow", score=1.0, passed=True)

    handler = ScoreCallbackHandler(slow, sink=records.append, max_concurrency=1)
    chain: Runnable[Any, Any] = RunnableLambda(lambda text: text.upper())
    chain.batch(["a", "b", "c"], {"callbacks": [handler]})
    assert not handler.close(0.05)
    assert "3 runs were not scored" in caplog.text
    assert handler.counts.dropped == 3
    go.set()


@pytest.mark.slow
@pytest.mark.parametrize("hangs", ["write", "the end"])
def test_a_sink_that_hangs_holds_nobody_up(hangs: str) -> None:
    go = threading.Event()

    class Hangs(Sink):
        def write(self, record: Record) -> None:
            if hangs == "write":
                go.wait(60)

        def flush(self) -> None:
            go.wait(60)

        def close(self) -> None:
            go.wait(60)

    chain: Runnable[Any, Any] = RunnableLambda(lambda text: text.upper())
    handler = ScoreCallbackHandler(lambda sample: True, sink=Hangs())
    started = time.monotonic()
    try:
        for _ in range(10):
            chain.invoke("a", {"callbacks": [handler]})
        assert not handler.flush(0.5)
        assert not handler.close(0.1)
        counts = handler.counts
        expected = (0, 10) if hangs == "write" else (10, 0)
        assert (counts.recorded, counts.dropped) == expected
        assert time.monotonic() - started < 20
    finally:
        go.set()


@pytest.mark.slow
def test_who_interrupts_the_end_does_not_wait(tmp_path: Path) -> None:
    body = """
        import signal
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job ignores it
        hangs = lambda sample: time.sleep(600)
        handlers = [ScoreCallbackHandler(hangs, sink=path) for _ in range(2)]
        for handler in handlers:
            chain.invoke("q", {"callbacks": [handler]})
        print("over", flush=True)
    """
    command = [sys.executable, "-c", program(body), str(tmp_path / "scores.jsonl")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=20)
    assert told.count(b"1 runs were not scored") == 2


# --- What must not be in any record ---------------------------------------------------------------

SECRETS = (
    "sk-proj-Zq81xW0aaPlantedKey77Lk2",
    "hunter2-planted-password",
    "Planted.Bearer.9x7Token",
)


def test_keys_and_headers_are_in_no_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from langchain_openai import ChatOpenAI

    from support.openai_server import Answer, openai_server

    monkeypatch.setenv("PLANTED_API_KEY", SECRETS[1])

    def judge(sample: Sample) -> Evaluation:
        raise PermissionError(f"401: the key {SECRETS[0]} is wrong; Authorization: {SECRETS[2]}")

    with openai_server(lambda request, number: Answer("The tower is 84 metres tall.")) as server:
        model = ChatOpenAI(
            model="m",
            base_url=server.url,
            api_key=SECRETS[0],
            default_headers={"Authorization": f"Bearer {SECRETS[2]}", "X-Password": SECRETS[1]},
        )
        records: list[Record] = []
        sinks = [tmp_path / "scores.sqlite", tmp_path / "scores.jsonl", records.append]
        handler = ScoreCallbackHandler(judge, sink=sinks)
        model.invoke(
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
    kept = record.as_json()
    kept += (tmp_path / "scores.jsonl").read_text()
    database = sqlite3.connect(tmp_path / "scores.sqlite")
    kept += "\n".join(database.iterdump())
    database.close()
    assert "How tall?" in kept
    assert "401" in kept
    assert not [secret for secret in SECRETS if secret in kept]
    assert (
        json.loads(record.as_json())["metadata"]
        .keys()
        .isdisjoint({"openai_api_key", "password", "session_token"})
    )


def test_a_judges_key_is_in_no_record_whoever_judges_and_whatever_it_looks_like() -> None:
    from demur import Guard, RefChecker
    from support.openai_server import Answer, openai_server

    keys = ["plain password of judge one, 1", "plain password of judge two, 2"]
    told = json.dumps({"error": {"message": f"wrong: {', '.join(keys)}"}}).encode()
    records: list[Record] = []
    with openai_server(lambda request, number: Answer(status=401, body=told)) as server:
        first, second = (RefChecker(server.model(api_key=key)) for key in keys)
        chain = RunnableLambda(lambda question: "The tower is 84 metres tall.")
        guard = Guard(chain, second, on_error="open")
        with_contexts = {"question": "How tall?", "contexts": ["A tower."]}
        for runnable, evaluators in ((chain, [first]), (guard, [])):
            handler = ScoreCallbackHandler(*evaluators, sink=records.append)
            runnable.invoke(with_contexts, {"callbacks": [handler]})
            assert handler.close(60)
    assert len(records) == 2
    for record in records:
        assert "wrong: [secret], [secret]" in str(record.evaluations[0].error)
        assert not [key for key in keys if key in record.as_json()]


def test_evaluators_run_where_what_they_do_is_nobodys_run() -> None:
    found: list[bool] = []

    def judge(sample: Sample) -> Evaluation:
        found.append(is_scoring())
        started = threading.Thread(target=contextvars.copy_context().run, args=(note,))
        started.start()
        started.join()
        return Evaluation(name="judge", score=1.0, passed=True)

    async def ajudge(sample: Sample) -> bool:
        found.append(is_scoring())
        return True

    def note() -> None:
        found.append(is_scoring())

    chain: Runnable[Any, Any] = RunnableLambda(str)
    assert not is_scoring()
    handler = ScoreCallbackHandler(judge, ajudge, sink=lambda record: None)
    for _ in range(2):
        chain.invoke("q", {"callbacks": [handler]})
    assert handler.close(30)
    assert found == [True] * 6
    assert not is_scoring()


def test_what_a_run_was_lost_by_is_told_without_its_words(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(**fields: object) -> None:
        raise ValueError(f"cannot take {SECRETS[0]}")

    handler = ScoreCallbackHandler(lambda sample: True, sink=lambda record: None)
    monkeypatch.setattr("demur.observe.scoring.Record", fails)
    RunnableLambda(str).invoke("an answer", {"callbacks": [handler]})
    assert handler.flush(30)
    assert handler.counts.lost == 1
    assert "demur lost a run: ValueError, at test_recorder.py:" in caplog.text
    assert SECRETS[0] not in caplog.text


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
        self.go.wait(30)
        with self._lock:
            self.now -= 1
            self.judged.append(sample.answer)
        return True


@pytest.fixture
def held() -> Iterator[Held]:
    held = Held()
    yield held
    held.go.set()


echoing: Runnable[Any, Any] = RunnableLambda(str)


def handler_of(held: Held, **options: Any) -> ScoreCallbackHandler:
    return ScoreCallbackHandler(held, sink=lambda record: None, **options)


def test_so_many_at_a_time_are_judged(held: Held) -> None:
    handler = handler_of(held, max_concurrency=3)
    for at in range(50):
        echoing.invoke(str(at), {"callbacks": [handler]})
    for _ in range(3):
        assert held.inside.acquire(timeout=30)
    assert handler.counts.waiting == 47
    held.go.set()
    assert handler.flush(30)
    assert held.most == 3
    assert sorted(map(int, held.judged)) == [*range(50)]


def test_flush_waits_for_what_was_there_and_not_for_what_comes_later(held: Held) -> None:
    first, second = Held(), held
    held.go.set()

    def judge(sample: Sample) -> bool:
        return first(sample) if sample.answer == "first" else second(sample)

    handler = ScoreCallbackHandler(judge, sink=lambda record: None, max_concurrency=2)
    echoing.invoke("first", {"callbacks": [handler]})
    assert not handler.flush(0.05)
    done = threading.Event()
    flushing = threading.Thread(target=lambda: handler.flush(30) and done.set())
    flushing.start()
    time.sleep(0.05)
    second.go.clear()
    echoing.invoke("second", {"callbacks": [handler]})
    first.go.set()
    assert done.wait(10)
    flushing.join()
    assert second.judged == []


@pytest.mark.parametrize("mode", ["invoke", "ainvoke"])
def test_block_waits_for_room_and_drops_nothing(mode: str, held: Held) -> None:
    handler = handler_of(held, max_queue=1, max_concurrency=1, on_full="block")

    async def in_loop() -> None:
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while not held.go.is_set():
                ticks += 1
                await asyncio.sleep(0.001)

        ticking = asyncio.create_task(tick())
        await asyncio.gather(
            *(echoing.ainvoke(str(at), {"callbacks": [handler]}) for at in range(10))
        )
        await ticking
        assert ticks > 10  # The loop went on while chains waited.

    def offer() -> None:
        if mode == "ainvoke":
            asyncio.run(in_loop())
            return
        for at in range(10):
            echoing.invoke(str(at), {"callbacks": [handler]})

    offering = threading.Thread(target=offer)
    offering.start()
    offering.join(0.3)
    assert offering.is_alive()
    held.go.set()
    offering.join(30)
    assert not offering.is_alive()
    assert handler.flush(30)
    assert sorted(map(int, held.judged)) == [*range(10)]
    assert handler.counts.dropped == 0


def test_close_lets_those_go_that_wait_for_room(held: Held) -> None:
    handler = handler_of(held, max_queue=1, max_concurrency=1, on_full="block")
    chains = threading.Thread(
        target=lambda: [echoing.invoke(str(at), {"callbacks": [handler]}) for at in range(10)]
    )
    chains.start()
    assert held.inside.acquire(timeout=30)
    assert not handler.close(0.1)
    chains.join(30)
    assert not chains.is_alive()
    counts = handler.counts
    assert (counts.runs, counts.dropped, counts.waiting) == (10, 10, 0)


def test_when_no_thread_can_be_started_the_next_to_come_tries_again(
    held: Held, monkeypatch: pytest.MonkeyPatch
) -> None:
    held.go.set()
    handler = handler_of(held)

    def no_more(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", no_more)
        patched.setattr("demur.runtime.pool._idle", deque())
        echoing.invoke("a", {"callbacks": [handler]})
        assert not handler.flush(0.01)
        assert handler.counts.waiting == 1
    echoing.invoke("b", {"callbacks": [handler]})
    assert handler.flush(30)
    assert sorted(held.judged) == ["a", "b"]


@pytest.mark.slow
def test_an_asynchronous_client_of_the_evaluators_own_serves_all_its_answers() -> None:
    """Use one client for all answers; it belongs to the loop in which it was first used."""
    import httpx

    from support.openai_server import Answer, openai_server

    with openai_server(lambda request, number: Answer("yes")) as server:
        client = httpx.AsyncClient(base_url=server.url)

        async def judge(sample: Sample) -> bool:
            asked = {"model": "m", "messages": [{"role": "user", "content": sample.answer}]}
            reply = await client.post("chat/completions", json=asked)
            return bool(reply.raise_for_status())

        async def main() -> None:
            handler = ScoreCallbackHandler(judge, sink=records.append)
            for at in range(12):
                await echoing.ainvoke(str(at), {"callbacks": [handler]})
            assert await asyncio.to_thread(handler.close, 60)

        records: list[Record] = []
        asyncio.run(main())
    assert [record.verdict for record in records] == ["passed"] * 12
