"""What it takes to write a log of 20,000 runs, and to ask it.

    python -m bench.log [--runs 20000]

Each time is told beside that of a plain insert, or of reading all records, in the same run: other
work on the machine spoils both.
"""

from __future__ import annotations

import argparse
import random
import sqlite3
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from bench.report import record

from demur.observe import Record, SQLiteSink
from demur.observe.log import EVERY, Filters, Log, open_log, records, summarise, worst


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=20_000)
    options = parser.parse_args()
    draw = random.Random(9)
    runs = [record(at, draw) for at in range(options.runs)]
    with tempfile.TemporaryDirectory(prefix="demur-bench-") as folder:
        path = Path(folder) / "log.sqlite"
        _tell_written(path, runs)
        with open_log(path) as log:
            _tell_asked(log)


def _tell_written(path: Path, runs: list[Record]) -> None:
    sink = SQLiteSink(path)
    ours = _seconds(lambda: [sink.write(one) for one in runs])
    sink.close()
    with closing(sqlite3.connect(path.with_name("plain.sqlite"))) as database:
        database.execute("pragma journal_mode = wal")
        database.execute("pragma synchronous = normal")
        database.execute("create table plain (id text primary key, record text)")

        def insert() -> None:
            for one in runs:
                with database:
                    database.execute("insert into plain values (?, ?)", (one.id, one.as_json()))

        plain = _seconds(insert)
    print(
        f"{len(runs):,} runs, {path.stat().st_size / 1e6:.0f} MB: {1000 * ours / len(runs):.2f} ms "
        f"to write one, {ours / plain:.1f} times a plain insert\n"
    )


def _tell_asked(log: Log) -> None:
    everything = _seconds(lambda: [*log.rows("select id, record from records")])
    print("| | s | to reading all records |\n|---|---|---|")
    asked: dict[str, Callable[[], object]] = {
        "list, the newest 20": lambda: [*records(log, last=20)],
        "summary, by model and day": lambda: summarise(log, by=["model", "day"]),
        "the ten worst": lambda: [*worst(log, EVERY, 10)],
        "a text in question or answer": lambda: [*records(log, Filters(text="alder"), 20)],
        "failed by RefChecker": lambda: [
            *records(log, Filters(evaluator="RefChecker", finding="failed"), 20)
        ],
    }
    for name, ask in asked.items():
        took = min(_seconds(ask) for _ in range(3))
        print(f"| {name} | {took:.3f} | {took / everything:.1f} |", flush=True)


def _seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
