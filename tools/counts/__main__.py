"""Count what evaluators, the guard and the handler ask for, and compare it with the record.

    python -m tools.counts [--only NAME ...] [--write]

Model calls, tokens, scored pairs and embedded texts are exact on every machine; allocated memory
may vary within a band. A figure that fell is a difference too: writing it down puts the gain on
record. The exit code is 1 if a figure differs. Each workload is a line of `workloads.py`.
"""

from __future__ import annotations

import argparse
import inspect
import logging
import sys
import warnings
from pathlib import Path

from demur import evaluators
from demur.evaluators import Evaluator

from .measuring import measured
from .seen import Seen
from .table import Table, differences, kept_within_band, read, written
from .workloads import EVALUATORS, WORKLOADS

_RECORD = Path(__file__).parents[2] / "tests" / "counts.txt"


def main() -> int:
    """Count, and compare the counts or write them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--only", nargs="+", choices=WORKLOADS, metavar="NAME", help="count only these"
    )
    parser.add_argument("--write", action="store_true", help="write the counts to the record")
    parser.add_argument("--file", type=Path, default=_RECORD, help="the file of the record")
    options = parser.parse_args()
    recorded = read(options.file)
    if options.write and options.only and not recorded.of_this_python:
        parser.error(f"{options.file} was written on {recorded.python}: write all of it anew")

    # Here, long references and nearly empty stores are intended.
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    found = {name: measured(name) for name in options.only or WORKLOADS}

    if options.write:
        before = recorded.rows if recorded.of_this_python else {}
        now = {name: kept_within_band(found[name], before.get(name)) for name in found}
        rows = {name: now.get(name, before.get(name)) for name in WORKLOADS}
        text = written({name: counts for name, counts in rows.items() if counts is not None})
        options.file.write_text(text, encoding="utf-8")
        return 0
    lines = [*differences(recorded, found), *_gone(recorded), *_without_workload()]
    if not recorded.of_this_python:
        print(f"(what is allocated is compared on {recorded.python} only)")
    if not lines:
        print(f"{len(found)} workloads: all as in {options.file.name}")
        return 0
    print("\n".join(lines))
    print("\nIf this is meant: python -m tools.counts --write, and say why in the commit.")
    return 1


def _gone(recorded: Table) -> list[str]:
    return [f"{name:<32} is no workload" for name in recorded.rows if name not in WORKLOADS]


def _without_workload() -> list[str]:
    made = {type(make(Seen())) for make in EVALUATORS.values()}
    named = (getattr(evaluators, name) for name in evaluators.__all__)
    classes = {one for one in named if inspect.isclass(one) and issubclass(one, Evaluator)}
    missing = sorted(one.__name__ for one in classes - made - {Evaluator})
    return [f"{name:<32} has no workload: add a line to workloads.py" for name in missing]


if __name__ == "__main__":
    sys.exit(main())
