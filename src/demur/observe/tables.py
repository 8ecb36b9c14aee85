"""Define the tables of a log, for SQLite and PostgreSQL alike, and write records into them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from itertools import islice
from operator import itemgetter
from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Delete,
    Dialect,
    Double,
    Index,
    Insert,
    Integer,
    MetaData,
    Table,
    Text,
    bindparam,
    delete,
    insert,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.schema import CreateIndex, CreateTable, ExecutableDDLElement

from demur._text import replace_surrogates
from demur.guard import Attempt
from demur.observe.records import Record, moment
from demur.schema import Failure, Usage

VERSION = 3
"""The version of these tables. Raise it with each change of them: other versions are refused."""

_WORD = Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")
"""The type of columns that are compared and sorted: by code points in both databases."""

metadata = MetaData()


def _cost() -> Iterator[Column[Any]]:
    for name in ("calls", "cached", "input_tokens", "output_tokens"):
        yield Column(name, BigInteger, nullable=False)
    yield Column("call_seconds", Double, nullable=False)


def _key(name: str, kind: Any = Integer) -> Column[Any]:
    return Column(name, kind, primary_key=True, autoincrement=False)


runs = Table(
    "runs",
    metadata,
    _key("id", _WORD),
    Column("root", _WORD, nullable=False),
    Column("time", _WORD, nullable=False),
    Column("name", _WORD),
    Column("model", _WORD),
    Column("attempts", Integer, nullable=False),
    Column("first_verdict", _WORD, nullable=False),
    Column("verdict", _WORD, nullable=False),
    Column("outcome", _WORD),
    Column("seconds", Double, nullable=False),
    *_cost(),
    Column("question", Text),
    Column("answer", Text, nullable=False),
)
Index("runs_by_time", runs.c.time, runs.c.id)

# In a table of its own: else SQLite would read past the texts for every sum.
records = Table("records", metadata, _key("id", _WORD), Column("record", Text, nullable=False))

answers = Table(
    "answers",
    metadata,
    _key("run", _WORD),
    _key("attempt"),
    Column("verdict", _WORD, nullable=False),
    Column("failures", _WORD),
    Column("question", Text),
    Column("answer", Text, nullable=False),
    sqlite_with_rowid=False,
)

evaluations = Table(
    "evaluations",
    metadata,
    _key("run", _WORD),
    _key("attempt"),
    _key("place"),
    Column("evaluator", _WORD, nullable=False),
    Column("finding", _WORD, nullable=False),
    Column("score", Double),
    *_cost(),
    Column("label", _WORD),
    Column("explanation", Text),
    Column("error", Text),
    sqlite_with_rowid=False,
)

claims = Table(
    "claims",
    metadata,
    _key("run", _WORD),
    _key("attempt"),
    _key("place"),
    _key("number"),
    Column("evaluator", _WORD, nullable=False),
    Column("label", _WORD),
    Column("claim", Text, nullable=False),
    Column("error", Text),
    sqlite_with_rowid=False,
)

_PARTS = (answers, evaluations, claims)
"""The tables of which a run may have several rows."""
COST = ("calls", "cached", "input_tokens", "output_tokens", "call_seconds")
"""The columns that hold a usage."""
_TOGETHER = 200
"""The number of records whose rows are sent together."""


def statements(dialect: Dialect) -> list[str]:
    """Return the statements that make the tables and indexes that do not exist yet."""
    made: list[ExecutableDDLElement] = []
    made += (CreateTable(table, if_not_exists=True) for table in metadata.sorted_tables)
    made += (CreateIndex(index, if_not_exists=True) for index in runs.indexes)
    return [str(one.compile(dialect=dialect)) for one in made]


def put(connection: Connection, given: Iterable[Record]) -> None:
    """Write records within the caller's transaction; a record replaces one with the same id."""
    coming = iter(given)
    while some := list(islice(coming, _TOGETHER)):
        _put(connection, some)


def _put(connection: Connection, some: Iterable[Record]) -> None:
    by_id = {in_column(record.id): record for record in some}
    rows: dict[Table, list[dict[str, Any]]] = {table: [] for table in metadata.tables.values()}
    # Sorted, so that two writers of the same records cannot wait for each other.
    for id, record in sorted(by_id.items(), key=itemgetter(0)):
        rows[records].append({"id": id, "record": record.as_json()})
        rows[runs].append(_run(id, record))
        for number, attempt in enumerate(record.attempts, start=1):
            _add_answer(rows, {"run": id, "attempt": number}, attempt)
    # First the tables that have the id as their key: another writer of the same id waits here.
    for table in (runs, records):
        connection.execute(_upsert(table, connection.dialect.name), rows[table])
    gone = [{"id": id} for id in by_id]
    for table in _PARTS:
        if not connection.execute(_delete(table), gone).rowcount:
            break  # every run has an answer: if none was deleted, all runs are new
    for table in _PARTS:
        if rows[table]:
            connection.execute(_insert(table), rows[table])


@cache
def _upsert(table: Table, dialect: str) -> Insert:
    statement: Any = (postgresql if dialect == "postgresql" else sqlite).insert(table)
    others = {one.name: statement.excluded[one.name] for one in table.c if not one.primary_key}
    upsert: Insert = statement.on_conflict_do_update(index_elements=[table.c.id], set_=others)
    return upsert


@cache
def _delete(table: Table) -> Delete:
    return delete(table).where(table.c.run == bindparam("id"))


@cache
def _insert(table: Table) -> Insert:
    return insert(table)


def _run(id: str, record: Record) -> dict[str, Any]:
    return {
        "id": id,
        "root": in_column(record.root),
        "time": moment(record.time),
        "name": in_column(record.name),
        "model": in_column(record.model),
        "attempts": len(record.attempts),
        "first_verdict": record.attempts[0].verdict,
        "verdict": record.verdict,
        "outcome": record.outcome,
        "seconds": record.seconds,
        **_spent(record.usage),
        "question": in_column(record.question),
        "answer": in_column(record.answer),
    }


def _add_answer(
    rows: dict[Table, list[dict[str, Any]]], key: dict[str, Any], attempt: Attempt
) -> None:
    rows[answers].append(
        {
            **key,
            "verdict": attempt.verdict,
            "failures": _failures(attempt),
            "question": in_column(attempt.question),
            "answer": in_column(attempt.answer),
        }
    )
    for place, evaluation in enumerate(attempt.evaluations, start=1):
        evaluator = in_column(evaluation.name)
        rows[evaluations].append(
            {
                **key,
                "place": place,
                "evaluator": evaluator,
                "finding": evaluation.finding,
                "score": evaluation.score,
                **_spent(evaluation.usage),
                "label": in_column(evaluation.label),
                "explanation": in_column(evaluation.explanation),
                "error": in_column(evaluation.error),
            }
        )
        rows[claims] += (
            {
                **key,
                "place": place,
                "number": number,
                "evaluator": evaluator,
                "label": claim.label and claim.label.value,
                "claim": in_column(claim.text),
                "error": in_column(claim.error),
            }
            for number, claim in enumerate(evaluation.claims, start=1)
        )


def _spent(usage: Usage) -> dict[str, float]:
    return dict(zip(COST, dict(usage).values(), strict=True))


def _failures(attempt: Attempt) -> str | None:
    """Return the failures of an answer, in the order of `Failure`, joined by commas; else None."""
    found = {failure for one in attempt.evaluations for failure in one.failures}
    if attempt.verdict == "failed" and not found:  # `on_abstain="fail"`
        found = {Failure.NOTHING}
    return ", ".join(failure.value for failure in Failure if failure in found) or None


def in_column(text: Any) -> Any:
    """Return a text as columns hold it: without NUL (PostgreSQL) and without lone surrogates."""
    return text and replace_surrogates(text).replace("\0", "\u2400")
