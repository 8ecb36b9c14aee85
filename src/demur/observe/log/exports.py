"""Export the evaluations of a log as a table for spreadsheets."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from demur._system import owner_only
from demur.observe.log.filters import EVERY, Filters
from demur.observe.log.opening import Log
from demur.observe.log.reading import Damaged
from demur.observe.log.selection import records
from demur.observe.records import Record, moment
from demur.schema import Evaluation

_FORMULAS = ("=", "+", "-", "@", "\t", "\r", "\n")
COLUMNS = (
    *("run", "root", "time", "name", "model", "outcome", "attempts"),
    *("attempt", "question", "answer", "verdict"),
    *("evaluator", "finding", "score", "label", "failures", "explanation", "error"),
    *("calls", "cached", "input_tokens", "output_tokens", "call_seconds"),
)
"""The columns of a CSV file: of the run, of one of its answers, and of one of its evaluations."""


def export_csv(log: Log, out: Path, filters: Filters = EVERY) -> tuple[int, tuple[Damaged, ...]]:
    """Write a CSV file with a row for each evaluation, oldest run first.

    An answer without an evaluation has a row too. A cell that begins like a formula gets a ' in
    front of it.

    Returns:
        The number of rows, and the records that were left out.

    Raises:
        FileExistsError: The file exists already.
        OSError: The file cannot be written.
        LogError: The log is damaged.
    """
    with open(out, "x", encoding="utf-8", newline="", opener=owner_only) as lines:
        try:
            return _write(log, csv.writer(lines), filters)
        except BaseException:
            out.unlink()  # a file that is cut off would look like a whole one
            raise


def _write(log: Log, table: Any, filters: Filters) -> tuple[int, tuple[Damaged, ...]]:
    table.writerow(COLUMNS)
    count, damaged = 0, list[Damaged]()
    for record in records(log, filters):
        if isinstance(record, Damaged):
            damaged.append(record)
            continue
        for row in _rows(record):
            table.writerow(map(_cell, row))
            count += 1
    return count, tuple(damaged)


def _rows(record: Record) -> Iterator[tuple[Any, ...]]:
    run = (record.id, record.root, moment(record.time), record.name, record.model, record.outcome)
    for number, attempt in enumerate(record.attempts, start=1):
        answer = (number, attempt.question, attempt.answer, attempt.verdict)
        for evaluation in attempt.evaluations or (None,):
            yield (*run, len(record.attempts), *answer, *_columns_of(evaluation))


def _columns_of(evaluation: Evaluation | None) -> tuple[Any, ...]:
    if evaluation is None:
        return (None,) * 12
    usage = evaluation.usage
    return (
        *(evaluation.name, evaluation.finding, evaluation.score, evaluation.label),
        *(", ".join(map(str, evaluation.failures)), evaluation.explanation, evaluation.error),
        *(usage.calls, usage.cached),
        *(usage.input_tokens, usage.output_tokens, usage.seconds),
    )


def _cell(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    text = value.replace("\0", "\u2400")  # the csv module of Python 3.10 cannot write or read NUL
    return f"'{text}" if text.startswith(_FORMULAS) else text
