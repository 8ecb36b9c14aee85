"""Measure what becomes of evaluations while the endpoint misbehaves.

    python -m tools.faults [--evaluations 200] [--share 0.2] [--seed 0] [--fault NAME ...]

All evaluations run at once. A real HTTP server, from the tests, spoils a share of the requests:
first with all faults mixed, in every mode, then with each fault alone. The right verdict of each
answer is known by construction. The exit code is 1 if a verdict is wrong or lost.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from demur import CallPolicy, Evaluation, RefChecker
from support import facts  # the tests' modules, which belong to no package
from support.faults import FAULTS, Faulty
from support.openai_server import openai_server

TIMEOUT = 5.0
"""The number of seconds after which a request that hangs is given up."""


@dataclass(frozen=True)
class Row:
    """Hold what became of the evaluations of one run."""

    faults: str
    mode: str
    grades: Counter[str]
    lost: int
    spoiled: int
    retried: int
    requests: int
    calls: int
    seconds: float

    def cells(self) -> list[str]:
        """Return the cells of this row in the table."""
        graded = [self.grades[name] for name in ("right", "partial", "undetermined", "wrong")]
        counts = [*graded, self.lost, self.spoiled, self.retried, self.requests, self.calls]
        return [self.faults, self.mode, *map(str, counts), f"{self.seconds:.1f}"]


COLUMNS = {
    "faults": 18,
    "mode": 15,
    "right": 5,
    "partial": 7,
    "undetermined": 12,
    "wrong": 5,
    "lost": 4,
    "spoiled": 7,
    "retried": 7,
    "requests": 8,
    "calls": 5,
    "seconds": 7,
}
"""The headings of the table, with the widths of their columns."""


def line(cells: Iterable[str]) -> str:
    """Return one line of the table."""
    return "  ".join(cell.rjust(width) for cell, width in zip(cells, COLUMNS.values(), strict=True))


def measure(faults: Sequence[str], checker: str, way: str, options: argparse.Namespace) -> Row:
    """Run all evaluations at once, in threads or in an event loop."""
    script = Faulty(facts.serve, faults, share=options.share, seed=options.seed)
    samples = [facts.sample(number) for number in range(options.evaluations)]
    with openai_server(script) as server:
        policy = CallPolicy(timeout=TIMEOUT)
        evaluator = RefChecker(server.model(), checker=checker, call_policy=policy)
        started = time.perf_counter()
        found = _evaluate(evaluator, samples, way)
        seconds = time.perf_counter() - started
        calls = sum(one.usage.calls for one in found if isinstance(one, Evaluation))
        _settle(server.requests, calls)
        requests = len(server.requests)
    ended = {at: one for at, one in enumerate(found) if isinstance(one, Evaluation)}
    return Row(
        faults=faults[0] if len(faults) == 1 else "all, mixed",
        mode=f"{checker} {way}",
        grades=Counter(facts.grade(at, one) for at, one in ended.items()),
        lost=options.evaluations - len(ended),
        spoiled=script.met.total(),
        retried=script.repeated,
        requests=requests,
        calls=calls,
        seconds=seconds,
    )


def _evaluate(evaluator: RefChecker, samples: Sequence[Any], way: str) -> list[Any]:
    inputs, config = list(samples), {"max_concurrency": len(samples)}
    if way == "sync":
        return evaluator.batch(inputs, config, return_exceptions=True)
    return asyncio.run(evaluator.abatch(inputs, config, return_exceptions=True))


def _settle(requests: Sequence[Any], calls: int) -> None:
    """Wait for requests that the client has given up but the server has not read yet."""
    patience = time.monotonic() + 10
    while len(requests) < calls and time.monotonic() < patience:
        time.sleep(0.05)


def main() -> int:
    """Run the measurements, print the table, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--evaluations", type=int, default=200)
    parser.add_argument("--share", type=float, default=0.2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--fault", choices=FAULTS, action="append", help="measure only this fault, alone"
    )
    options = parser.parse_args()

    both = ("sync", "async")
    runs = [([*FAULTS], checker, way) for checker in ("joint", "per_claim") for way in both]
    runs = [] if options.fault else runs
    runs += [([fault], "joint", way) for fault in options.fault or FAULTS for way in both]
    print(f"{options.evaluations} evaluations at once, {options.share:.0%} of requests spoiled")
    print(line(COLUMNS))
    bad = 0
    for run in runs:
        row = measure(*run, options)
        print(line(row.cells()), flush=True)
        bad += row.grades["wrong"] + row.lost + (row.calls != row.requests)
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
