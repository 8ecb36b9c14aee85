"""Runs of a log as a file of their own: whole, or as a table for spreadsheets."""

from __future__ import annotations

import csv
import os
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from demur import _owner_only as private
from demur.observe.log.errors import LogError
from demur.observe.log.opening import Log
from demur.observe.log.reading import Damaged
from demur.observe.log.selection import EVERY, Filters, records
from demur.observe.records import Record
from demur.observe.sinks.choosing import _FILES as FILES
from demur.schema import Evaluation

TABLE = ".csv"
_FORMULAS = ("=", "+", "-", "@", "\t", "\r", "\n")
COLUMNS = (
    *("run", "root", "time", "name", "model", "trace_id", "outcome", "attempts", "attempt"),
    *("question", "answer", "verdict", "evaluator", "finding", "score", "label", "explanation"),
    *("error", "calls", "cached", "input_tokens", "output_tokens", "call_seconds"),
)
"""Of a CSV file: those of the run, of one of its answers, and of one evaluation of that."""


@dataclass(frozen=True)
class ExportedLog:
    """What was written."""

    runs: int
    damaged: tuple[Damaged, ...]
    """Runs that cannot be read, and were left out."""


def export(
    log: Log,
    out: Path,
    filters: Filters = EVERY,
    last: int | None = None,
    *,
    force: bool = False,
    append: bool = False,
) -> ExportedLog:
    """Write runs of a log to a file, oldest first: whole or not at all.

    Args:
        log: The log.
        out: By its suffix, lines of JSON (.jsonl, .ndjson) or a database (.sqlite, .sqlite3, .db),
            which are logs again; or a table (.csv) with a row for each evaluation. There, what
            begins like a formula has ' before it.
        filters: Which runs.
        last: The newest so many only.
        force: Take the place of a file that is there.
        append: Add to the log that is there, record by record. In a database, a run that is in it
            already is replaced.

    Raises:
        ValueError: The suffix is another one, or the file is the log itself, or in use.
        FileExistsError: The file is there already.
        OSError: The file cannot be written.
        LogError: The log is damaged, or the database that is added to is locked for long.
    """
    suffix = out.suffix.lower()
    if suffix not in (*FILES, TABLE):
        raise ValueError(f"{out}: expected a name that ends in {', '.join(FILES)} or {TABLE}")
    if append and suffix == TABLE:
        raise ValueError(f"{out}: a table is written anew; only logs can be added to")
    if out.exists():
        if log.path.exists() and os.path.samefile(log.path, out):
            raise ValueError(f"{out} is the log itself")
        if not (force or append):
            raise FileExistsError(f"{out} is there already")
    runs, damaged = 0, []
    try:
        with _into(out, append) as write:
            for record in records(log, filters, last):
                if isinstance(record, Record):
                    write(record)
                    runs += 1
                else:
                    damaged.append(record)
    except sqlite3.Error as error:
        added = f" {runs:,} runs were added before." if append else ""
        raise LogError(f"cannot write {out}: {error}.{added}") from error
    return ExportedLog(runs, tuple(damaged))


@contextmanager
def _into(out: Path, append: bool) -> Iterator[Callable[[Record], None]]:
    if append:
        sink = FILES[out.suffix.lower()](out)
        try:
            yield sink.write
            sink.flush()
        finally:
            sink.close()
        return
    beside = Path(f"{out}-wal")
    if beside.exists() and beside.stat().st_size:  # would be taken for the new database's
        raise ValueError(f"{out} is in use, or was left so: {beside.name} belongs to it")
    with tempfile.TemporaryDirectory(dir=out.parent, prefix=".demur-") as folder:
        new = Path(folder) / out.name
        with _table(new) if out.suffix.lower() == TABLE else _into(new, append=True) as write:
            yield write
        os.replace(new, out)


@contextmanager
def _table(path: Path) -> Iterator[Callable[[Record], None]]:
    with open(path, "x", encoding="utf-8", newline="", opener=private.opened) as lines:
        table = csv.writer(lines)
        table.writerow(COLUMNS)
        yield lambda record: table.writerows(map(_row, _rows(record)))
        lines.flush()
        os.fsync(lines.fileno())


def _rows(record: Record) -> Iterator[tuple[Any, ...]]:
    for number, attempt in enumerate(record.attempts, start=1):
        before = (
            *(record.id, record.root, record.time.isoformat(), record.name, record.model),
            *(record.trace_id, record.outcome, len(record.attempts), number),
            *(attempt.question, attempt.answer, attempt.verdict),
        )
        for evaluation in attempt.evaluations:
            yield (*before, *_columns_of(evaluation))
        if not attempt.evaluations:
            yield (*before, *[None] * (len(COLUMNS) - len(before)))


def _columns_of(evaluation: Evaluation) -> tuple[Any, ...]:
    usage = evaluation.usage
    return (
        *(
            evaluation.name,
            evaluation.finding,
            evaluation.score,
            evaluation.label,
            evaluation.explanation,
            evaluation.error,
        ),
        *(usage.calls, usage.cached, usage.input_tokens, usage.output_tokens, usage.seconds),
    )


def _row(values: tuple[Any, ...]) -> list[Any]:
    return [_cell(value) if isinstance(value, str) else value for value in values]


def _cell(text: str) -> str:
    text = text.replace("\0", "\u2400")  # the csv module of Python 3.10 writes and reads none
    return f"'{text}" if text.startswith(_FORMULAS) else text
