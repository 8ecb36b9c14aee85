"""Records in SQLite: one table, and the views that anybody can ask."""

from __future__ import annotations

import sqlite3
from datetime import datetime, timezone

from demur._text import replace_surrogates
from demur.observe.records import Record
from demur.schema import ABSTAIN

VERSION = 2
"""Of the table and its views (`pragma user_version`)."""
APPLICATION = 0x64656D75
"""What tells such a database from others (`pragma application_id`): "demu"."""

# A record that is no JSON, in a damaged database, is no row of a view, and stops none.
_ATTEMPTS = """
    from records r, json_each(
        case when json_valid(r.record) then r.record else '{}' end, '$.attempts') a"""
_EVALUATIONS = f"{_ATTEMPTS}, json_each(a.value, '$.evaluations') e"

# As `Evaluation.finding`.
_FINDING = f"""case
        when json_extract(e.value, '$.error') is not null then 'undetermined'
        when json_extract(e.value, '$.passed') then 'passed'
        when json_extract(e.value, '$.passed') is not null then 'failed'
        when json_extract(e.value, '$.label') = '{ABSTAIN}'
            and json_extract(e.value, '$.score') is null
            and not json_array_length(e.value, '$.claims') then 'nothing_to_check'
        else 'scored' end"""


def _usage(of: str) -> str:
    columns = ("calls", "cached", "input_tokens", "output_tokens")
    return "".join(f"json_extract({of}, '$.usage.{one}') as {one}, " for one in columns) + (
        f"nullif(json_extract({of}, '$.usage.seconds'), 9e999) as call_seconds"
    )


TABLES = f"""
create table if not exists records (
    id text primary key, time text not null, record text not null
);
create index if not exists records_by_time on records (time);
create view if not exists runs as select
    id, json_extract(record, '$.root') as root, time,
    json_extract(record, '$.name') as name, json_extract(record, '$.model') as model,
    json_extract(record, '$.attempts[#-1].question') as question,
    json_extract(record, '$.attempts[#-1].answer') as answer,
    json_array_length(record, '$.attempts') as attempts,
    json_extract(record, '$.attempts[0].verdict') as first_verdict,
    json_extract(record, '$.attempts[#-1].verdict') as verdict,
    json_extract(record, '$.outcome') as outcome,
    json_extract(record, '$.seconds') as seconds, {_usage("record")}
    from records where json_valid(record);
create view if not exists answers as select
    r.id as run, a.key + 1 as attempt, json_extract(a.value, '$.question') as question,
    json_extract(a.value, '$.answer') as answer, json_extract(a.value, '$.verdict') as verdict
    {_ATTEMPTS};
create view if not exists evaluations as select
    r.id as run, a.key + 1 as attempt, e.key + 1 as place,
    json_extract(e.value, '$.name') as evaluator, {_FINDING} as finding,
    json_extract(e.value, '$.score') as score, json_extract(e.value, '$.label') as label,
    json_extract(e.value, '$.explanation') as explanation,
    json_extract(e.value, '$.error') as error, {_usage("e.value")}
    {_EVALUATIONS};
create view if not exists claims as select
    r.id as run, a.key + 1 as attempt, json_extract(e.value, '$.name') as evaluator,
    c.key + 1 as number, json_extract(c.value, '$.text') as claim,
    json_extract(c.value, '$.label') as label, json_extract(c.value, '$.error') as error
    {_EVALUATIONS}, json_each(e.value, '$.claims') c;
"""
"""`time` is when the run ended, in UTC, written so that it sorts; attempts count from 1. SQLite
ends a text out of JSON at a NUL, and so do the views; `record` has all of it."""


def put(database: sqlite3.Connection, record: Record) -> None:
    """Write a record, in the place of one with the same id. Within the caller's transaction."""
    row = (replace_surrogates(record.id), moment(record.time), record.as_json())
    database.execute("insert or replace into records values (?, ?, ?)", row)


def moment(time: datetime) -> str:
    """A time as the table holds it: UTC, with microseconds, so that text sorts as time does."""
    return time.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
