"""Test records in SQLite and in PostgreSQL: the rows are the same, and nothing is lost."""

from __future__ import annotations

import itertools
import re
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import pytest

from demur.errors import DemurError
from demur.observe import Record, SQLSink
from demur.observe.log import Filters, open_log, records, summarise
from demur.schema import Failure, Finding
from support.logs import Where, in_column
from support.pages import DOCS, fences
from support.postgres_server import PostgresServer
from support.processes import end, forked, posix, together
from support.records import HOSTILE, attempt, found, guarded, hostile, refuted, run, scored, several
from support.waiting import until


@dataclass
class Database:
    """Hold a place for a log, and query it without demur."""

    where: Where
    server: PostgresServer | None = None

    def ask(self, question: str) -> list[tuple[Any, ...]]:
        if self.server is None:
            with closing(sqlite3.connect(self.where)) as database:
                return database.execute(question).fetchall()
        tables = "runs|records|answers|evaluations|claims"
        question = re.sub(rf"\b(from|join) ({tables})\b", r"\1 demur.\2", question)
        return self.server.ask(question, str(self.where))

    def ids(self) -> list[str]:
        """Return the sorted ids of the records, and assert that every record is whole."""
        if self.server is None:
            assert self.ask("pragma integrity_check") == [("ok",)]
        with open_log(self.where) as log:
            held = [*records(log)]
        assert all(isinstance(one, Record) for one in held)
        return sorted(one.id for one in held if isinstance(one, Record))


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
def database(request: Any, tmp_path: Path) -> Database:
    if request.param == "sqlite":
        return Database(tmp_path / "scores.sqlite")
    server: PostgresServer = request.getfixturevalue("postgres")
    return Database(server.new(), server)


def ids_of(some: list[Record]) -> list[str]:
    return sorted(one.id for one in some)


# --- Rows ----------------------------------------------------------------------------------------


def test_a_record_is_a_row_and_its_answers_evaluations_and_claims_are(database: Database) -> None:
    record = guarded(refuted(), found())
    SQLSink(database.where).write(record)
    ((text,),) = database.ask("select record from records")
    assert Record.model_validate_json(text) == record
    asked = "select id, first_verdict, verdict, attempts, outcome, calls, seconds from runs"
    assert database.ask(asked) == [
        (record.id, "failed", "passed", 2, "recovered", record.usage.calls, record.seconds)
    ]
    assert database.ask("select run, attempt, verdict, failures from answers order by 2") == [
        (record.id, 1, "failed", "neutral, contradiction"),
        (record.id, 2, "passed", None),
    ]
    asked = "select run, attempt, place, finding, score from evaluations order by 2, 3"
    assert database.ask(asked) == [
        (record.id, 1, 1, "failed", 0.25),
        (record.id, 2, 1, "passed", 1.0),
    ]
    claims = [
        (record.id, number, 1, evaluation.name, at, claim.text, claim.label and claim.label.value)
        for number, evaluation in record.judged()
        for at, claim in enumerate(evaluation.claims, start=1)
    ]
    assert claims
    asked = (
        "select run, attempt, place, evaluator, number, claim, label from claims order by number"
    )
    assert database.ask(asked) == claims


def test_the_findings_and_failures_in_sql_are_those_of_evaluations(database: Database) -> None:
    written = [*several(100), hostile()]
    SQLSink(database.where).write_all(written)
    findings = sorted(
        (record.id, number, evaluation.finding)
        for record in written
        for number, evaluation in record.judged()
    )
    assert {finding for *_, finding in findings} == {*get_args(Finding)}
    asked = "select run, attempt, finding from evaluations order by run, attempt, finding"
    assert database.ask(asked) == findings
    wrong = {
        (record.id, number): {kind for one in answer.evaluations for kind in one.failures}
        for record in written
        for number, answer in enumerate(record.attempts, start=1)
    }
    asked = "select run, attempt, failures from answers"
    for id, number, told in database.ask(asked):
        assert {Failure(one) for one in (told or "").split(", ") if one} == wrong[id, number]


def test_a_record_that_comes_again_takes_the_place_of_the_first(database: Database) -> None:
    sink = SQLSink(database.where)
    sink.write(scored(found("A"), refuted("B"), id="1"))
    sink.write(scored(refuted("A"), id="1"))
    sink.write(scored(id="2"))
    assert database.ask("select id, verdict from runs order by id") == [
        ("1", "failed"),
        ("2", "passed"),
    ]
    assert database.ask("select run, evaluator from evaluations order by run") == [
        ("1", "A"),
        ("2", "RefChecker"),
    ]
    assert database.ask("select count(*) from claims") == [(3,)]


def test_records_that_are_written_together_are_all_there_or_none(database: Database) -> None:
    sink = SQLSink(database.where)
    twice = scored(found("A"), id="1"), scored(refuted("B"), id="1", at=5)
    sink.write_all([*twice, scored(id="2")])
    assert database.ask("select id, verdict from runs order by id") == [
        ("1", "failed"),
        ("2", "passed"),
    ]

    def torn() -> Any:
        yield from several(100)
        raise KeyError("no more")

    with pytest.raises(KeyError):
        sink.write_all(torn())
    assert database.ids() == ["1", "2"]
    sink.write_all([])


@pytest.mark.parametrize("text", ["a\0b", "a\ud800b\udfff", HOSTILE, ""])
def test_every_text_is_kept_and_can_be_asked_for(text: str, database: Database) -> None:
    bad = found(text, 0.0, False, label=text, explanation=text)
    SQLSink(database.where).write(run(attempt(bad, answer=text, question=text), model=text))
    kept = in_column(text).replace("\ud800", "\ufffd").replace("\udfff", "\ufffd")
    assert database.ask("select question, answer, model from runs") == [(kept, kept, kept)]
    asked = "select evaluator, label, explanation from evaluations"
    assert database.ask(asked) == [(kept, kept, kept)]
    with open_log(database.where) as log:
        (read,) = records(log)
        assert isinstance(read, Record)
        # The record itself keeps NUL as it is.
        assert read.answer == text.replace("\ud800", "\ufffd").replace("\udfff", "\ufffd")
        assert [*records(log, Filters(model=text, evaluator=text, text=text))] == [read]
        (group,) = summarise(log, by=["model"]).groups
        assert (group.evaluator, group.model) == (kept, kept)


def test_the_queries_of_the_page_can_be_asked(database: Database) -> None:
    SQLSink(database.where).write_all([*several(50), guarded(at=90_000)])
    page = DOCS / "observe.md"
    queries = [fence.text.strip().rstrip(";") for fence in fences(page, "sql")]
    assert len(queries) == 3
    for query in queries:
        assert database.ask(re.sub(r"\s+", " ", query)), query
    part = page.read_text("utf-8").partition("### Query by SQL")[2].partition("\n###")[0]
    for table, columns in re.findall(r"^\| `(\w+)` \|[^|]*\| (.*?) \|$", part, re.MULTILINE):
        told = re.findall(r"`(\w+)`", columns)
        assert told
        database.ask(f"select {', '.join(told)} from {table} where 1 = 0")


# --- Several writers -----------------------------------------------------------------------------


@posix
@pytest.mark.slow
def test_processes_and_threads_that_open_a_new_log_at_once_lose_nothing(database: Database) -> None:
    written = several(200)

    def write(number: int) -> None:
        sinks = [SQLSink(database.where), SQLSink(database.where)]
        with ThreadPoolExecutor(4) as pool:
            some = enumerate(written[number::4])
            list(pool.map(lambda one: sinks[one[0] % 2].write(one[1]), some))

    together(4, write)
    assert database.ids() == ids_of(written)


@posix
@pytest.mark.slow
def test_a_forked_process_writes_beside_its_parent(database: Database) -> None:
    """Fork while threads write for ever: a child does not take over what a thread has begun."""
    sink, stop = SQLSink(database.where), threading.Event()

    def write(number: int) -> None:
        for at in itertools.count():
            sink.write(scored(id=f"{number} {at}"))
            written.append(f"{number} {at}")
            if stop.is_set():
                return

    written: list[str] = []
    with ThreadPoolExecutor(3) as pool:
        writing = [pool.submit(write, number) for number in range(3)]
        until(lambda: len(written) >= 3)
        parts = (several(20, seed=1), several(20, seed=2))
        end(*(forked(lambda part=part: [*map(sink.write, part)]) for part in parts))
        stop.set()
        for one in writing:
            one.result()
    sink.write(scored(id="after"))
    assert database.ids() == sorted([*ids_of([*parts[0], *parts[1]]), *written, "after"])


@pytest.mark.parametrize("url", ["mysql://me:hush@host/db", "sqlite:///a.db", "HTTP://x/y"])
def test_a_database_of_another_kind_is_refused(url: str) -> None:
    for do in (SQLSink, open_log):
        with pytest.raises((ValueError, DemurError), match="not a log that demur can use") as error:
            do(url)
        assert "hush" not in str(error.value)
