"""Test files of JSON lines: lines stay whole with several processes, kills and full disks."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from demur.errors import DemurError
from demur.observe import JSONLSink, Record
from support import records
from support.processes import end, forked, killed_at_random, together

posix = pytest.mark.skipif(os.name == "nt", reason="no such locks, modes and forks on Windows")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "scores.jsonl"


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record the names of the files that are synced to the disk."""
    done: list[str] = []
    real = os.fsync

    def fsync(file: int) -> None:
        done.append(Path(os.readlink(f"/proc/self/fd/{file}")).name)
        real(file)

    monkeypatch.setattr(os, "fsync", fsync)
    return done


def ids(path: Path) -> list[str]:
    """Return the ids of the records in a file, and assert that every line is whole."""
    return [Record.model_validate_json(line).id for line in path.read_bytes().splitlines()]


def test_a_record_is_a_line_that_reads_back(path: Path) -> None:
    written = [*records.several(10), records.hostile()]
    sink = JSONLSink(path)
    for record in written:
        sink.write(record)
    assert [Record.model_validate_json(line) for line in path.open("rb")] == written


def test_what_is_there_stays(path: Path) -> None:
    first, second = records.several(2)
    JSONLSink(path).write(first)
    JSONLSink(path).write(second)
    assert ids(path) == [first.id, second.id]


@posix
def test_a_new_file_is_the_owners_alone_and_an_old_one_keeps_its_mode(path: Path) -> None:
    JSONLSink(path).write(records.scored())
    assert path.stat().st_mode & 0o777 == 0o600
    path.chmod(0o640)
    JSONLSink(path).write(records.scored())
    assert path.stat().st_mode & 0o777 == 0o640


def test_the_folder_is_the_one_that_the_process_began_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    sink = JSONLSink("scores.jsonl")
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    sink.write(records.scored())
    assert len(ids(tmp_path / "scores.jsonl")) == 1


# --- Bad input -----------------------------------------------------------------------------------


def test_what_cannot_be_is_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(DemurError, match=r"No such file or directory.* in a folder that exists"):
        JSONLSink(tmp_path / "missing" / "scores.jsonl")
    with pytest.raises(DemurError, match="it is not a regular file"):
        JSONLSink(tmp_path)
    assert not [*tmp_path.iterdir()]


@posix
def test_a_file_that_may_not_be_written_is_told_at_once(path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may write anything")
    path.touch(0o400)
    with pytest.raises(DemurError, match="Permission denied"):
        JSONLSink(path)


# --- Lines that are torn -------------------------------------------------------------------------


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
@given(st.binary(max_size=100))
@example(b"")
@example(b'{"id": "a"')
@example(b'{"id": "a"}\n{"id"')
def test_a_torn_line_does_not_swallow_the_next_record(path: Path, before: bytes) -> None:
    path.write_bytes(before)
    record = records.scored()
    JSONLSink(path).write(record)
    torn = not before.endswith(b"\n") and before != b""
    line = record.as_json().encode() + b"\n"
    assert path.read_bytes() == before + (b"\n" if torn else b"") + line


@posix
def test_a_file_that_may_not_grow_keeps_whole_lines(path: Path) -> None:
    def fill() -> None:
        import resource
        import signal

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
        sink = JSONLSink(path)
        kept: list[str] = []
        with pytest.raises(OSError, match="File too large"):
            write_all(sink, records.several(100), kept)
        assert kept
        assert ids(path) == kept

    end(forked(fill))


def write_all(sink: JSONLSink, some: list[Record], kept: list[str]) -> None:
    for record in some:
        sink.write(record)
        kept.append(record.id)


# --- The disk ------------------------------------------------------------------------------------


@posix
def test_flush_puts_what_was_written_on_the_disk(path: Path, synced: list[str]) -> None:
    sink = JSONLSink(path)
    sink.write(records.scored())
    assert synced == []
    sink.flush()
    sink.close()
    assert synced == ["scores.jsonl"] * 2


# --- Rotation ------------------------------------------------------------------------------------


def test_a_file_that_was_rotated_away_is_begun_anew(path: Path) -> None:
    first, second, third = records.several(3)
    sink = JSONLSink(path)
    sink.write(first)
    path.rename(path.with_suffix(".1"))
    sink.flush()  # There is no file to flush.
    assert not path.exists()
    sink.write(second)
    path.unlink()
    sink.write(third)
    assert ids(path.with_suffix(".1")) == [first.id]
    assert ids(path) == [third.id]


def test_a_folder_that_went_away_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    sink = JSONLSink(tmp_path / "logs" / "scores.jsonl")
    (tmp_path / "logs" / "scores.jsonl").unlink()
    (tmp_path / "logs").rmdir()
    with pytest.raises(FileNotFoundError):
        sink.write(records.scored())


# --- Several at once -----------------------------------------------------------------------------


@posix
def test_a_write_waits_for_the_lock(path: Path) -> None:
    import fcntl

    sink, record = JSONLSink(path), records.scored()
    with path.open() as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        writing = threading.Thread(target=sink.write, args=(record,))
        writing.start()
        writing.join(0.1)
        assert writing.is_alive()
        assert path.read_bytes() == b""
    writing.join(10)
    assert ids(path) == [record.id]


@posix
def test_threads_lose_nothing(path: Path) -> None:
    sink, written = JSONLSink(path), records.several(200)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(sink.write, written))
    assert sorted(ids(path)) == sorted(record.id for record in written)


@posix
def test_a_forked_process_writes_beside_its_parent(path: Path) -> None:
    sink, written = JSONLSink(path), records.several(200)
    sink.write(written[0])
    child = forked(lambda: [sink.write(record) for record in written[100:]])
    for record in written[1:100]:
        sink.write(record)
    end(child)
    assert sorted(ids(path)) == sorted(record.id for record in written)


@posix
@pytest.mark.slow
def test_processes_lose_nothing_and_break_no_line(path: Path) -> None:
    written = [records.scored(answer="x" * (at * 97 % 20_000)) for at in range(1200)]

    def write(number: int) -> None:
        sink = JSONLSink(path)
        for record in written[number::6]:
            sink.write(record)

    together(6, write)
    found = ids(path)
    assert len(found) == len(written)
    assert set(found) == {record.id for record in written}


@posix
@pytest.mark.slow
def test_what_was_written_outlives_kills(path: Path) -> None:
    told = killed_at_random(lambda: JSONLSink(path).write, rounds=3, seed=8)
    lines = path.read_bytes().split(b"\n")
    found, torn = set(), 0
    for line in lines:
        try:
            found.add(Record.model_validate_json(line).id)
        except ValueError:
            torn += line != b""
    assert len(told) > 20
    assert set(told) <= found
    assert torn <= 3 * 2
