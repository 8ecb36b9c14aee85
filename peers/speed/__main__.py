"""Compare how fast demur and its peers score the same answers on the same server, and at what cost.

    python -m peers.speed --markdown
    python -m peers.speed --peers demur ragas --at-once 1 16 --answers 32

Every peer scores the same answers (`peers.speed.texts`) in its own environment. It asks a local
server that takes the same time for every request and replies in the peer's own format. No model and
no weights are involved, so the figures say what the libraries make of a model, not how well they
judge. Peers are called as their documentation shows, with their own defaults for retries.

The ideal time of a row is the time of its requests alone. Some requests of an answer depend on one
another, such as two if claims are extracted and then checked. Only these are counted ("in
sequence"), because the others can run beside them. A row's wall time is divided by its own ideal
time, which shows how well the requests are scheduled. It is also divided by the time of one request
for each answer, which shows what more requests cost. Imports and a first pass over the answers are
not counted. CPU and memory are those of the peer's own process.

In the last run a fifth of the requests is spoiled. An answer is wrong if its score differs from the
right one, unless the peer says that it has no score. An answer is lost if a call for many answers
failed or did not end in time.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from dataclasses import asdict
from pathlib import Path

from bench.measuring import arguments

from peers.adapters import AdapterError
from peers.environments import NoEnvironmentError
from peers.speed import tables
from peers.speed.rows import ROWS, Row
from peers.speed.running import Failed, Measured, Server, measure, serving


def main() -> int:
    """Measure and print, and return exit code 1 if demur gave a wrong score or lost an answer."""
    parser = arguments(__doc__)
    names = list(dict.fromkeys(row.peer for row in ROWS))
    parser.add_argument("--peers", nargs="+", choices=names, default=names)
    parser.add_argument("--at-once", type=int, nargs="+", default=[1, 4, 16, 64])
    parser.add_argument(
        "--answers", type=int, default=32, help="answers to score, at least as many as at once"
    )
    parser.add_argument("--latency", type=float, default=0.2, help="seconds per request")
    parser.add_argument(
        "--share", type=float, default=0.2, help="share of the requests to spoil; 0: none"
    )
    parser.add_argument(
        "--seed", type=int, default=0, help="seed that selects the requests to spoil"
    )
    parser.add_argument(
        "--patience", type=float, default=120.0, help="seconds that one run may take"
    )
    parser.add_argument("--markdown", action="store_true", help="print a heading for each table")
    parser.add_argument("--json", type=Path, help="also write all figures to this file")
    options = parser.parse_args()

    began = time.perf_counter()
    measured: list[Measured] = []
    failed: list[Failed] = []
    with serving(options.latency) as server:
        for row in (row for row in ROWS if row.peer in options.peers):
            found = _measured(row, server, options)
            if isinstance(found, Measured):
                measured.append(found)
            else:
                failed.append(found)
            print(f"{time.perf_counter() - began:.0f} s: {row.name}", file=sys.stderr, flush=True)
        print(_told(measured, failed, server, options, time.perf_counter() - began))
    if options.json:
        options.json.write_text(json.dumps([asdict(one) for one in measured], indent=1))
    return int(any(_bad(one) for one in measured if one.row.peer == "demur"))


def _measured(row: Row, server: Server, options: argparse.Namespace) -> Measured | Failed:
    try:
        return measure(
            row,
            server,
            options.at_once,
            options.answers,
            share=options.share,
            seed=options.seed,
            patience=options.patience,
        )
    except (NoEnvironmentError, AdapterError) as error:
        return Failed(row, str(error))


def _bad(one: Measured) -> int:
    spoiled = one.spoiled.grades if one.spoiled else {}
    clean = sum(run.answers - run.grades.get("right", 0) for run in one.clean)
    return clean + spoiled.get("wrong", 0) + spoiled.get("lost", 0)


def _told(
    measured: list[Measured],
    failed: list[Failed],
    server: Server,
    options: argparse.Namespace,
    seconds: float,
) -> str:
    setting = (
        f"{time.strftime('%Y-%m-%d')}, Python {platform.python_version()}, {os.cpu_count()} cores: "
        f"{options.answers} answers or as many as are at once, {1000 * options.latency:.0f} ms a "
        f"request, tokens by {server.counted_with}; {seconds / 60:.0f} minutes."
    )
    said = [setting]
    if measured:
        parts = {
            "What an answer costs, and the wall time over the row's own ideal": tables.cost(
                measured, options.latency
            ),
            "The wall time over one request an answer": tables.against_one_call(
                measured, options.latency
            ),
        }
        if options.share:
            parts[f"With {options.share:.0%} of the requests spoiled"] = tables.spoiled(measured)
        mark = "### " if options.markdown else ""
        said += [f"{mark}{head}\n\n{text}" for head, text in parts.items()]
    said.append("\n".join(f"- {note}" for note in tables.notes(measured, failed)))
    return "\n\n".join(said)


if __name__ == "__main__":
    sys.exit(main())
