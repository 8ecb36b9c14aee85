"""Measure what it takes to write a log and to query it, in SQLite and in PostgreSQL.

    python -m bench.log [--runs 20000] [--only sqlite|postgres] [--folder FOLDER]

The first runs are written one by one, as a handler writes them, and compared with plain inserts.
The others only fill the log, so the same statements write them in large transactions. A server of
PostgreSQL is started with its default settings. Each query has its own process, whose peak memory
is shown. Its time is compared with the time to read all records in the same run, because other work
on the machine changes both. 1,000,000 runs take 6 GB of disk in SQLite and 3 GB in PostgreSQL, and
half an hour.
"""

from __future__ import annotations

import contextlib
import random
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial
from itertools import islice
from pathlib import Path

from bench.measuring import alone, arguments, peak_mb, seconds
from bench.records import record

from demur.observe import Record, SQLSink
from demur.observe.log import EVERY, Filters, Log, open_log, records, summarise, worst
from demur.views.report import write_report

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support.postgres_server import binaries, postgres_server  # not a package

_ONE_BY_ONE = 1_000
_TOGETHER = 10_000
_DIFFERENT = 2_000
"""The number of different runs; the others repeat them at other times."""


def main() -> None:
    """Measure, and print the figures."""
    parser = arguments(__doc__)
    parser.add_argument("--runs", type=int, default=20_000)
    parser.add_argument("--only", choices=["sqlite", "postgres"])
    parser.add_argument(
        "--folder", type=Path, help="a folder with enough room (default: a temporary one)"
    )
    options = parser.parse_args()
    if options.folder:
        tempfile.tempdir = str(options.folder)
    with tempfile.TemporaryDirectory(prefix="demur-bench-log-") as folder:
        if options.only != "postgres":
            path = Path(folder) / "log.sqlite"
            print(f"SQLite {sqlite3.sqlite_version}")
            _measure(str(path), options.runs, _plain_sqlite, lambda: path.stat().st_size)
        if options.only == "sqlite":
            return
        if binaries() is None:
            print("PostgreSQL is not installed (apt-get install postgresql): not measured")
            return
        with postgres_server(durable=True) as server:
            ((version,),) = server.ask("show server_version")
            print(f"PostgreSQL {version}, on this machine")
            url = server.new()

            def size() -> int:
                server.ask("checkpoint")
                ((total,),) = server.ask("select pg_database_size(current_database())", url)
                return int(total)

            _measure(url, options.runs, _plain_postgres, size)


def _measure(
    where: str,
    count: int,
    plain: Callable[[str, list[Record]], float],
    size: Callable[[], int],
) -> None:
    runs = _runs(count)
    few = list(islice(runs, _ONE_BY_ONE))
    bare = plain(where, few)
    sink = SQLSink(where)
    ours = seconds(lambda: [sink.write(one) for one in few])
    print(
        f"{1000 * ours / len(few):.2f} ms to write one of {len(few):,} runs, {ours / bare:.1f} "
        f"times a plain insert"
    )

    def fill() -> None:
        while some := list(islice(runs, _TOGETHER)):
            sink.write_all(some)

    filled = seconds(fill)
    if count > len(few):
        more = count - len(few)
        print(f"{1000 * filled / more:.2f} ms of each of {more:,} in large transactions")
    sink.close()
    print(f"{count:,} runs, {size() / 1e6:,.0f} MB\n")
    print("| | s | to reading all records | MB of memory, at most |\n|---|---|---|---|", flush=True)
    everything, held = alone(asked, where, "all records", 1)
    for name in _QUESTIONS:
        took, most = alone(asked, where, name, 3 if count <= 100_000 and name != _LONG else 1)
        print(f"| {name} | {took:.3f} | {took / everything:.2f} | {most:,.0f} |", flush=True)
    print(f"| all records | {everything:.3f} | 1 | {held:,.0f} |\n", flush=True)


def _runs(count: int) -> Iterator[Record]:
    draw = random.Random(9)
    made = [record(at, draw) for at in range(min(count, _DIFFERENT))]
    for at in range(count):
        one = made[at % len(made)]
        id, later = f"{at:032x}", timedelta(seconds=40 * (at - at % len(made)))
        yield one.model_copy(update={"id": id, "root": id, "time": one.time + later})


# --- Plain inserts --------------------------------------------------------------------------------


def _plain_sqlite(where: str, runs: list[Record]) -> float:
    """Return the seconds to insert the records over one connection, each in a transaction."""
    with contextlib.closing(sqlite3.connect(f"{where}.plain")) as database:
        database.execute("pragma journal_mode = wal")
        database.execute("pragma synchronous = normal")
        database.execute("create table plain (id text primary key, record text)")

        def insert() -> None:
            for one in runs:
                with database:
                    database.execute("insert into plain values (?, ?)", (one.id, one.as_json()))

        return seconds(insert)


def _plain_postgres(where: str, runs: list[Record]) -> float:
    import psycopg

    with psycopg.connect(where, autocommit=True) as server:
        server.execute("create table plain (id text primary key, record text)")

        def insert() -> None:
            for one in runs:
                server.execute("insert into plain values (%s, %s)", (one.id, one.as_json()))

        took = seconds(insert)
        server.execute("drop table plain")
    return took


# --- Questions ------------------------------------------------------------------------------------


def _all(log: Log) -> object:
    return sum(1 for _ in log.rows(_every_record(), stream=True))


def _every_record() -> object:
    from sqlalchemy import select

    from demur.observe.tables import records as table

    return select(table)


def _report(log: Log) -> object:
    with tempfile.TemporaryDirectory() as folder:
        return write_report(log, Path(folder) / "report.html")


_LONG = "the report"
_QUESTIONS: dict[str, Callable[[Log], object]] = {
    "list, the newest 20": lambda log: [*records(log, last=20)],
    "summary": summarise,
    "summary, by model and day": lambda log: summarise(log, by=["model", "day"]),
    "summary of a day": lambda log: summarise(log, _first_day(log)),
    "the ten worst": lambda log: [*worst(log, EVERY, 10)],
    "a text in question or answer": lambda log: [*records(log, Filters(text="alder"), 20)],
    "a text that is nowhere": lambda log: [*records(log, Filters(text="zanzibar"), 20)],
    "failed by RefChecker": lambda log: [
        *records(log, Filters(evaluator="RefChecker", finding="failed"), 20)
    ],
    _LONG: _report,
}


def _first_day(log: Log) -> Filters:
    first = next(iter(records(log, last=1)))
    assert isinstance(first, Record)
    return Filters(since=first.time - timedelta(days=1))


def asked(where: str, name: str, times: int) -> tuple[float, float]:
    """Run a query some times.

    Returns:
        The least of the times in seconds, and the peak memory in MB.
    """
    ask = _QUESTIONS.get(name, _all)
    took = []
    for _ in range(times):
        with open_log(where) as log:
            took.append(seconds(partial(ask, log)))
    return min(took), peak_mb()


if __name__ == "__main__":
    main()
