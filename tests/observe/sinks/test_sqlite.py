"""Databases of records: of several processes, through forks, moves and kills."""

from __future__ import annotations

import gc
import os
import shutil
import sqlite3
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from demur.errors import DemurError
from demur.observe import Record, SQLiteSink, tables
from demur.observe.sinks import sqlite
from support import records
from support.processes import end, forked, killed_at_random, together

posix = pytest.mark.skipif(os.name == "nt", reason="no such modes and forks on Windows")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "scores.sqlite"


def ask(path: Path, question: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path)) as database:
        return database.execute(question).fetchall()


def ids(path: Path) -> list[str]:
    """The ids of the records in a database, which has to be whole."""
    assert ask(path, "pragma integrity_check") == [("ok",)]
    return [str(id) for (id,) in ask(path, "select id from runs")]


def test_a_record_is_a_row_and_so_is_each_evaluation(path: Path) -> None:
    sink = SQLiteSink(path)
    record = records.guarded(records.refuted(), records.found())
    sink.write(record)
    assert [
        Record.model_validate_json(str(line)) for (line,) in ask(path, "select record from runs")
    ] == [record]
    assert ask(path, "select id, first, verdict, attempts from runs") == [
        (record.id, "failed", "passed", 2)
    ]
    assert ask(path, "select run, place, attempt, finding from evaluations") == [
        (record.id, 0, 1, "failed"),
        (record.id, 1, 2, "passed"),
    ]
    sink.close()


def test_a_record_that_comes_again_takes_the_place_of_the_first(path: Path) -> None:
    sink = SQLiteSink(path)
    sink.write(records.scored(records.found("A"), records.found("B"), id="1"))
    sink.write(records.scored(records.refuted("A"), id="1"))
    sink.write(records.scored(id="2"))
    assert ask(path, "select id, verdict from runs") == [("1", "failed"), ("2", "passed")]
    assert ask(path, "select run, evaluator from evaluations order by run") == [
        ("1", "A"),
        ("2", "RefChecker"),
    ]


def test_texts_that_no_encoding_carries_are_kept(path: Path) -> None:
    attempt = records.attempt().model_copy(update={"answer": "a\ud800b", "question": "\udfff"})
    sink = SQLiteSink(path)
    sink.write(records.run(attempt))
    sink.write(records.hostile())
    assert ask(path, "select question, answer from runs where answer like 'a%'") == [
        ("\ufffd", "a\ufffdb")
    ]
    assert ask(path, "select answer from runs where answer not like 'a%'") == [(records.HOSTILE,)]


def test_a_write_after_close_opens_it_again(path: Path) -> None:
    sink = SQLiteSink(path)
    sink.close()
    sink.write(records.scored())
    sink.close()
    sink.close()
    assert {one.name for one in path.parent.iterdir()} == {path.name}  # all is in the file itself
    SQLiteSink(path).write(records.scored())
    assert len(ids(path)) == 2


@posix
def test_new_files_are_the_owners_alone(path: Path) -> None:
    sink = SQLiteSink(path)
    assert path.stat().st_mode & 0o777 == 0o600
    sink.write(records.scored())
    modes = {one.name: one.stat().st_mode & 0o777 for one in path.parent.iterdir()}
    assert modes == dict.fromkeys(
        ("scores.sqlite", "scores.sqlite-wal", "scores.sqlite-shm"), 0o600
    )
    sink.close()


def test_names_with_signs_of_urls(tmp_path: Path) -> None:
    path = tmp_path / "a b?mode=ro#%41é.db"
    SQLiteSink(path).write(records.scored())
    assert [one for one in tmp_path.iterdir() if one.suffix == ".db"] == [path]
    assert len(ids(path)) == 1


def test_the_folder_is_the_one_that_the_process_began_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    sink = SQLiteSink("scores.sqlite")
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    sink.write(records.scored())
    assert len(ids(tmp_path / "scores.sqlite")) == 1


# --- Bad input -----------------------------------------------------------------------------------


def test_what_cannot_be_is_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(DemurError, match="there is no folder"):
        SQLiteSink(tmp_path / "missing" / "scores.sqlite")
    with pytest.raises(ValueError, match="no ordinary file"):
        SQLiteSink(tmp_path)
    assert not [*tmp_path.iterdir()]


def other_database(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as database:
        for statement in statements:
            database.execute(statement)
        database.commit()


@pytest.mark.parametrize("journal", ["delete", "wal"])
def test_another_programs_database_is_left_as_it_was(path: Path, journal: str) -> None:
    other_database(path, f"pragma journal_mode = {journal}", "create table t (x)")
    refused(path, r"a database of another program \(it has t\): give another file")
    other_database(path, "drop table t", "pragma application_id = 7")
    refused(path, r"a database of another program \(it has no tables\)")


def test_a_later_version_is_left_as_it_was(path: Path) -> None:
    SQLiteSink(path).close()
    other_database(path, f"pragma user_version = {tables.VERSION + 1}")
    refused(path, "its tables are of version 2, expected 1.*update demur")


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
    refused(path, "no database of SQLite, or a damaged one")


def refused(path: Path, why: str) -> None:
    before, files = path.read_bytes(), sorted(path.parent.iterdir())
    with pytest.raises(ValueError, match=why):
        SQLiteSink(path)
    assert path.read_bytes() == before
    assert sorted(path.parent.iterdir()) == files


@posix
def test_a_file_that_may_not_be_written_is_told_at_once(path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may write anything")
    SQLiteSink(path)
    path.chmod(0o400)
    with pytest.raises(DemurError, match="cannot write"):
        SQLiteSink(path)


def test_an_empty_file_is_taken(path: Path) -> None:
    path.touch()
    SQLiteSink(path).write(records.scored())
    assert len(ids(path)) == 1


# --- Locks ---------------------------------------------------------------------------------------


def test_a_file_that_stays_locked_is_an_error_and_then_works_again(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "_BUSY_SECONDS", 0.05)
    monkeypatch.setattr(sqlite, "_OPEN_SECONDS", 0.1)
    sink = SQLiteSink(path)
    sink.write(records.scored())
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("begin immediate")
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            sink.write(records.scored())
        with pytest.raises(DemurError, match="locked"):
            SQLiteSink(path)
    sink.write(records.scored())
    assert len(ids(path)) == 2


def test_a_write_waits_for_another(path: Path) -> None:
    sink = SQLiteSink(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("begin immediate")
        writing = threading.Thread(target=sink.write, args=(records.scored(),))
        writing.start()
        writing.join(0.1)
        assert writing.is_alive()
        other.execute("commit")
        writing.join(10)
    assert len(ids(path)) == 1


def test_a_new_file_that_another_looks_at_is_waited_for(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite may tell at once that it cannot change a file's mode, so it is asked again."""
    monkeypatch.setattr(sqlite, "_BUSY_SECONDS", 0.0)
    path.touch()
    made: list[SQLiteSink] = []
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("begin")
        other.execute("select * from sqlite_master")
        making = threading.Thread(target=lambda: made.append(SQLiteSink(path)))
        making.start()
        making.join(0.1)
        assert making.is_alive()
        other.execute("commit")
        making.join(10)
    made[0].write(records.scored())
    assert len(ids(path)) == 1


def test_threads_lose_nothing(path: Path) -> None:
    sinks, written = [SQLiteSink(path), SQLiteSink(path)], records.several(200)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda at: sinks[at % 2].write(written[at]), range(200)))
    assert sorted(ids(path)) == sorted(record.id for record in written)


@posix
@pytest.mark.slow
def test_processes_that_open_a_new_file_at_once_lose_nothing(path: Path) -> None:
    written = records.several(600)

    def write(number: int) -> None:
        sink = SQLiteSink(path)
        for record in written[number::6]:
            sink.write(record)

    together(6, write)
    assert sorted(ids(path)) == sorted(record.id for record in written)


@posix
@pytest.mark.slow
def test_new_files_are_opened_by_several_at_once(tmp_path: Path) -> None:
    def open_all(number: int) -> None:
        for at in range(10):
            SQLiteSink(tmp_path / f"{at}.db").write(records.scored(id=str(number)))

    together(6, open_all)
    for at in range(10):
        assert sorted(ids(tmp_path / f"{at}.db")) == list("012345")


# --- Forks ---------------------------------------------------------------------------------------


@posix
def test_a_forked_process_writes_beside_its_parent(path: Path) -> None:
    sink, written = SQLiteSink(path), records.several(300)
    with ThreadPoolExecutor(2) as pool:
        # Forked while threads write: what one has begun is not taken over.
        writing = pool.map(sink.write, written[:200])
        children = [
            forked(lambda part=part: [sink.write(record) for record in part])
            for part in (written[200:250], written[250:])
        ]
        list(writing)
    end(*children)
    assert sorted(ids(path)) == sorted(record.id for record in written)


@posix
def test_a_forked_process_outlives_its_parents_connection(path: Path) -> None:
    """What the parent's end deletes must not be what the child writes to."""
    sink, written = SQLiteSink(path), records.several(60)
    sink.write(written[0])
    told, tell = os.pipe()

    def write() -> None:
        os.close(tell)
        for record in written[1:30]:
            sink.write(record)
        os.read(told, 1)  # its end
        for record in written[30:]:
            sink.write(record)

    child = forked(write)
    os.close(told)
    sink.close()
    SQLiteSink(path).close()
    os.close(tell)
    end(child)
    assert sorted(ids(path)) == sorted(record.id for record in written)


@pytest.mark.slow
@posix
def test_a_connection_of_the_parents_is_not_even_closed(path: Path) -> None:
    sink = SQLiteSink(path)
    sink.write(records.scored(id="1"))
    sqlite._sinks.discard(sink)  # as if Python were not told of the fork
    inherited = sink._database

    def write() -> None:
        held = sys.getrefcount(inherited)
        sink.write(records.scored(id="2"))
        assert sink._database is not inherited
        gc.collect()
        # One for the sink's own, which is kept for good.
        assert sys.getrefcount(inherited) == held
        assert inherited is not None
        assert inherited.execute("select count(*) from runs").fetchone()  # open

    end(forked(write))
    sink.write(records.scored(id="3"))
    assert sorted(ids(path)) == ["1", "2", "3"]


# --- Files that are moved ------------------------------------------------------------------------


@posix
def test_a_file_that_was_moved_is_whole_and_begun_anew(path: Path) -> None:
    sink, written = SQLiteSink(path), records.several(20)
    for record in written[:10]:
        sink.write(record)
    moved = path.with_name("moved.sqlite")
    path.rename(moved)  # without the "-wal", in which all is
    for record in written[10:]:
        sink.write(record)
    sink.close()
    assert sorted(ids(moved)) == sorted(record.id for record in written[:10])
    assert sorted(ids(path)) == sorted(record.id for record in written[10:])
    path.unlink()
    sink.write(written[0])
    assert ids(path) == [written[0].id]


@posix
def test_others_that_have_the_moved_file_open_harm_no_new_one(path: Path) -> None:
    sinks, written = [SQLiteSink(path) for _ in range(3)], records.several(90)
    parts = [written[:30], written[30:60], written[60:]]
    for at, record in enumerate(parts[0]):
        sinks[at % 3].write(record)
    path.rename(path.with_name("moved.sqlite"))
    for at, record in enumerate(parts[1]):
        sinks[at % 2].write(record)  # the third still has the moved one open
    for at, record in enumerate(parts[2]):
        sinks[at % 3].write(record)
    for sink in sinks:
        sink.close()
    assert len(ids(path.with_name("moved.sqlite"))) == 30
    assert sorted(ids(path)) == sorted(record.id for record in written[30:])


@posix
@pytest.mark.slow
def test_processes_whose_file_is_taken_away_again_and_again(path: Path) -> None:
    written = records.several(400)

    def write(number: int) -> None:
        sink = SQLiteSink(path)
        for at, record in enumerate(written[number::4]):
            sink.write(record)
            if number == 0 and at % 20 == 10:
                path.rename(path.with_name(f"moved-{at}.sqlite"))
        sink.close()

    together(4, write)  # and none of them raises
    assert len([*path.parent.glob("moved-*.sqlite")]) == 5
    # What was on its way into a file while that was moved is not promised.
    last = [record.id for record in written[0::4]][91:]
    assert {*last} <= {*ids(path)} <= {record.id for record in written}


def test_another_file_in_its_place_is_an_error(path: Path) -> None:
    sink = SQLiteSink(path)
    sink.write(records.scored())
    sink.close()
    path.unlink()
    path.write_bytes(b"no database" * 100)
    with pytest.raises(ValueError, match="no database of SQLite"):
        sink.write(records.scored())


# --- Kills and full disks ------------------------------------------------------------------------


@posix
@pytest.mark.slow
def test_what_was_written_outlives_kills(path: Path) -> None:
    told = killed_at_random(lambda: SQLiteSink(path).write, rounds=3, seed=8)
    assert len(told) > 20
    assert set(told) <= set(ids(path))


@posix
def test_a_file_that_may_not_grow_keeps_what_was_written(path: Path) -> None:
    def fill() -> None:
        import resource
        import signal

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        sink = SQLiteSink(path)
        kept: list[str] = []
        most = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
        resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, most))
        with pytest.raises(sqlite3.OperationalError, match=r"full|I/O"):
            write_all(sink, records.several(1000), kept)
        assert len(kept) > 10
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
        sink.write(records.scored(id="last"))
        assert sorted(ids(path)) == sorted([*kept, "last"])

    end(forked(fill))


def write_all(sink: SQLiteSink, some: list[Record], kept: list[str]) -> None:
    for record in some:
        sink.write(record)
        kept.append(record.id)


@pytest.fixture(autouse=True)
def no_connection_is_left(tmp_path: Path) -> Iterator[None]:
    """Sinks that tests leave open are gone with them."""
    yield
    for sink in [*sqlite._sinks]:
        sink.close()
    shutil.rmtree(tmp_path)
