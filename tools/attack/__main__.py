"""Attack the guard with a known truth, and count what leaks, is wrong, or hangs.

    python -m tools.attack [--quick] [--section NAME ...] [--seed 0] [--unguarded] [--show 3]

Every rejected text is marked with a letter that occurs nowhere else. A leak is found by looking for
this letter in everything that a client gets (`truth`). Each section runs in its own process, and
prints a line for each kind of attack: what, how many, leaks / wrong / hung, seconds. `--unguarded`
removes the guard: an attack that then finds no letter proves nothing. The exit code is 1 if
anything leaked, was wrong or hung. docs/security.md says what is promised and what was found.
"""

from __future__ import annotations

import argparse
import sys

from .sections import CONTROLS, SECTIONS, apart


def main() -> int:
    """Run the attack, print the results, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="take some seconds a section")
    parser.add_argument(
        "--section", choices=SECTIONS, action="append", help="run only this section"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--unguarded", action="store_true", help="run the control, without the guard"
    )
    parser.add_argument("--show", type=int, default=3, help="kinds of bad results to show")
    options = parser.parse_args()

    print(f"{'attack':<52} {'tried':>9} {'':<13} leaks/wrong/hung   seconds")
    bad = 0
    for name in options.section or (CONTROLS if options.unguarded else SECTIONS):
        for tally in apart(name, options):
            print("\n".join(tally.lines(options.show)), flush=True)
            bad += tally.bad
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
