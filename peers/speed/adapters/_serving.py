"""What the adapters share: they are asked on standard input, and measure themselves.

It runs in each peer's environment, with nothing but the standard library. A line of JSON that says
`{"samples": [...], "at_once": 16, "patience": 120}` is answered by one with the results and what
they took. After so many seconds of patience, what is not done is lost.
"""

from __future__ import annotations

import json
import math
import os
import resource
import signal
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple


class Sample(NamedTuple):
    """An answer to score."""

    question: str
    answer: str
    contexts: list[str]


class LostError(Exception):
    """A call for many answers has failed as a whole: none of them has a result."""


class OutOfTimeError(KeyboardInterrupt):
    """The time is up. No peer takes it for a failed request, and an event loop stops for it."""


Score = Callable[[list[Sample], int], "list[Any]"]
"""All samples, so many at a time, to a result for each: a score in [0, 1], the exception that tells
why there is none, or None or NaN if the peer does not say why."""


def serve(prepare: Callable[..., Score]) -> None:
    """Answer every line of standard input until it ends.

    Args:
        prepare: Imports the peer, and gives what scores; called with the arguments of the command.
    """
    # What a peer prints must not come between the lines.
    told = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    began, before = time.perf_counter(), _cpu()
    score = prepare(*sys.argv[1:])
    signal.signal(signal.SIGALRM, _out_of_time)
    _tell(told, import_seconds=time.perf_counter() - began, import_cpu=_cpu() - before)
    for line in sys.stdin:
        task = json.loads(line)
        samples = [Sample(**sample) for sample in task["samples"]]
        began, before = time.perf_counter(), _cpu()
        signal.setitimer(signal.ITIMER_REAL, task["patience"])
        try:
            results = score(samples, task["at_once"])
        except OutOfTimeError:
            results = [_TOO_LATE] * len(samples)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        wall, cpu = time.perf_counter() - began, _cpu() - before
        if len(results) != len(samples):
            raise RuntimeError(f"expected {len(samples)} results, got {len(results)}")
        _tell(
            told,
            results=[_as_json(result) for result in results],
            wall=wall,
            cpu=cpu,
            peak_mib=_peak_mib(),
        )


def by_chunk(samples: Sequence[Sample], size: int, call: Callable[[list[Sample]], Any]) -> list:
    """`size` samples at a time, for what has no other bound; a call that fails loses its chunk."""
    found: list[Any] = []
    for at in range(0, len(samples), size):
        chunk = list(samples[at : at + size])
        try:
            found += call(chunk)
        except Exception as error:
            found += [LostError(f"{type(error).__name__}: {error}")] * len(chunk)
        except OutOfTimeError:
            return found + [_TOO_LATE] * (len(samples) - len(found))
    return found


_TOO_LATE = LostError("not done when the time was up")


def _out_of_time(number: int, frame: object) -> None:
    raise OutOfTimeError


def _as_json(result: Any) -> dict[str, Any]:
    if isinstance(result, LostError):
        return {"lost": str(result)[:300]}
    if isinstance(result, BaseException):
        return {"error": f"{type(result).__name__}: {result}"[:300]}
    if result is None or math.isnan(result):
        return {"error": str(result)}
    return {"score": float(result)}


def _tell(told: Any, **fields: Any) -> None:
    told.write(json.dumps(fields) + "\n")
    told.flush()


def _cpu() -> float:
    """Seconds of CPU of this process and of those that it has started and that have ended."""
    spent = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in spent)


def _peak_mib() -> float:
    """The most memory that this process has had, in MiB.

    Not `ru_maxrss`, which begins with what the process had before it became this one.
    """
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
