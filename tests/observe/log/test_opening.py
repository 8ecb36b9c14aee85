"""Test the opening of logs: both forms, damaged lines, and files that are not logs."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from demur.observe import Record, SQLSink
from demur.observe.log import Damaged, LogError, open_log, records
from support.logs import FORMS, Where, written
from support.records import found, hostile, jsonl, refuted, scored, several, sqlite

RUNS = [*several(30), hostile()]


APPLICATION = 0x64656D75
"""The number that distinguishes demur's databases from others."""


def _held(where: Where) -> list[Record | Damaged]:
    with open_log(where) as log:
        return [*records(log)]


def _sorted(runs: list[Record]) -> list[Record]:
    return sorted(runs, key=lambda one: (one.time, one.id))


@pytest.mark.parametrize("form", FORMS)
def test_all_forms_hold_the_same_whole_records(form: str, tmp_path: Path, request: Any) -> None:
    assert _held(written(form, tmp_path, RUNS, request)) == _sorted(RUNS)


def test_of_one_id_the_later_record_counts_also_in_lines(tmp_path: Path) -> None:
    first = scored(found())
    later = first.model_copy(update={"attempts": scored(refuted()).attempts})
    assert _held(jsonl(tmp_path / "a.sqlite", [first, scored(at=1), later]))[0] == later


# -- lines -----------------------------------------------------------------------------------------


def test_damaged_lines_are_left_out_and_told_by_their_numbers(tmp_path: Path) -> None:
    whole = [scored(at=at).as_json() for at in range(3)]
    lines = ["\ufeff" + whole[0], whole[1][:-9], "", '{"id": 7}', whole[2], whole[0][:40]]
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(lines), encoding="utf-8")
    with open_log(path) as log:
        assert [one.as_json() for one in records(log) if isinstance(one, Record)] == [
            whole[0],
            whole[2],
        ]
        assert [one.place for one in log.damaged] == ["line 2", "line 4", "line 6"]
        assert "JSON" in log.damaged[0].why
        assert "id" in log.damaged[1].why


# -- files that are not logs -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"one line\nof text\n", "is not a log: line 1"),
        (b"\x89PNG\r\n\x1a\n" + bytes(range(256)), "is not a log"),
        (b"SQLite format 3\0" + b"\1" * 4080, "cannot be read"),
        (b"SQLite format 3\0", "cannot be read"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "some.file"
    path.write_bytes(content)
    with pytest.raises(LogError, match=said) as error:
        open_log(path)
    assert str(path) in str(error.value)
    assert path.read_bytes() == content


@pytest.mark.parametrize(
    ("pragmas", "said"),
    [
        ("", "another program"),
        (f"pragma application_id = {APPLICATION + 1}; pragma user_version = 1", "another program"),
        (f"pragma application_id = {APPLICATION}; pragma user_version = 9", "version 9"),
    ],
)
def test_other_databases_are_refused(tmp_path: Path, pragmas: str, said: str) -> None:
    path = tmp_path / "other.sqlite"
    with sqlite3.connect(path) as database:
        database.executescript(f"{pragmas}; create table runs (id text); ")
    database.close()
    with pytest.raises(LogError, match=said):
        open_log(path)


def test_what_is_only_begun_holds_nothing_yet(tmp_path: Path) -> None:
    path = tmp_path / "new.sqlite"
    for content in (b"", b"\n\n"):
        path.write_bytes(content)
        assert _held(path) == []
    path.unlink()
    database = sqlite3.connect(path)
    database.execute("pragma journal_mode = wal")
    assert path.stat().st_size
    assert _held(path) == []
    database.close()


# -- databases that are being written --------------------------------------------------------------


def test_what_a_live_writer_wrote_is_there_and_the_view_does_not_move(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    sink = SQLSink(path)
    first, second = scored(at=1), scored(at=2)
    sink.write(first)
    with open_log(path) as log:
        assert [*records(log)] == [first]
        sink.write(second)  # A reader blocks no writer.
        assert [*records(log)] == [first]
    assert _held(path) == [first, second]
    sink.close()
    assert _held(path) == [first, second]


def test_who_reads_a_log_leaves_the_locks_of_a_sink_in_the_same_process(tmp_path: Path) -> None:
    path, runs = tmp_path / "a.sqlite", [scored(at=at) for at in range(3)]
    sink = SQLSink(path)
    sink.write(runs[0])
    assert _held(path) == runs[:1]
    # Another process removes the -wal file if it believes that it is the last to close the
    # database.
    code = (
        f"import sqlite3; database = sqlite3.connect({str(path)!r}); "
        "database.execute('select count(*) from runs').fetchall(); database.close()"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    for one in runs[1:]:
        sink.write(one)
    assert _held(path) == runs
    sink.close()


def test_the_log_itself_is_not_changed(tmp_path: Path) -> None:
    path = sqlite(tmp_path / "a.sqlite", RUNS)
    before = path.read_bytes()
    with open_log(path) as log, pytest.raises(Exception, match="readonly"):
        log.connection.exec_driver_sql("delete from records")
    assert path.read_bytes() == before


def test_a_database_where_sqlite_may_make_no_files_is_read(tmp_path: Path) -> None:
    path = sqlite(tmp_path / "a.sqlite", RUNS)
    for left in tmp_path.glob("a.sqlite-*"):
        left.unlink()
    (tmp_path / "a.sqlite-shm").mkdir()  # This has the effect of a folder that is not writable.
    assert _held(path) == _sorted(RUNS)
