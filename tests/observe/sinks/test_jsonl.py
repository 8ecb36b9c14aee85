"""Test files of JSON lines: lines stay whole with several processes, kills and full disks."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from demur.errors import DemurError
from demur.observe import JSONLSink, Record, SQLSink
from support import records
from support.processes import end, forked, posix, together, written_until_full


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "scores.jsonl"


def ids(path: Path) -> list[str]:
    """Return the ids of the records in a file, and assert that every line is whole."""
    return [Record.model_validate_json(line).id for line in path.read_bytes().splitlines()]


def test_a_record_is_a_line_that_reads_back(path: Path) -> None:
    written = [*records.several(10), records.hostile()]
    sink = JSONLSink(path)
    for record in written[:9]:
        sink.write(record)
    again = JSONLSink(path)
    for record in written[9:]:
        again.write(record)
    assert [Record.model_validate_json(line) for line in path.open("rb")] == written


def test_flush_and_close_put_what_was_written_on_the_disk(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda file: synced.append(os.fstat(file).st_ino))
    sink = JSONLSink(path)
    sink.write(records.scored())
    assert synced == []
    sink.flush()
    sink.close()
    assert synced == [path.stat().st_ino] * 2


@pytest.mark.parametrize("make", [JSONLSink, SQLSink])
def test_the_folder_is_the_one_that_the_process_began_in(
    make: type[JSONLSink | SQLSink], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    sink = make("scores.log")
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    sink.write(records.scored())
    assert (tmp_path / "scores.log").stat().st_size
    assert not [*(tmp_path / "other").iterdir()]


@pytest.mark.parametrize("make", [JSONLSink, SQLSink])
def test_what_cannot_be_is_told_at_once(make: type[JSONLSink | SQLSink], tmp_path: Path) -> None:
    with pytest.raises(DemurError, match=r"No such file or directory.* in a folder that exists"):
        make(tmp_path / "missing" / "scores.log")
    with pytest.raises(DemurError, match="it is not a regular file"):
        make(tmp_path)
    assert not [*tmp_path.iterdir()]


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
        kept, error = written_until_full(JSONLSink(path).write, 20_000)
        assert "File too large" in error
        assert ids(path) == kept != []

    end(forked(fill))


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


# --- Several at once -----------------------------------------------------------------------------


@posix
@pytest.mark.slow
def test_processes_lose_nothing_and_break_no_line(path: Path) -> None:
    written = [records.scored(answer="x" * (at * 97 % 20_000)) for at in range(300)]

    def write(number: int) -> None:
        sink = JSONLSink(path)
        for record in written[number::6]:
            sink.write(record)

    together(6, write)
    assert sorted(ids(path)) == sorted(record.id for record in written)
