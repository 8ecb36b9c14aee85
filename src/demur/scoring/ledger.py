"""Keep what is to be scored and what was found in a database that need not fit into memory."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Any

from demur.schema import Evaluation, Usage
from demur.scoring.rows import Row

_TABLES = """
pragma journal_mode = off;
create table answers (
    key text primary key, row text not null, name text, place integer not null,
    line integer not null
) without rowid;
create table found (
    key text not null, evaluator text not null, score real, passed integer,
    undetermined integer not null, nothing_to_check integer not null, calls integer not null,
    cached integer not null, input_tokens integer not null, output_tokens integer not null,
    seconds real not null, primary key (key, evaluator)
) without rowid;
create table spent (
    calls integer not null, cached integer not null, input_tokens integer not null,
    output_tokens integer not null, seconds real not null
);
"""

_LACKS = """
select count(*) from answers
where key = ? and not exists (select 1 from found where key = answers.key and evaluator = ?)
"""


class Ledger:
    """Hold the answers of a data set and the figures of their evaluations.

    The ledger is a temporary SQLite database, which SQLite moves to the disk as it grows. A data
    set may therefore have more rows than memory can hold keys. The ledger lasts as long as the
    process; the results file keeps what is to stay. Use it in one thread only.
    """

    def __init__(self, word: str = "line") -> None:
        """Create an empty ledger. `word` is what messages call a row."""
        self._word = word
        self._database = sqlite3.connect("")
        self._database.executescript(_TABLES)

    def add(self, row: Row) -> None:
        """Add the answers of a row.

        Raises:
            ValueError: An answer has the same key as another answer.
        """
        for place, name in enumerate(row.samples):
            key = row.key(name)
            try:
                self._database.execute(
                    "insert into answers values (?, ?, ?, ?, ?)",
                    (key, row.id, name, place, row.line),
                )
            except sqlite3.IntegrityError:
                ((line,),) = self.select("select line from answers where key = ?", key)
                raise ValueError(
                    f"id: {key!r} is on {self._word} {line} already, and each is expected once"
                ) from None

    def note(self, key: str, evaluator: str, evaluation: Evaluation) -> bool:
        """Record the evaluation of an answer by an evaluator.

        Returns:
            Whether it was recorded: the answer is in the ledger, and it had no evaluation by this
                evaluator.
        """
        if not self.count("select count(*) from answers where key = ?", key):
            return False
        figures = (
            *(key, evaluator, evaluation.score, evaluation.passed),
            *(evaluation.undetermined, evaluation.nothing_to_check),
            *_numbers(evaluation.usage),
        )
        places = ", ".join("?" * len(figures))
        insert = f"insert or ignore into found values ({places})"
        return self._database.execute(insert, figures).rowcount > 0

    def spend(self, usage: Usage) -> None:
        """Record a cost that belongs to no single answer."""
        self._database.execute("insert into spent values (?, ?, ?, ?, ?)", _numbers(usage))

    def lacks(self, key: str, evaluator: str) -> bool:
        """Return whether an answer is to be scored and has no evaluation by this evaluator yet."""
        return bool(self.count(_LACKS, key, evaluator))

    def count(self, query: str, *values: Any) -> int:
        """Return the one number that a query gives."""
        ((number,),) = self.select(query, *values)
        return int(number)

    def select(self, query: str, *values: Any) -> Iterator[tuple[Any, ...]]:
        """Yield the rows that a query gives."""
        return self._database.execute(query, values)

    def close(self) -> None:
        """Close the database."""
        self._database.close()


def _numbers(usage: Usage) -> tuple[int | float, ...]:
    tokens = (usage.input_tokens, usage.output_tokens)
    return (usage.calls, usage.cached, *tokens, usage.seconds)
