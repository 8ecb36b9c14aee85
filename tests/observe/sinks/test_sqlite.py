"""Test SQLite files: what is refused, who may read them, locks, and full disks."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from demur.errors import DemurError
from demur.observe import SQLSink
from support import records
from support.processes import end, forked, posix, written_until_full


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "scores.sqlite"


def ask(path: Path, question: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path)) as database:
        return database.execute(question).fetchall()


def ids(path: Path) -> list[str]:
    """Return the ids of the records in a database, and assert that the database is intact."""
    assert ask(path, "pragma integrity_check") == [("ok",)]
    return [str(id) for (id,) in ask(path, "select id from runs")]


def test_after_a_write_all_is_in_the_file_itself(path: Path) -> None:
    path.touch()
    sink = SQLSink(path)
    sink.write(records.scored())
    sink.close()
    sink.write(records.scored())
    assert {one.name for one in path.parent.iterdir()} == {path.name}
    assert len(ids(path)) == 2


@posix
def test_new_files_are_the_owners_alone(path: Path) -> None:
    sink = SQLSink(path)
    assert path.stat().st_mode & 0o777 == 0o600
    sink.write(records.scored())
    with closing(sqlite3.connect(path)) as reader:
        assert reader.execute("select id from records").fetchall()
        modes = {one.name: one.stat().st_mode & 0o777 for one in path.parent.iterdir()}
    assert modes == dict.fromkeys(
        ("scores.sqlite", "scores.sqlite-wal", "scores.sqlite-shm"), 0o600
    )


# --- Bad input -----------------------------------------------------------------------------------


def other_database(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as database:
        for statement in statements:
            database.execute(statement)
        database.commit()


@pytest.mark.parametrize("journal", ["delete", "wal"])
def test_another_programs_database_is_left_as_it_was(path: Path, journal: str) -> None:
    other_database(path, f"pragma journal_mode = {journal}", "create table t (x)")
    refused(path, "a database of another program: give another file")
    other_database(path, "drop table t", "pragma application_id = 7")
    refused(path, "a database of another program: give another file")


def test_a_later_version_is_left_as_it_was(path: Path) -> None:
    SQLSink(path).close()
    other_database(path, "pragma user_version = 4")
    refused(path, "its tables are of version 4, expected 3")


@pytest.mark.parametrize(
    "content",
    [
        b"short",
        b'{"id": "a"}\n' * 100,
        b"SQLite format 3\0" + b"\xff" * 5000,
    ],
)
def test_a_file_that_is_no_database_is_left_as_it_was(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    refused(path, "is not a SQLite database, or is damaged")


def refused(path: Path, why: str) -> None:
    before, files = path.read_bytes(), sorted(path.parent.iterdir())
    with pytest.raises(ValueError, match=why):
        SQLSink(path)
    assert path.read_bytes() == before
    assert sorted(path.parent.iterdir()) == files


# --- Locks ---------------------------------------------------------------------------------------


def test_a_file_that_stays_locked_is_an_error_and_then_works_again(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("demur.observe.sqlite._BUSY_SECONDS", 0.05)
    sink = SQLSink(path)
    sink.write(records.scored())
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("begin immediate")
        with pytest.raises(DemurError, match=f"cannot write {path}: database is locked"):
            sink.write(records.scored())
    sink.write(records.scored())
    assert len(ids(path)) == 2


# --- Kills and full disks ------------------------------------------------------------------------


@pytest.mark.slow
@posix
def test_a_file_that_may_not_grow_keeps_what_was_written(path: Path) -> None:
    def fill() -> None:
        sink = SQLSink(path)
        kept, error = written_until_full(sink.write, 200_000)
        assert "full" in error or "I/O" in error
        assert kept
        sink.write(records.scored(id="last"))
        assert sorted(ids(path)) == sorted([*kept, "last"])

    end(forked(fill))
