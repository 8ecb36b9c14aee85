"""Take requests on standard input, have them scored, and measure the process, for the adapters.

This module runs in each peer's environment, with only the standard library. A request is a line of
JSON, `{"samples": [...], "at_once": 16, "patience": 120}`. The reply is a line with the results and
what they took. Samples that are not done after `patience` seconds are lost.
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
    """Hold an answer to score."""

    question: str
    answer: str
    contexts: list[str]


class LostError(Exception):
    """Say that a call for many answers has failed as a whole: none of them has a result."""


class OutOfTimeError(KeyboardInterrupt):
    """Say that the time is up.

    It is a KeyboardInterrupt, so that no peer takes it for a failed request, and an event loop
    stops for it.
    """


Score = Callable[[list[Sample], int], "list[Any]"]
"""A function from all samples, and the number at a time, to a result for each. A result is a
score in [0, 1]; the exception that says why there is none; or None or NaN if the peer does not
say why."""


def serve(prepare: Callable[..., Score]) -> None:
    """Answer every line of standard input until it ends.

    Args:
        prepare: A function that imports the peer and returns the `Score`. It is called with the
            arguments of the command.
    """
    # A peer's own output must not mix with the lines of JSON.
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
    """Score `size` samples at a time, for a peer that has no other limit.

    A call that fails loses its chunk.
    """
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
    """Return the CPU seconds of this process, and of its child processes that have ended."""
    spent = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in spent)


def _peak_mib() -> float:
    """Return the peak memory of this process, in MiB.

    `ru_maxrss` is not used if possible, because it begins with the memory that the process had
    before `exec`.
    """
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
