"""Run the checks of guard conformance.

python -m peers.conformance [--guard NAME ...] [--check NAME ...] [--markdown] [--count 20]
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

from peers import environments
from peers.adapters import AdapterError

from .checks import CHECKS, BlindError, any_hung
from .guards import GUARDS
from .runner import Guard, Running, running
from .server import serving
from .table import markdown

COUNT = 20
"""The number of wrong answers in a leak check, and of right ones. The other checks derive their
numbers from it."""


def measure(guard: Guard, checks: list[str], count: int, log: Path | None) -> dict[str, Any]:
    """Return what the checks find of a guard.

    Args:
        guard: The guard.
        checks: Names of `CHECKS`.
        count: The number of wrong answers, as `COUNT` describes it.
        log: The file for what the adapter writes to standard error.

    Returns:
        What each check found. If checks could not be made, the reason is under "none".
    """
    found: dict[str, Any] = {}
    cannot = _not_applicable(guard)
    found |= {name: {"none": cannot[name]} for name in checks if name in cannot}
    left = [name for name in checks if name not in cannot]
    while left:
        try:
            with serving() as server, running(guard, log) as runs:
                modes = _modes(runs, server.url())
                while left:
                    started = time.perf_counter()
                    found[left[0]] = CHECKS[left[0]](runs, server, modes, count)
                    took = time.perf_counter() - started
                    name = left.pop(0)
                    print(f"{guard.name}: {name}, {took:.0f} s", file=sys.stderr, flush=True)
                    if any_hung(found[name]):
                        break  # a call that hangs would disturb the next check
        except environments.NoEnvironmentError as error:
            return {name: {"none": _last_line(error)} for name in checks}
        except (AdapterError, BlindError) as error:
            # The next check gets a new adapter, because this one may still be busy.
            print(f"{guard.name}: {left[0]}: {error}", file=sys.stderr, flush=True)
            found[left.pop(0)] = {"none": _last_line(error)}
    return found


def _not_applicable(guard: Guard) -> dict[str, str]:
    """Return why some checks mean nothing for a guard, by the checks' names."""
    if guard.judges_itself:
        return {
            "fails": "the judge has no endpoint that could fail",
            "forged": "the judge has no prompt",
        }
    return {} if guard.own_prompt else {"forged": "the prompt is its user's"}


def _last_line(error: Exception) -> str:
    return str(error).strip().splitlines()[-1]


def _modes(guard: Running, url: str) -> tuple[str, ...]:
    return tuple(guard.job(60, url=url, options={"timeout": 60.0}, mode=None)["modes"])


def _versions(guards: list[Guard]) -> str:
    """Return a sentence with the versions that were measured."""
    told = {"demur": "this checkout"}
    for guard in guards:
        if guard.environment is None:
            told |= {f"{name} beside it": version(name) for name in guard.packages}
        else:
            with contextlib.suppress(environments.NoEnvironmentError):
                told |= environments.versions(guard.environment, *guard.packages)
    python = ".".join(map(str, sys.version_info[:3]))
    return ", ".join(f"{name} {number}" for name, number in {**told, "Python": python}.items())


def main() -> None:
    """Run the checks that were asked for, and print what they found."""
    parser = argparse.ArgumentParser(prog="python -m peers.conformance", description=__doc__)
    named = {guard.name: guard for guard in GUARDS}
    parser.add_argument(
        "--guard", action="append", choices=list(named), help="a guard (default: all)"
    )
    parser.add_argument(
        "--check", action="append", choices=list(CHECKS), help="a check (default: all)"
    )
    parser.add_argument("--count", type=int, default=COUNT, help="wrong answers of a leak check")
    parser.add_argument("--markdown", action="store_true", help="print tables instead of JSON")
    parser.add_argument("--jobs", type=int, default=2, help="guards at a time")
    parser.add_argument("--log", type=Path, help="the file for what adapters write to stderr")
    options = parser.parse_args()
    chosen = [named[name] for name in options.guard or named]
    checks = options.check or list(CHECKS)
    with ThreadPoolExecutor(options.jobs) as pool:
        found = pool.map(lambda guard: measure(guard, checks, options.count, options.log), chosen)
        results = {guard.name: one for guard, one in zip(chosen, found, strict=True)}
    if options.markdown:
        print(markdown(chosen, results, _versions(chosen), date.today()))
    else:
        print(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
