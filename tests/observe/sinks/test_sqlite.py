"""Test SQLite files: what is refused, who may read them, locks, and full disks."""

from __future__ import annotations

import os
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest

from demur.errors import DemurError
from demur.observe import Record, SQLSink
from support import records
from support.processes import end, forked, together

posix = pytest.mark.skipif(os.name == "nt", reason="no such modes and forks on Windows")


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


def test_names_with_signs_of_urls(tmp_path: Path) -> None:
    path = tmp_path / "a b?mode=ro#%41é.db"
    SQLSink(path).write(records.scored())
    assert [one for one in tmp_path.iterdir() if one.suffix == ".db"] == [path]
    assert len(ids(path)) == 1


def test_the_folder_is_the_one_that_the_process_began_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    sink = SQLSink("scores.sqlite")
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    sink.write(records.scored())
    assert len(ids(tmp_path / "scores.sqlite")) == 1


# --- Bad input -----------------------------------------------------------------------------------


def test_what_cannot_be_is_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(DemurError, match=r"No such file or directory.* in a folder that exists"):
        SQLSink(tmp_path / "missing" / "scores.sqlite")
    with pytest.raises(DemurError, match="it is not a regular file"):
        SQLSink(tmp_path)
    assert not [*tmp_path.iterdir()]


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


@posix
def test_a_file_that_may_not_be_written_is_told_at_once(path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may write anything")
    SQLSink(path)
    path.chmod(0o400)
    with pytest.raises(DemurError, match="cannot write"):
        SQLSink(path)


def test_an_empty_file_is_taken(path: Path) -> None:
    path.touch()
    SQLSink(path).write(records.scored())
    assert len(ids(path)) == 1


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


def test_a_write_waits_for_another(path: Path) -> None:
    sink = SQLSink(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("begin immediate")
        writing = threading.Thread(target=sink.write, args=(records.scored(),))
        writing.start()
        writing.join(0.1)
        assert writing.is_alive()
        other.execute("commit")
        writing.join(10)
    assert len(ids(path)) == 1


@posix
@pytest.mark.slow
def test_new_files_are_opened_by_several_at_once(tmp_path: Path) -> None:
    def open_all(number: int) -> None:
        for at in range(10):
            SQLSink(tmp_path / f"{at}.db").write(records.scored(id=str(number)))

    together(6, open_all)
    for at in range(10):
        assert sorted(ids(tmp_path / f"{at}.db")) == list("012345")


def test_another_file_in_its_place_is_an_error(path: Path) -> None:
    sink = SQLSink(path)
    sink.write(records.scored())
    sink.close()
    path.unlink()
    path.write_bytes(b"no database" * 100)
    with pytest.raises(ValueError, match="is not a SQLite database"):
        sink.write(records.scored())


# --- Kills and full disks ------------------------------------------------------------------------


@pytest.mark.slow
@posix
def test_a_file_that_may_not_grow_keeps_what_was_written(path: Path) -> None:
    def fill() -> None:
        import resource
        import signal

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        sink = SQLSink(path)
        kept: list[str] = []
        most = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
        resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, most))
        with pytest.raises(DemurError, match=r"full|I/O"):
            write_all(sink, records.several(1000), kept)
        assert len(kept) > 10
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
        sink.write(records.scored(id="last"))
        assert sorted(ids(path)) == sorted([*kept, "last"])

    end(forked(fill))


def write_all(sink: SQLSink, some: list[Record], kept: list[str]) -> None:
    for record in some:
        sink.write(record)
        kept.append(record.id)
