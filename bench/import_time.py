"""Compare `from demur import RefChecker` with the imports from LangChain that it needs.

    make bench        or: python -m bench.import_time [--rounds 15] [--limit 1.5]

Both run in fresh interpreters, in turns, so that a machine that slows down slows both. The exit
code is 1 if the median of the first is more than `--limit` times the median of the second.
"""

from __future__ import annotations

import subprocess
import sys
from functools import partial

from bench.measuring import arguments, in_turns

OURS = "from demur import RefChecker"
BASE = (
    "from langchain_core.runnables import RunnableSerializable\n"
    "from langchain_core.language_models import BaseChatModel"
)


def main() -> int:
    """Measure, print the figures, and return the exit code."""
    parser = arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--limit", type=float, default=1.5)
    options = parser.parse_args()

    statements = {"nothing": "pass", "langchain_core's base": BASE, "demur": OURS}
    runs = {
        name: partial(subprocess.run, [sys.executable, "-c", statement], check=True)
        for name, statement in statements.items()
    }
    in_turns(runs, 1)  # compiles the modules and fills the disk cache
    taken = in_turns(runs, options.rounds)
    medians = {name: clock.median.wall for name, clock in taken.items()}
    for name, clock in taken.items():
        low, high = min(clock.walls), max(clock.walls)
        print(f"{name:<22} median {medians[name]:.3f} s   (from {low:.3f} to {high:.3f})")
    idle = medians["nothing"]
    ratio = (medians["demur"] - idle) / (medians["langchain_core's base"] - idle)
    print(f"ratio, less the bare interpreter: {ratio:.2f} (limit {options.limit})")
    return int(ratio > options.limit)


if __name__ == "__main__":
    sys.exit(main())
