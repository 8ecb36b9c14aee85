"""Test a log in PostgreSQL: a server that goes away, other tables, and the password."""

from __future__ import annotations

import logging
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from langchain_core.runnables import RunnableLambda

from demur import DemurError, MissingExtraError, ScoreCallbackHandler
from demur._secrets import known_secrets
from demur.observe import Record, SQLSink
from demur.observe.log import LogError, open_log, records
from support.handlers import echo
from support.postgres_server import PASSWORD, QUOTED, USER, PostgresServer
from support.records import found, jsonl, scored

pytestmark = pytest.mark.slow


@pytest.fixture
def url(postgres: PostgresServer) -> str:
    return postgres.new()


def held(url: str) -> list[str]:
    with open_log(url) as log:
        return [one.id for one in records(log) if isinstance(one, Record)]


# --- A server that goes away ---------------------------------------------------------------------


@contextmanager
def stopped(server: PostgresServer) -> Iterator[None]:
    server.stop()
    try:
        yield
    finally:
        server.start()


@pytest.mark.smoke
def test_while_the_server_is_away_records_go_to_a_file_and_then_to_it_again(
    postgres: PostgresServer, url: str, tmp_path: Path, monkeypatch: Any, caplog: Any
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    caplog.set_level(logging.DEBUG)
    handler = ScoreCallbackHandler(echo, sink=url, max_concurrency=1)
    chain: Any = RunnableLambda(lambda question: f"{question} is good.")

    def asked(*questions: str) -> None:
        for question in questions:
            chain.invoke(question, {"callbacks": [handler]})
        assert handler.flush(60)

    asked("before")
    with stopped(postgres):
        asked("meanwhile", "still")
    asked("after")
    assert (handler.counts.recorded, handler.counts.to_fallback, handler.counts.lost) == (4, 2, 0)
    (file,) = tmp_path.glob("demur-fallback-*.jsonl")
    with open_log(url) as log:
        assert [one.question for one in records(log)] == ["before", "after"]
    with open_log(file) as log:
        SQLSink(url).write_all(one for one in records(log) if isinstance(one, Record))
    assert len(held(url)) == 4
    (warning,) = [one for one in caplog.records if one.name == "demur.observe"]
    assert f"SQLSink('postgresql://127.0.0.1:{postgres.port}/" in warning.getMessage()
    assert "does not accept records" in warning.getMessage()
    assert str(file) in warning.getMessage()
    said = caplog.text + file.name
    assert PASSWORD not in said
    assert QUOTED not in said
    assert "is good" not in caplog.text


def test_a_server_that_is_away_is_told_and_used_when_it_is_back(
    postgres: PostgresServer, url: str
) -> None:
    sink = SQLSink(url)
    sink.write(scored(id="1"))
    with stopped(postgres):
        for do in (lambda: sink.write(scored(id="2")), lambda: SQLSink(url), lambda: open_log(url)):
            with pytest.raises(DemurError, match=r"postgresql://127.*Connection refused") as error:
                do()
            assert PASSWORD not in str(error.value)
    sink.write(scored(id="3"))
    assert held(url) == ["1", "3"]


# --- What else is there --------------------------------------------------------------------------


def tables(server: PostgresServer, url: str) -> list[tuple[Any, ...]]:
    return server.ask(
        "select table_schema, table_name from information_schema.tables "
        "where table_schema in ('demur', 'public') order by 1, 2",
        url,
    )


def test_the_applications_tables_stay_apart(url: str, postgres: PostgresServer) -> None:
    postgres.ask("create table runs (id int); insert into runs values (7)", url)
    SQLSink(url).write(scored(id="1"))
    assert held(url) == ["1"]
    assert postgres.ask("select * from runs", url) == [(7,)]
    ours = ("answers", "claims", "demur_log", "evaluations", "records", "runs")
    assert tables(postgres, url) == [*(("demur", one) for one in ours), ("public", "runs")]


def test_what_is_no_log_of_this_version_is_left_as_it_was(
    url: str, postgres: PostgresServer
) -> None:
    with pytest.raises(LogError, match="has no log: no SQLSink was made for it yet"):
        open_log(url)
    assert tables(postgres, url) == []
    other = postgres.new()
    SQLSink(other).write(scored(id="1"))
    postgres.ask("update demur.demur_log set version = 9", other)
    with pytest.raises(ValueError, match="its tables are of version 9, expected 3"):
        SQLSink(other)
    with pytest.raises(LogError, match="has tables of version 9, and this demur reads version 3"):
        open_log(other)
    postgres.ask("create schema demur; create table demur.runs (id int)", url)
    with pytest.raises(ValueError, match="holds tables of another program"):
        SQLSink(url)
    with pytest.raises(LogError, match="holds tables of another program"):
        open_log(url)
    assert tables(postgres, url) == [("demur", "runs")]


def test_a_database_in_another_encoding_is_refused(postgres: PostgresServer) -> None:
    url = postgres.new("encoding 'LATIN1' locale 'C' template template0")
    with pytest.raises(DemurError, match="expected a database whose encoding is UTF8"):
        SQLSink(url)
    assert tables(postgres, url) == []


def test_a_url_that_cannot_be_used_is_told_without_its_password(url: str) -> None:
    wrongs: dict[str | Path, str] = {
        url.replace(QUOTED, "hush"): "password authentication failed",
        url.replace("/logs_", "/gone_"): "does not exist",
        f"{url}?sslmode=require": "SSL",
        f"{url}?sslmode=nonsense": "sslmode",
        "postgresql://me:pa@hush@host/db": "expected postgresql://",
        "postgresql://me:hush@host": "expected postgresql://",
        "postgresql://": "expected postgresql://",
        Path("postgresql://me:hush@host/db"): "as a str",
    }
    for wrong, said in wrongs.items():
        for do in (SQLSink, open_log, _handler):
            with pytest.raises((DemurError, ValueError), match=said) as error:
                do(wrong)
            assert "hush" not in str(error.value)
            assert PASSWORD not in str(error.value)


def _handler(sink: Any) -> ScoreCallbackHandler:
    return ScoreCallbackHandler(echo, sink=sink)


def test_a_user_without_the_right_to_make_tables_may_write_into_those_that_are_there(
    url: str, postgres: PostgresServer
) -> None:
    name = url.rpartition("/")[2]
    postgres.ask(f"create role app_{name} login password 'apppassword'")
    as_app = url.replace(f"{USER}:{QUOTED}", f"app_{name}:apppassword")
    with pytest.raises(DemurError, match="permission denied"):
        SQLSink(as_app)
    SQLSink(url)
    with pytest.raises(DemurError, match="permission denied"):
        SQLSink(as_app)
    postgres.ask(
        f"grant usage on schema demur to app_{name}; "
        f"grant select, insert, update, delete on all tables in schema demur to app_{name}",
        url,
    )
    SQLSink(as_app).write(scored(id="1"))
    assert held(as_app) == held(url) == ["1"]


# --- What is read --------------------------------------------------------------------------------


def test_what_is_read_is_of_one_moment_and_nothing_can_be_changed(url: str) -> None:
    sink, runs = SQLSink(url), [scored(at=at) for at in range(2)]
    sink.write(runs[0])
    with open_log(url) as log:
        assert [*records(log)] == runs[:1]
        sink.write(runs[1])
        assert [*records(log)] == runs[:1]
        assert len(log) == 1
        with pytest.raises(Exception, match="read-only transaction"):
            log.connection.exec_driver_sql("delete from demur.runs")
    assert len(held(url)) == 2


def test_ids_and_times_are_in_the_order_of_their_code_points(url: str, tmp_path: Path) -> None:
    ids = ["a", "B", "_", "ä", "Z", "z", "a b", "A-", "\U0001f600", "~"]
    runs = [scored(id=one, at=at % 3) for at, one in enumerate(ids)]
    SQLSink(url).write_all(runs)
    with open_log(jsonl(tmp_path / "a.jsonl", runs)) as lines, open_log(url) as log:
        assert [*records(log)] == [*records(lines)]
        assert [*records(log, last=5)] == [*records(lines, last=5)]


# --- The password --------------------------------------------------------------------------------


def test_the_password_is_nowhere(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sink = SQLSink(url)
    handler = ScoreCallbackHandler(echo, sink=url)
    sink.write(scored(id="1"))
    with open_log(url) as log:
        shown = [repr(sink), str(sink.__dict__), repr(handler), log.name, repr(log)]
        assert log.path is None
    handler.close(10)
    for text in shown:
        assert PASSWORD not in text
        assert QUOTED not in text
    assert sink.name == log.name == url.replace(f"{USER}:{QUOTED}@", "")
    assert PASSWORD in known_secrets()  # The secret is known, so no record has it either.
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    bare = url.replace(f":{QUOTED}", "").replace("postgresql", "postgresql+psycopg", 1)
    SQLSink(bare).write(scored(id="2"))
    assert held(bare) == ["1", "2"]


def test_what_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    for do in (SQLSink, open_log):
        with pytest.raises(MissingExtraError, match=r"demur\[postgres\]"):
            do("postgresql://me:hush@127.0.0.1/db")


def test_an_error_tells_no_text_of_a_record(url: str, postgres: PostgresServer) -> None:
    sink = SQLSink(url)
    postgres.ask("alter table demur.answers add check (answer not like '%Danube%')", url)
    with pytest.raises(DemurError, match="check constraint") as error:
        sink.write(scored(found(explanation="about rivers")))
    for text in ("Danube is", "rivers"):
        assert text not in str(error.value)
    sink.write(scored(answer="Fine.", id="1"))
    assert held(url) == ["1"]
