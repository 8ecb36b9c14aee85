"""Test all kinds of sinks, also failing ones: each record is in the sink or in a file beside it."""

from __future__ import annotations

import asyncio
import logging
import tempfile
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from langchain_core.runnables import Runnable, RunnableLambda

from demur import DemurError, ScoreCallbackHandler
from demur.observe import JSONLSink, Record, RunCounts, Sink, SQLSink
from support.handlers import echo

SECRET = "sk-secret"
ANSWER = "The Danube is good, and 2,850 kilometres long."


@pytest.fixture(autouse=True)
def temporary(at_once: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give the test its own folder for the system's temporary files."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    """Return a function that gives the messages since its last call, with their levels."""
    caplog.set_level(logging.DEBUG, "demur")

    def told() -> list[str]:
        lines = [f"{one.levelname} {one.getMessage()}" for one in caplog.records]
        caplog.clear()
        return lines

    return told


def answered(handler: ScoreCallbackHandler, *questions: str) -> RunCounts:
    """Have a chain answer questions, and return the handler's counts."""
    chain: Runnable[Any, Any] = RunnableLambda(lambda question: ANSWER)
    for question in questions:
        chain.invoke(question, {"callbacks": [handler]})
    assert handler.flush(30)
    return handler.counts


def handler_of(sink: Any, **options: Any) -> ScoreCallbackHandler:
    return ScoreCallbackHandler(echo, sink=sink, max_concurrency=1, **options)


def asked(path: Path) -> list[str | None]:
    """Return the questions of the records in a file of JSON lines."""
    return [Record.model_validate_json(line).question for line in path.read_bytes().splitlines()]


class Moody(Sink):
    """Take records while `up` is true, and else raise an error."""

    def __init__(self, up: bool = True, error: BaseException | None = None) -> None:
        self.up, self.error = up, error or OSError(28, "No space left on device")
        self.taken: list[str | None] = []
        self.tries, self.told = 0, list[str]()

    def __repr__(self) -> str:
        return f"Moody({SECRET})"

    def write(self, record: Record) -> None:
        self.tries += 1
        if not self.up:
            raise self.error
        self.taken.append(record.question)

    def flush(self) -> None:
        self.told.append("flush")

    def close(self) -> None:
        self.told.append("close")


# --- Sinks of all kinds --------------------------------------------------------------------------


class Bare:
    """Offer `write`, and nothing else that marks a sink."""

    __slots__ = ("taken",)

    def __init__(self) -> None:
        self.taken: list[str | None] = []

    def write(self, record: Record) -> str:
        self.taken.append(record.question)
        return "kept"


class Buffering:
    """Offer all three methods, asynchronous, and record the loops in which they run."""

    def __init__(self) -> None:
        self.taken: list[str | None] = []
        self.told: list[str] = []
        self.loops: set[int] = set()

    async def write(self, record: Record) -> None:
        self.loops.add(id(asyncio.get_running_loop()))
        await asyncio.sleep(0)
        self.taken.append(record.question)

    async def flush(self) -> None:
        self.told.append("flush")

    async def close(self) -> None:
        self.told.append("close")

    def __call__(self, record: Record) -> None:
        raise AssertionError("it has `write`")


def test_every_sink_has_every_record_in_order(tmp_path: Path) -> None:
    moody, bare, buffering, called = Moody(), Bare(), Buffering(), list[Record]()

    async def function(record: Record) -> None:
        await asyncio.sleep(0)
        called.append(record)

    lines = tmp_path / "a.jsonl"
    handler = handler_of([lines, str(tmp_path / "b.SQLITE"), moody, bare, buffering, function])
    counts = answered(handler, "1", "2", "3")
    assert handler.close(30)
    assert asked(lines) == moody.taken == bare.taken == buffering.taken == ["1", "2", "3"]
    assert [record.question for record in called] == ["1", "2", "3"]
    assert (tmp_path / "b.SQLITE").exists()
    assert moody.told == buffering.told == ["flush", "close"]
    assert (counts.recorded, counts.to_fallback, counts.lost) == (3, 0, 0)
    assert len(buffering.loops) == 1


def test_a_sink_is_asked_by_one_thread_at_a_time() -> None:
    inside, most = 0, 0

    def write(record: Record) -> None:
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        threading.Event().wait(0.001)
        inside -= 1

    handler = ScoreCallbackHandler(echo, sink=write, max_concurrency=8)
    assert answered(handler, *map(str, range(40))).recorded == 40
    assert most == 1


@pytest.mark.parametrize(
    ("name", "made"),
    [("a.x.DB", SQLSink), ("a.sqlite3", SQLSink), ("a.ndjson", JSONLSink)],
)
def test_a_path_is_known_by_its_end(tmp_path: Path, name: str, made: Any) -> None:
    path = tmp_path / name
    answered(handler_of(path), "1")
    made(path)  # Another sink of the same kind opens the file.
    assert path.read_bytes().startswith(b"SQLite format 3" if made is SQLSink else b"{")


def test_what_is_no_sink_is_refused(tmp_path: Path) -> None:
    for path in ("scores.json", "scores", "scores.jsonl.gz", "", ".db"):
        with pytest.raises(ValueError, match=r"\.sqlite, \.sqlite3 or \.db .* \.jsonl or \.ndjson"):
            handler_of(path)
    for wrong in (None, b"scores.db", {"scores.db"}, [["a.db"]]):
        with pytest.raises(TypeError, match="expected as a sink a path, a Sink or another object"):
            handler_of(wrong)
    with pytest.raises(TypeError, match=r"the class Moody itself: give an instance of it, Moody"):
        handler_of(Moody)
    with (tmp_path / "log.txt").open("w") as file, pytest.raises(TypeError, match="give its path"):
        handler_of(file)
    with pytest.raises(ValueError, match="expected at least one sink"):
        handler_of([])
    for place in ("no/such/folder/a.jsonl", "."):
        with pytest.raises(DemurError, match=r"cannot keep records in .*: expected a file"):
            handler_of(print, fallback=tmp_path / place)


# --- A sink that fails ---------------------------------------------------------------------------


def test_a_record_is_offered_again(said: Callable[[], list[str]]) -> None:
    fails = iter([OSError("once"), TimeoutError("twice"), None])
    taken = []

    def write(record: Record) -> None:
        if error := next(fails):
            raise error
        taken.append(record.question)

    counts = answered(handler_of(write), "1")
    assert taken == ["1"]
    assert (counts.recorded, counts.to_fallback, counts.lost) == (1, 0, 0)
    assert said() == []


@pytest.mark.parametrize("kind", ["sync", "async", "an exit", "cancelled"])
def test_what_a_sink_does_not_take_is_in_a_file_and_is_told_once(
    kind: str, said: Callable[[], list[str]], temporary: Path
) -> None:
    moody = Moody(up=False)
    if kind == "an exit":
        moody.error = SystemExit(3)
    if kind == "cancelled":
        moody.error = asyncio.CancelledError()

    async def write(record: Record) -> None:
        await asyncio.sleep(0)
        moody.write(record)

    handler = handler_of(write if kind == "async" else moody)
    counts = answered(handler, "1", "2", "3")
    (file,) = temporary.iterdir()
    assert asked(file) == ["1", "2", "3"]
    assert file.stat().st_mode & 0o777 == 0o600
    assert (counts.recorded, counts.to_fallback, counts.lost) == (3, 3, 0)
    (line,) = said()
    assert line.startswith("WARNING")
    assert f"does not accept records ({type(moody.error).__name__}" in line
    assert str(file) in line
    moody.up = True
    assert answered(handler, "4").to_fallback == 3
    assert moody.taken == ["4"]
    moody.up, moody.tries = False, 0
    answered(handler, "5", *"abcdefgh")
    assert len(said()) == 1  # This message is about the new failure.
    tries = 1 if isinstance(moody.error, (SystemExit, asyncio.CancelledError)) else 4
    assert moody.tries == tries + 8  # While it is down, each record is offered once.


def test_records_are_beside_the_sinks_own_file_or_where_it_is_said(tmp_path: Path) -> None:
    """Keep them also if the sink is one of several, and if the user's own reader fails."""

    class Full(JSONLSink):
        def write(self, record: Record) -> None:
            raise OSError(28, "No space left on device")

    answered(handler_of(Full(tmp_path / "scores.jsonl")), "1")
    assert asked(tmp_path / "scores.jsonl.fallback.jsonl") == ["1"]
    bare, path = Bare(), tmp_path / "kept.jsonl"
    sinks = [Full(tmp_path / "x.jsonl"), bare, Moody(up=False)]
    counts = answered(handler_of(sinks, fallback=path), "1", "2")
    assert bare.taken == ["1", "2"]
    assert asked(path) == ["1", "1", "2", "2"]
    assert (counts.recorded, counts.to_fallback) == (2, 4)


def test_no_error_of_a_reader_or_of_a_sink_reaches_the_chain() -> None:
    def raises(_: Any) -> str:
        raise RuntimeError("a reader of the user's")

    counts = answered(handler_of(Moody(up=False), question=raises, fallback="/dev/null"), "1")
    assert counts.recorded == 1


def test_what_no_file_takes_either_is_lost_and_counted(
    tmp_path: Path, said: Callable[[], list[str]]
) -> None:
    handler = handler_of(Moody(up=False), fallback=tmp_path / "kept.jsonl")
    (tmp_path / "kept.jsonl").mkdir()
    counts = answered(handler, "1", "2")
    assert (counts.to_fallback, counts.lost) == (0, 2)
    (line,) = said()
    assert line.startswith("ERROR records are lost: ")
    assert "No space left on device" in line


# --- What is logged ------------------------------------------------------------------------------


def test_no_key_of_a_sink_and_no_text_of_a_record_is_logged(said: Callable[[], list[str]]) -> None:
    class Poster:
        def __repr__(self) -> str:
            return f"Poster({SECRET})"

        def __call__(self, *given: Any) -> None:
            raise KeyError(f"cannot send {given[-1].answer[5:25]}, {SECRET}")

    for sink in (Moody(up=False), Poster(), partial(Poster(), SECRET)):
        handler = handler_of(sink)
        answered(handler, "1")
        handler.close(30)
        (line,) = said()
        assert not [text for text in ("secret", "Danube", "cannot send") if text in line]
    assert "KeyError, at test_sinks_that_fail.py:" in line
