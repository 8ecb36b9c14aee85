"""An attack on the guard with a ground truth of its own: what gets out, is wrong, or hangs.

    python -m tools.attack [--quick] [--section NAME ...] [--seed 0] [--unguarded] [--show 3]

Every rejected text is marked with a letter that stands nowhere else, so that a leak is found by
looking for it in all that a client gets (`truth`). Each section runs in a process of its own, and
prints a line for each kind of attack: what, how many, leaks / wrong / hung, seconds. `--unguarded`
takes the guard away: an attack that finds no letter then proves nothing. Ends with exit code 1 when
anything leaked, was wrong or hung. What is promised, and what was found: docs/security.md.
"""

from __future__ import annotations

import argparse
import sys

from .sections import CONTROLS, SECTIONS, apart


def main() -> int:
    """Attack, print, judge."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="some seconds a section")
    parser.add_argument("--section", choices=SECTIONS, action="append", help="only these")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--unguarded", action="store_true", help="the control: without the guard")
    parser.add_argument("--show", type=int, default=3, help="kinds of findings, of each line")
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
