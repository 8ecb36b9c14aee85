"""Records as tables of SQLite: what the sink writes, and what `demur log` asks."""

from __future__ import annotations

import sqlite3
from datetime import datetime, timezone

from demur._text import replace_surrogates
from demur.observe.records import Record
from demur.schema import Usage

VERSION = 1
"""Of the tables (`pragma user_version`)."""
APPLICATION = 0x64656D75
"""What tells such a database from others (`pragma application_id`): "demu"."""

TABLES = """
create table if not exists runs (
    number integer primary key autoincrement, id text not null unique, root text not null,
    time text not null, name text, model text,
    question text, answer text not null, attempts integer not null,
    first text not null, verdict text not null, outcome text,
    calls integer not null, cached integer not null, input_tokens integer not null,
    output_tokens integer not null, call_seconds real not null,
    seconds real not null, record text not null
);
create index if not exists runs_by_time on runs (
    time, id, model, name, outcome, first, verdict, attempts, seconds,
    calls, cached, input_tokens, output_tokens, call_seconds
);
create table if not exists evaluations (
    run text not null, place integer not null, attempt integer not null,
    evaluator text not null, score real, label text, finding text not null,
    explanation text not null, error text,
    calls integer not null, cached integer not null, input_tokens integer not null,
    output_tokens integer not null, call_seconds real not null,
    primary key (run, place)
) without rowid;
create table if not exists origin (id text not null);
insert into origin select lower(hex(randomblob(16))) where not exists (select 1 from origin);
"""
"""`number` counts what is written, and none comes twice: a run that is recorded anew has a new one.
`origin` tells this database from others that come into its place and count anew. `first` and
`verdict` are those of the first and of the last attempt. Times are UTC, written so that they sort.
The index has all that chooses and sums up runs, so that no text is read then."""


def put(database: sqlite3.Connection, record: Record) -> None:
    """Write a record, in the place of one with the same id. Within the caller's transaction."""
    run = (
        None,  # its number
        *(record.id, record.root, moment(record.time), record.name, record.model),
        *(record.question, record.answer, len(record.attempts)),
        *(record.attempts[0].verdict, record.verdict, record.outcome),
        *(*_numbers(record.usage), record.seconds, record.as_json()),
    )
    database.execute("delete from evaluations where run = ?", _encodable(record.id))
    _insert(database, "runs", run)
    for place, (attempt, evaluation) in enumerate(record.judged()):
        row = (
            *(record.id, place, attempt, evaluation.name, evaluation.score, evaluation.label),
            *(
                evaluation.finding,
                evaluation.explanation,
                evaluation.error,
                *_numbers(evaluation.usage),
            ),
        )
        _insert(database, "evaluations", row)


def moment(time: datetime) -> str:
    """A time as the tables hold it: UTC, with microseconds, so that text sorts as time does."""
    return time.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _numbers(usage: Usage) -> tuple[int | float, ...]:
    tokens = (usage.input_tokens, usage.output_tokens)
    return (usage.calls, usage.cached, *tokens, usage.seconds)


def _insert(database: sqlite3.Connection, table: str, row: tuple[object, ...]) -> None:
    places = ", ".join("?" * len(row))
    database.execute(f"insert or replace into {table} values ({places})", _encodable(*row))


def _encodable(*values: object) -> tuple[object, ...]:
    return tuple(replace_surrogates(value) if isinstance(value, str) else value for value in values)
