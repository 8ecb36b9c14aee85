"""Kill writers of a log with `kill -9`, and check that every acknowledged record survives."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from langchain_core.runnables import RunnableLambda

from demur import Guard, ScoreCallbackHandler
from demur.observe import JSONLSink, Record, SQLSink
from demur.observe.log import Damaged, open_log, records
from support.processes import killed_at_random  # the tests' modules, in no package

from .play import Judge
from .truth import Tally

_ROUNDS = 5
"""The number of times that two writers to one file are killed, before it is read and the next
begins."""

Write = Callable[[Record], None]


def _jsonl(path: Path) -> Write:
    return JSONLSink(path).write


def _sqlite(path: Path) -> Write:
    return SQLSink(path).write


def _handler(path: Path) -> Write:
    """Write through all parts: a guard whose answer has the record's id, a handler, and a flush."""
    handler = ScoreCallbackHandler(sink=str(path))
    guard = Guard(RunnableLambda(lambda id: f"It is {id}."), Judge())

    def write(record: Record) -> None:
        guard.invoke(record.id, {"callbacks": [handler]})
        if not handler.flush(30):
            raise TimeoutError("the record was not written")

    return write


SINKS: dict[str, tuple[Callable[[Path], Write], str]] = {
    "JSON lines": (_jsonl, "log.jsonl"),
    "SQLite": (_sqlite, "log.sqlite"),
    "a handler, SQLite": (_handler, "log.sqlite"),
    "a handler, JSON lines": (_handler, "log.jsonl"),
}


def attack(count: int, seed: int = 0) -> Iterator[Tally]:
    """Run `count` rounds for each sink, in which two processes write until they are killed."""
    for name, (make, file) in SINKS.items():
        tally = Tally(f"kill -9: {name}", "records")
        written = torn = 0
        with tally:
            for at in range(0, count, _ROUNDS):
                rounds = min(_ROUNDS, count - at)
                with TemporaryDirectory() as folder:
                    path = Path(folder) / file
                    told = killed_at_random(partial(make, path), rounds, seed + at)
                    there, damaged = _read(path)
                written += len(told)
                torn += damaged
                for id in {*told} - there:
                    tally.add("wrong", "an acknowledged record is lost", f"{id}, round {at}")
                if damaged > 2 * rounds:
                    tally.add("wrong", "more than a torn record for each kill", damaged)
        tally.tried = written
        tally.notes.append(
            f"{2 * count} writers killed, {torn} torn records left out by the reader"
        )
        yield tally


def _read(path: Path) -> tuple[set[str], int]:
    """Return the ids in a log, and the number of records that the reader leaves out."""
    there: set[str] = set()
    with contextlib.closing(open_log(path)) as log:
        torn = [*log.damaged]
        for one in records(log):
            if isinstance(one, Damaged):
                torn.append(one)
            else:
                there |= {one.id, str(one.answer).removeprefix("It is ").removesuffix(".")}
    return there, len(torn)


logging.getLogger("demur").setLevel(logging.ERROR)
