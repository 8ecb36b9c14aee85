"""New runs of a log that grows: each once, whatever becomes of the file."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from demur.observe import JSONLSink, Record, Sink, SQLiteSink
from demur.observe.log import Filters, Following, open_log, records, select
from support.records import jsonl, scored, sqlite

SINKS = {"a.jsonl": JSONLSink, "a.sqlite": SQLiteSink}
both = pytest.mark.parametrize("name", SINKS)


def _follow(path: Path) -> Following:
    with open_log(path) as log:
        return Following(log)


def _poll(following: Following) -> list[str]:
    """The ids of the new runs, which the poll's log holds whole."""
    with following.poll() as (log, after):
        held = [*records(log, Filters(after=after))]
        return [one.id for one in held if isinstance(one, Record)]


def _damage(following: Following) -> list[str]:
    with following.poll() as (log, _):
        return [one.place for one in log.damaged]


def _append(path: Path, *parts: bytes) -> None:
    with path.open("ab") as file:
        file.write(b"".join(parts))


def _line(record: Record) -> bytes:
    return record.as_json().encode() + b"\n"


@both
def test_what_was_there_is_not_new_and_what_comes_is_told_once(tmp_path: Path, name: str) -> None:
    path, old, new = tmp_path / name, scored(), [scored(at=at) for at in (1, 2)]
    sink: Sink = SINKS[name](path)
    sink.write(old)
    following = _follow(path)
    assert _poll(following) == []
    for one in new:
        sink.write(one)
    assert {*_poll(following)} == {one.id for one in new}
    for one in (new[1], old):  # the newest and the oldest, recorded anew
        sink.write(one)
        assert _poll(following) == [one.id]
    sink.close()
    assert _poll(following) == []


@both
def test_a_run_that_ended_long_ago_is_told_when_it_comes(tmp_path: Path, name: str) -> None:
    sink: Sink = SINKS[name](tmp_path / name)
    sink.write(scored(at=10**8))
    following = _follow(tmp_path / name)
    late = scored()
    sink.write(late)
    assert _poll(following) == [late.id]
    sink.close()


@both
def test_runs_of_a_thread_that_writes_are_told_once_each(tmp_path: Path, name: str) -> None:
    sink: Sink = SINKS[name](tmp_path / name)
    runs = [scored(at=at) for at in range(60)]
    random.Random(3).shuffle(runs)
    following = _follow(tmp_path / name)

    def write() -> None:
        for one in runs:
            sink.write(one)
            time.sleep(0.002)

    writer = threading.Thread(target=write)
    writer.start()
    told: list[str] = []
    ends = time.monotonic() + 30
    while len(told) < len(runs) and time.monotonic() < ends:
        told += _poll(following)
    writer.join()
    assert sorted(told) == sorted(one.id for one in runs)
    assert _poll(following) == []
    sink.close()


# -- lines -----------------------------------------------------------------------------------------


def test_a_line_that_is_being_written_is_waited_for(tmp_path: Path) -> None:
    path, run = jsonl(tmp_path / "a.jsonl", [scored()]), scored(at=1)
    line = _line(run)
    _append(path, line[:50])
    following = _follow(path)
    for part in (line[50:90], line[90:-1]):
        assert _poll(following) == []
        assert _damage(following) == []
        _append(path, part)
    assert _poll(following) == [run.id]
    _append(path, b"\n", _line(scored(at=2)))
    assert len(_poll(following)) == 1


def test_a_line_that_stays_torn_is_told_with_its_number(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "a.jsonl", [scored(), scored(at=1)])
    following = _follow(path)
    _append(path, _line(scored(at=2))[:50])
    assert _damage(following) == []
    _append(path, b"\n", _line(scored(at=3)))
    assert _damage(following) == ["line 3"]


def test_lines_are_counted_where_one_had_no_line_break_yet(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(_line(scored())[:-1])
    following = _follow(path)
    _append(path, b"\n", b"damaged\n")
    assert _damage(following) == ["line 2"]


@pytest.mark.parametrize("take_away", [os.replace, lambda old, new: os.unlink(old)])
def test_a_file_that_is_rotated_away_is_read_to_its_end_and_then_the_new_one(
    tmp_path: Path, take_away: Callable[[Path, Path], None]
) -> None:
    path = jsonl(tmp_path / "a.jsonl", [scored()])
    following = _follow(path)
    assert _poll(following) == []
    runs = [scored(at=at) for at in range(1, 6)]
    with path.open("ab") as old:
        old.write(_line(runs[0]))
        old.flush()
        take_away(path, tmp_path / "a.jsonl.1")
        assert _poll(following) == [runs[0].id]
        old.write(_line(runs[1]))  # by somebody who did not notice
        old.flush()
        assert _poll(following) == [runs[1].id]
    assert _poll(following) == []
    jsonl(path, runs[2:4])
    assert {*_poll(following)} == {one.id for one in runs[2:4]}
    _append(path, _line(runs[4]))
    assert _poll(following) == [runs[4].id]


def test_a_file_that_is_cut_is_read_from_its_start(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "a.jsonl", [scored(at=at) for at in range(4)])
    following = _follow(path)
    _append(path, b'{"torn')
    assert _poll(following) == []
    run = scored(at=9)
    path.write_bytes(_line(run))  # in place: the file is the same
    with following.poll() as (log, after):
        assert [one.id for one in select(log, Filters(after=after))] == [run.id]
        assert [one.place for one in log.damaged] == ["line 5"]


def test_a_file_replaced_before_the_first_look_is_read_from_its_start(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "a.jsonl", [scored()])
    following = _follow(path)
    new = [scored(at=at) for at in (1, 2, 3)]
    os.replace(jsonl(tmp_path / "b.jsonl", new), path)
    assert _poll(following) == []
    assert {*_poll(following)} == {one.id for one in new}


# -- databases -------------------------------------------------------------------------------------


def test_an_empty_file_may_become_a_database(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    path.write_bytes(b"")
    following = _follow(path)
    assert _poll(following) == []
    sink, run = SQLiteSink(path), scored()
    assert _poll(following) == []
    sink.write(run)
    assert _poll(following) == [run.id]


@pytest.mark.parametrize("count", [1, 3, 9])
def test_a_database_may_go_and_another_one_come(tmp_path: Path, count: int) -> None:
    path = sqlite(tmp_path / "a.sqlite", [scored(at=at) for at in range(3)])
    following = _follow(path)
    runs = [scored(at=5 + at) for at in range(count)]
    os.replace(sqlite(tmp_path / "b.sqlite", runs), path)  # between two looks
    assert _poll(following) == [one.id for one in runs]
    for file in tmp_path.glob("a.sqlite*"):
        file.unlink()
    assert _poll(following) == []
    sqlite(path, runs)  # made anew, perhaps where the old one lay on the disk
    assert _poll(following) == [one.id for one in runs]
    assert _poll(following) == []


def test_a_database_that_a_sink_begins_anew_is_read_from_its_start(tmp_path: Path) -> None:
    path, runs = tmp_path / "a.sqlite", [scored(at=at) for at in range(4)]
    sink = SQLiteSink(path)
    for one in runs[:2]:
        sink.write(one)
    following = _follow(path)
    path.rename(tmp_path / "old.sqlite")
    assert _poll(following) == []
    for one in runs[2:]:
        sink.write(one)
    assert _poll(following) == [runs[2].id, runs[3].id]
    sink.close()


@pytest.mark.parametrize("write", [jsonl, sqlite])
def test_a_file_that_comes_back_goes_on_where_it_was(
    tmp_path: Path, write: Callable[[Path, list[Record]], Path]
) -> None:
    path, away = write(tmp_path / "log", [scored()]), tmp_path / "away"
    following, run = _follow(path), scored(at=1)
    path.rename(away)
    assert _poll(following) == []
    sink: Sink = SINKS["a.jsonl" if write is jsonl else "a.sqlite"](away)
    sink.write(run)
    sink.close()
    away.rename(path)
    assert _poll(following) == [run.id]


@pytest.mark.parametrize("which", ["number < 3", "number > 3", "1"])
def test_runs_may_be_deleted_and_the_database_be_packed(tmp_path: Path, which: str) -> None:
    path = sqlite(tmp_path / "a.sqlite", [scored(at=at) for at in range(5)])
    following = _follow(path)
    for at, looks in ((7, True), (6, False)):
        database = sqlite3.connect(path, isolation_level=None)
        database.execute(f"delete from runs where {which}")
        database.execute("vacuum")
        database.close()
        assert not looks or _poll(following) == []
        run = scored(at=at)
        sqlite(path, [run])
        assert _poll(following) == [run.id]


def test_an_older_copy_that_is_put_back_is_read_from_its_start(tmp_path: Path) -> None:
    old, copy = scored(), tmp_path / "copy"
    path = sqlite(tmp_path / "a.sqlite", [old])
    shutil.copy(path, copy)
    sqlite(path, [scored(at=at) for at in range(1, 4)])
    following = _follow(path)
    shutil.copy(copy, path)
    run = scored(at=9)
    sqlite(path, [run])
    assert _poll(following) == [old.id, run.id]


def test_lines_may_come_in_the_place_of_a_database_and_the_other_way_round(tmp_path: Path) -> None:
    path = sqlite(tmp_path / "log", [scored()])
    following = _follow(path)
    lines, runs = jsonl(tmp_path / "lines", [scored(at=1)]), [scored(at=at) for at in (2, 3)]
    os.replace(lines, path)
    assert len(_poll(following)) == 1
    _append(path, _line(runs[0]))
    assert _poll(following) == [runs[0].id]
    os.replace(sqlite(tmp_path / "database", [runs[1]]), path)
    told = [one for _ in range(3) for one in _poll(following)]
    assert told == [runs[1].id]
