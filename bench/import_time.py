"""Compare `from demur import RefChecker` with the imports from LangChain that it needs.

    make bench        or: python bench/import_time.py [--rounds 15] [--limit 1.5]

Both run in fresh interpreters, in turns, so that a machine that slows down slows both. The exit
code is 1 if the median of the first is more than `--limit` times the median of the second.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time

OURS = "from demur import RefChecker"
BASE = (
    "from langchain_core.runnables import RunnableSerializable\n"
    "from langchain_core.language_models import BaseChatModel"
)


def seconds(statement: str) -> float:
    """Return the wall time of a fresh interpreter that runs `statement`."""
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", statement], check=True)
    return time.perf_counter() - started


def main() -> int:
    """Measure, print the figures, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--limit", type=float, default=1.5)
    options = parser.parse_args()

    statements = {"nothing": "pass", "langchain_core's base": BASE, "demur": OURS}
    taken: dict[str, list[float]] = {name: [] for name in statements}
    for statement in statements.values():
        seconds(statement)  # compiles the modules and fills the disk cache
    for _ in range(options.rounds):
        for name, statement in statements.items():
            taken[name].append(seconds(statement))

    medians = {name: statistics.median(found) for name, found in taken.items()}
    for name, found in taken.items():
        low, high = min(found), max(found)
        print(f"{name:<22} median {medians[name]:.3f} s   (from {low:.3f} to {high:.3f})")
    idle = medians["nothing"]
    ratio = (medians["demur"] - idle) / (medians["langchain_core's base"] - idle)
    print(f"ratio, less the bare interpreter: {ratio:.2f} (limit {options.limit})")
    return int(ratio > options.limit)


if __name__ == "__main__":
    sys.exit(main())
