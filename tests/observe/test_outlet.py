"""The outlet: sinks that fail, hang and come back, and what becomes of the records."""

from __future__ import annotations

import asyncio
import logging
import os
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from demur.errors import DemurError
from demur.observe import JSONLSink, Record, Sink, SQLiteSink, fallback, feed
from demur.observe.outlet import Outlet, as_sinks
from demur.observe.sinks import FunctionSink
from support import records
from support.processes import end, forked


@dataclass  # with a repr, and without a hash
class Moody(Sink):
    """A sink that takes records while it is `up`."""

    api_key: str = "sk-secret"
    error: BaseException | None = None

    def __post_init__(self) -> None:
        self.taken: list[str] = []
        self.tries = self.flushed = self.closed = 0

    def write(self, record: Record) -> None:
        self.tries += 1
        if self.error is not None:
            raise self.error
        self.taken.append(record.id)

    def flush(self) -> None:
        self.flushed += 1
        if self.error is not None:
            raise self.error

    def close(self) -> None:
        self.closed += 1
        if self.error is not None:
            raise self.error


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Lets time go by for the outlet, which waits for nothing."""
    now = 1000.0

    def go_on(seconds: float) -> None:
        nonlocal now
        now += seconds

    monkeypatch.setattr(feed, "_now", lambda: now)
    monkeypatch.setattr(fallback, "_now", lambda: now)
    monkeypatch.setattr(feed, "_WAITS", (0.0, 0.0, 0.0, 0.0))
    return go_on


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The system's folder for temporary files."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "fallback.jsonl"


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    """What was logged since the last time, by level."""
    caplog.set_level(logging.DEBUG, "demur.observe")

    def told() -> list[str]:
        lines = [f"{one.levelname} {one.getMessage()}" for one in caplog.records]
        assert {one.name for one in caplog.records} <= {"demur.observe"}
        caplog.clear()
        return lines

    return told


def ids(path: Path) -> list[str]:
    return [Record.model_validate_json(line).id for line in path.read_bytes().splitlines()]


# --- A sink that works ---------------------------------------------------------------------------


def test_every_sink_has_every_record(tmp_path: Path) -> None:
    sink, called = Moody(), []
    sinks = as_sinks([tmp_path / "a.jsonl", str(tmp_path / "b.SQLITE"), sink, called.append])
    outlet, written = Outlet(sinks), records.several(5)
    for record in written:
        outlet.write(record)
    outlet.flush()
    outlet.close()
    assert ids(tmp_path / "a.jsonl") == sink.taken == [record.id for record in called]
    assert called == written
    assert (tmp_path / "b.SQLITE").exists()
    assert (sink.flushed, sink.closed) == (1, 1)
    assert (outlet.to_fallback, outlet.lost) == (0, 0)


class Bare:
    """With `write`, and nothing that says that it is a sink."""

    __slots__ = ("taken",)

    def __init__(self) -> None:
        self.taken: list[str] = []

    def write(self, record: Record) -> str:
        self.taken.append(record.id)
        return "kept"


class Buffering(Bare):
    """With all three, asynchronous."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[str] = []

    async def write(self, record: Record) -> None:  # type: ignore[override]  # as a user may
        await asyncio.sleep(0)
        self.taken.append(record.id)

    async def flush(self) -> None:
        self.told.append("flush")

    async def close(self) -> None:
        self.told.append("close")

    def __call__(self, record: Record) -> None:
        raise AssertionError("it has `write`")


def test_an_object_with_write_is_a_sink() -> None:
    bare, buffering = Bare(), Buffering()
    outlet, written = Outlet(as_sinks([bare, buffering])), records.several(3)
    for record in written:
        outlet.write(record)
    outlet.flush()
    outlet.close()
    assert bare.taken == buffering.taken == [record.id for record in written]
    assert buffering.told == ["flush", "close"]
    assert (outlet.to_fallback, outlet.lost) == (0, 0)


def test_an_object_with_write_that_fails_is_a_sink_that_fails(
    path: Path, clock: Callable[[float], None], said: Callable[[], list[str]]
) -> None:
    class Broken(Bare):
        def write(self, record: Record) -> str:
            raise OSError("gone")

    outlet = Outlet(as_sinks(Broken()), fallback=path)
    outlet.write(records.scored(id="1"))
    assert ids(path) == ["1"]
    assert "Broken does not take records (OSError: gone)" in said()[0]


def test_what_has_write_for_texts_is_refused(tmp_path: Path) -> None:
    with (tmp_path / "log.txt").open("w") as file, pytest.raises(TypeError, match="give its path"):
        as_sinks(file)


def test_an_object_with_write_is_one_sink_for_all_that_have_it() -> None:
    one, other = Bare(), Bare()
    assert as_sinks(one)[0] is as_sinks([one])[0]
    assert as_sinks(one)[0] is not as_sinks(other)[0]


def test_a_sink_is_asked_by_one_thread_at_a_time_whichever_outlet_it_is_of() -> None:
    inside, most, seen = 0, 0, []

    class Slow(Moody):
        def write(self, record: Record) -> None:
            nonlocal inside, most
            inside += 1
            most = max(most, inside)
            threading.Event().wait(0.001)
            seen.append(record.id)
            inside -= 1

    sink = Slow()
    outlets, written = [Outlet([sink]), Outlet([sink])], records.several(60)
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda at: outlets[at % 2].write(written[at]), range(60)))
    assert most == 1
    assert len(seen) == 60


def test_the_lock_of_a_sink_goes_with_it() -> None:
    before = len(feed._locks)
    for _ in range(5):
        Outlet([Moody()])
    assert len(feed._locks) <= before + 1


# --- A sink that fails ---------------------------------------------------------------------------


def test_a_record_is_tried_again(
    path: Path, clock: Callable[[float], None], said: Callable[[], list[str]]
) -> None:
    fails = iter([OSError("once"), TimeoutError("twice"), asyncio.CancelledError(), None])
    taken = []

    def write(record: Record) -> None:
        error = next(fails)
        if error is not None:
            raise error
        taken.append(record.id)

    outlet = Outlet([FunctionSink(write)], fallback=path)
    outlet.write(records.scored(id="1"))
    assert taken == ["1"]
    assert said() == []
    assert not path.exists()


def test_tries_take_about_a_second_in_all() -> None:
    assert 0.8 <= sum(feed._WAITS) <= 1.2
    assert [*feed._WAITS] == sorted(feed._WAITS)


def test_a_sink_that_is_down_is_fallbacked_for_and_comes_back(
    path: Path, clock: Callable[[float], None], said: Callable[[], list[str]]
) -> None:
    sink, other = Moody(error=OSError("no\nroute")), Moody()
    outlet = Outlet([sink, other], fallback=path)
    names = [str(number) for number in range(20)]
    for name in names[:10]:
        outlet.write(records.scored(id=name))
    # Five tries of the first, one of the second in case that the first itself was at fault.
    assert sink.tries == 6
    assert said() == [
        f"WARNING Moody does not take records (OSError: no route): until it does, they go to {path}"
    ]
    clock(4.9)
    outlet.write(records.scored(id=names[10]))
    assert sink.tries == 6
    clock(0.2)
    outlet.write(records.scored(id=names[11]))
    assert sink.tries == 7
    outlet.write(records.scored(id=names[12]))
    assert sink.tries == 7
    assert ids(path) == names[:13]
    assert outlet.to_fallback == 13
    sink.error = None
    clock(5.1)
    for name in names[13:]:
        outlet.write(records.scored(id=name))
    assert said() == [f"WARNING Moody takes records again; 13 records went to {path}"]
    assert sink.taken == names[13:]
    assert other.taken == names
    assert outlet.lost == 0


def test_one_record_that_a_sink_cannot_take_costs_the_others_nothing(
    path: Path, clock: Callable[[float], None], said: Callable[[], list[str]]
) -> None:
    taken = []

    def write(record: Record) -> None:
        if record.id.startswith("bad"):
            raise TypeError("not that one")
        taken.append(record.id)

    (sink,) = as_sinks(write)
    outlet = Outlet([sink], fallback=path)
    for at in range(10):
        outlet.write(records.scored(id=f"bad {at}"))
        outlet.write(records.scored(id=f"good {at}"))
        clock(1)
    assert taken == [f"good {at}" for at in range(10)]
    assert ids(path) == [f"bad {at}" for at in range(10)]
    # It is not told of each time.
    down, again = said()
    assert down.startswith(f"WARNING {sink!r} does not take records (TypeError: not that one)")
    assert again == f"WARNING {sink!r} takes records again; 1 record went to {path}"
    outlet.close()
    assert said() == [f"WARNING {sink!r} did not take 9 records; see {path}"]


def test_a_sink_that_fails_slowly_is_asked_more_seldom(
    path: Path, clock: Callable[[float], None]
) -> None:
    sink = Moody()

    def slow(record: Record) -> None:
        sink.tries += 1
        clock(3)
        raise TimeoutError

    outlet = Outlet(as_sinks(slow), fallback=path)
    outlet.write(records.scored())
    assert sink.tries == 1  # no patience for five of these
    outlet.write(records.scored())
    assert sink.tries == 2
    clock(29)
    outlet.write(records.scored())
    assert sink.tries == 2
    clock(2)
    outlet.write(records.scored())
    assert sink.tries == 3


def test_close_ends_the_waiting(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed, "_WAITS", (60.0,))
    sink = Moody(error=OSError())
    outlet = Outlet([sink], fallback=path)
    writing = threading.Thread(target=outlet.write, args=(records.scored(id="1"),))
    writing.start()
    while not sink.tries:
        writing.join(0.01)
    outlet.close()
    writing.join(10)
    assert not writing.is_alive()
    assert ids(path) == ["1"]
    outlet.write(records.scored(id="2"))  # waits for nothing, and is not lost
    assert ids(path) == ["1", "2"]


def test_a_sink_that_hangs_stops_nobody(
    path: Path, monkeypatch: pytest.MonkeyPatch, said: Callable[[], list[str]]
) -> None:
    monkeypatch.setattr(feed, "_BUSY_SECONDS", 0.05)
    monkeypatch.setattr(feed, "_DOWN_SECONDS", (0.0, 0.0))
    go_on, taken = threading.Event(), []

    def hang(record: Record) -> None:
        go_on.wait(10)
        taken.append(record.id)

    other = Moody()
    outlet = Outlet([*as_sinks(hang), other], fallback=path)
    hanging = threading.Thread(target=outlet.write, args=(records.scored(id="0"),))
    hanging.start()
    for name in ("1", "2", "3"):
        outlet.write(records.scored(id=name))
    assert ids(path) == other.taken == ["1", "2", "3"]
    outlet.close()
    down, closing, _ = said()
    assert "TimeoutError: busy with another record" in down
    assert "cannot be closed: busy with a record" in closing
    go_on.set()
    hanging.join(10)
    outlet.write(records.scored(id="4"))
    assert taken == ["0", "4"]


def test_an_interrupt_goes_through_and_the_sink_is_asked_again(
    path: Path, clock: Callable[[float], None]
) -> None:
    sink = Moody(error=OSError())
    outlet = Outlet([sink], fallback=path)
    outlet.write(records.scored())
    for error in (KeyboardInterrupt(), SystemExit()):
        sink.error = error
        clock(100)
        with pytest.raises(type(error)):
            outlet.write(records.scored())
    sink.error = None
    clock(100)
    outlet.write(records.scored(id="1"))
    assert sink.taken == ["1"]


def test_what_fails_at_the_end_is_logged(path: Path, said: Callable[[], list[str]]) -> None:
    sink = Moody(error=OSError("gone"))
    outlet = Outlet([sink, Moody()], fallback=path)
    outlet.flush()
    outlet.close()
    assert said() == [
        "WARNING Moody cannot be flushed: OSError: gone",
        "WARNING Moody cannot be closed: OSError: gone",
    ]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(st.lists(st.tuples(st.booleans(), st.floats(0, 20)), max_size=40))
def test_every_record_is_in_the_sink_or_in_the_fallback(
    tmp_path: Path, clock: Callable[[float], None], moods: list[tuple[bool, float]]
) -> None:
    sink, path = Moody(), tmp_path / "fallback.jsonl"
    path.write_bytes(b"")
    outlet = Outlet([sink], fallback=path)
    for at, (fails, seconds) in enumerate(moods):
        sink.error = OSError() if fails else None
        outlet.write(records.scored(id=str(at)))
        clock(seconds)
    kept = ids(path)
    assert sorted(map(int, [*sink.taken, *kept])) == [*range(len(moods))]
    assert (outlet.to_fallback, outlet.lost) == (len(kept), 0)


def test_threads_lose_nothing_while_a_sink_comes_and_goes(
    path: Path, clock: Callable[[float], None]
) -> None:
    taken, count = [], iter(range(10**6))

    def write(record: Record) -> None:
        if next(count) % 7 < 3:
            raise OSError
        taken.append(record.id)

    outlet, written = Outlet(as_sinks(write), fallback=path), records.several(300)
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(outlet.write, written))
    kept = ids(path) if path.exists() else []
    assert sorted([*taken, *kept]) == sorted(record.id for record in written)
    assert outlet.to_fallback == len(kept)


# --- The fallback file ---------------------------------------------------------------------------


def test_without_a_place_the_fallback_is_a_temporary_file(
    temporary: Path, clock: Callable[[float], None], said: Callable[[], list[str]]
) -> None:
    sink = Moody(error=OSError())
    outlet = Outlet([sink])
    assert not [*temporary.iterdir()]
    outlet.write(records.scored(id="1"))
    outlet.write(records.scored(id="2"))
    (made,) = temporary.iterdir()
    assert made.name.startswith("demur-fallback-")
    assert made.suffix == ".jsonl"
    assert ids(made) == ["1", "2"]
    if os.name != "nt":
        assert made.stat().st_mode & 0o777 == 0o600
    assert str(made) in said()[0]


def test_a_fallback_that_cannot_be_is_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(DemurError, match="there is no folder"):
        Outlet([], fallback=tmp_path / "missing" / "a.jsonl")
    with pytest.raises(DemurError, match="that is a folder, expected a file"):
        Outlet([], fallback=tmp_path)


def test_a_fallback_that_fails_loses_records_and_counts_them(
    temporary: Path, clock: Callable[[float], None], said: Callable[[], list[str]]
) -> None:
    temporary.rmdir()
    outlet = Outlet([Moody(error=OSError("gone"))])
    for _ in range(5):
        outlet.write(records.scored())
    assert (outlet.to_fallback, outlet.lost) == (0, 5)
    down, lost = said()
    assert "they go to nowhere, as no file can be written (FileNotFoundError" in down
    assert lost.startswith("ERROR records are lost, 1 so far: the file for what a sink")
    temporary.mkdir()
    outlet.write(records.scored())
    assert (outlet.to_fallback, outlet.lost) == (1, 5)


def test_a_fallback_that_fails_later_does_not_raise(
    path: Path,
    clock: Callable[[float], None],
    monkeypatch: pytest.MonkeyPatch,
    said: Callable[[], list[str]],
) -> None:
    outlet = Outlet([Moody(error=OSError("gone"))], fallback=path)
    outlet.write(records.scored(id="1"))
    said()

    def fail(*arguments: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", fail)
    outlet.write(records.scored(id="2"))
    monkeypatch.setattr(os, "fsync", fail)
    outlet.flush()
    monkeypatch.undo()
    assert ids(path) == ["1"]
    assert (outlet.to_fallback, outlet.lost) == (1, 1)
    lost, _, flushing = said()
    assert "cannot be written (OSError: [Errno 28] No space left on device)" in lost
    assert "JSONLSink" in flushing
    assert "cannot be flushed" in flushing


@pytest.mark.skipif(os.name == "nt", reason="no forks on Windows")
def test_a_forked_process_is_stopped_by_no_lock_of_its_parents(path: Path, tmp_path: Path) -> None:
    sink = JSONLSink(tmp_path / "scores.jsonl")
    outlet = Outlet([sink], fallback=path)
    with feed._lock_of(sink):  # as if another thread wrote
        child = forked(lambda: Outlet([sink], fallback=path).write(records.scored(id="1")))
        end(child)
    outlet.write(records.scored(id="2"))
    assert ids(sink.path) == ["1", "2"]
    assert not path.exists()


# --- What is logged ------------------------------------------------------------------------------


def test_no_key_of_a_sink_is_logged(
    path: Path, clock: Callable[[float], None], said: Callable[[], list[str]]
) -> None:
    class Poster:
        def __repr__(self) -> str:
            return "Poster(sk-secret)"

        def __call__(self, record: Record) -> None:
            raise OSError("gone")

    for given_as in (Moody(error=OSError("gone")), Poster(), partial(Poster(), "sk-secret")):
        outlet = Outlet(as_sinks(given_as), fallback=path)
        outlet.write(records.scored())
        outlet.flush()
        outlet.close()
        lines = said()
        assert lines
        assert "secret" not in "".join(lines)


@pytest.mark.parametrize(
    "error",
    [
        lambda record: ValueError(f"cannot send {record}"),
        lambda record: KeyError(record.question),
        lambda record: OSError(record.answer[5:25]),
        lambda record: ValueError(record.contexts[0].page_content),
        lambda record: _invalid(record.answer),
    ],
)
def test_no_text_of_a_record_is_logged(
    path: Path,
    clock: Callable[[float], None],
    said: Callable[[], list[str]],
    error: Callable[[Record], Exception],
) -> None:
    def write(record: Record) -> None:
        raise error(record)

    outlet = Outlet(as_sinks(write), fallback=path)
    outlet.write(records.scored())
    (line,) = said()
    assert "whose words quote the record" in line
    assert "Danube" not in line


def _invalid(answer: str) -> Exception:
    try:
        TypeAdapter(int).validate_python(answer)
    except ValueError as error:
        return error
    raise AssertionError


# --- What users give -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "made"),
    [
        *((name, SQLiteSink) for name in ("a.sqlite", "a.sqlite3", "a.db", "a.x.DB")),
        *((name, JSONLSink) for name in ("a.jsonl", "a.ndjson", "a.db.JSONL")),
    ],
)
def test_a_path_is_known_by_its_end(tmp_path: Path, name: str, made: type) -> None:
    for given_as in (str(tmp_path / name), tmp_path / name):
        (sink,) = as_sinks(given_as)
        assert type(sink) is made


@pytest.mark.parametrize("name", ["scores.json", "scores", "scores.jsonl.gz", "", ".db"])
def test_a_path_with_another_end_is_an_error(name: str) -> None:
    with pytest.raises(ValueError, match=r"\.sqlite, \.sqlite3 or \.db .* \.jsonl or \.ndjson"):
        as_sinks(name)


@pytest.mark.parametrize("wrong", [None, 1, b"scores.db", {"a": 1}, {"scores.db"}, [["a.db"]]])
def test_something_else_is_an_error(wrong: Any) -> None:
    with pytest.raises(TypeError, match="expected as a sink a path, a Sink or another object"):
        as_sinks(wrong)


def test_a_class_and_nothing_are_errors() -> None:
    with pytest.raises(TypeError, match=r"the class Moody itself: give an instance of it, Moody"):
        as_sinks(Moody)
    with pytest.raises(ValueError, match="expected at least one sink"):
        as_sinks([])


def async_kinds() -> Iterator[Callable[[list[str]], Callable[[Record], object]]]:
    async def append(taken: list[str], record: Record) -> None:
        await asyncio.sleep(0)
        taken.append(record.id)

    class Appends:
        def __init__(self, taken: list[str]) -> None:
            self.taken = taken

        async def __call__(self, record: Record) -> None:
            await append(self.taken, record)

    yield lambda taken: partial(append, taken)
    yield Appends
    yield lambda taken: lambda record: append(taken, record)


@pytest.mark.parametrize("kind", [*async_kinds()])
def test_what_is_async_runs_to_its_end(
    kind: Callable[[list[str]], Callable[[Record], object]],
) -> None:
    taken: list[str] = []
    outlet = Outlet(as_sinks(kind(taken)))
    outlet.write(records.scored(id="1"))
    assert taken == ["1"]


def test_what_is_async_and_fails_is_fallbacked(path: Path, clock: Callable[[float], None]) -> None:
    async def fail(record: Record) -> None:
        await asyncio.sleep(0)
        raise OSError("gone")

    outlet = Outlet(as_sinks(fail), fallback=path)
    outlet.write(records.scored(id="1"))
    assert ids(path) == ["1"]
