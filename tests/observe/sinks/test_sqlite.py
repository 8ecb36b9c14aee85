"""Databases of records: of several processes, through forks and kills."""

from __future__ import annotations

import os
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import get_args

import pytest

from demur.errors import DemurError
from demur.observe import Record, SQLiteSink, tables
from demur.observe.sinks import sqlite
from demur.schema import Finding
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


def test_a_record_is_a_row_and_views_have_its_answers_evaluations_and_claims(path: Path) -> None:
    sink = SQLiteSink(path)
    record = records.guarded(records.refuted(), records.found())
    sink.write(record)
    assert [
        Record.model_validate_json(str(line)) for (line,) in ask(path, "select record from records")
    ] == [record]
    assert ask(path, "select id, first_verdict, verdict, attempts from runs") == [
        (record.id, "failed", "passed", 2)
    ]
    assert ask(path, "select run, attempt, verdict from answers") == [
        (record.id, 1, "failed"),
        (record.id, 2, "passed"),
    ]
    assert ask(path, "select run, attempt, place, finding from evaluations") == [
        (record.id, 1, 1, "failed"),
        (record.id, 2, 1, "passed"),
    ]
    claims = [
        (record.id, number, evaluation.name, at, claim.text, claim.label and claim.label.value)
        for number, evaluation in record.judged()
        for at, claim in enumerate(evaluation.claims, start=1)
    ]
    assert claims
    asked = "select run, attempt, evaluator, number, claim, label from claims"
    assert ask(path, asked) == claims


def test_the_findings_in_sql_are_those_of_evaluations(path: Path) -> None:
    sink, written = SQLiteSink(path), [*records.several(300), records.hostile()]
    for record in written:
        sink.write(record)
    expected = sorted(
        (record.id, number, evaluation.finding)
        for record in written
        for number, evaluation in record.judged()
    )
    assert {finding for *_, finding in expected} == {*get_args(Finding)}
    asked = "select run, attempt, finding from evaluations order by 1, 2, 3"
    assert ask(path, asked) == expected


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
    read = ask(path, "select record from records ")
    kept = [Record.model_validate_json(str(line)).answer for (line,) in read]
    assert sorted(kept) == sorted(["a\ufffdb", records.HOSTILE])


def test_after_a_write_all_is_in_the_file_itself(path: Path) -> None:
    sink = SQLiteSink(path)
    sink.write(records.scored())
    sink.close()
    sink.write(records.scored())
    assert {one.name for one in path.parent.iterdir()} == {path.name}
    assert len(ids(path)) == 2


@posix
def test_new_files_are_the_owners_alone(path: Path) -> None:
    sink = SQLiteSink(path)
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
    with pytest.raises(DemurError, match=r"No such file or directory.* in a folder that exists"):
        SQLiteSink(tmp_path / "missing" / "scores.sqlite")
    with pytest.raises(DemurError, match="expected a file, and it is none"):
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
    refused(path, "a database of another program: give another file")
    other_database(path, "drop table t", "pragma application_id = 7")
    refused(path, "a database of another program: give another file")


def test_a_later_version_is_left_as_it_was(path: Path) -> None:
    SQLiteSink(path).close()
    other_database(path, f"pragma user_version = {tables.VERSION + 1}")
    refused(path, "its table is of version 3, expected 2")


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
    sink = SQLiteSink(path)
    sink.write(records.scored())
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("begin immediate")
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            sink.write(records.scored())
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
