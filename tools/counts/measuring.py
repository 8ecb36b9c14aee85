"""One workload, run and counted."""

from __future__ import annotations

import asyncio
import gc
import sys
import tracemalloc
from array import array
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any

import demur

from .seen import Counts, Seen
from .workloads import WORKLOADS, Run

_OURS = str(Path(demur.__file__).parent)
_KB = 1000
_RUNS = 2
"""Runs that count. What other threads allocate meanwhile only adds, so the least is taken."""


def measured(name: str) -> Counts:
    """Return what a workload asks for, and what it allocates.

    Raises:
        ValueError: It asks for something else each time.
    """
    asyncio.run(WORKLOADS[name](Seen())())  # imports what is imported late, and fills caches
    runs = [_run(name) for _ in range(_RUNS)]
    least = min(run.allocated for run in runs)
    first, *others = (replace(run, allocated=least) for run in runs)
    if any(other != first for other in others):
        raise ValueError(f"{name}: expected the same counts of each run, got {runs}")
    return first


def _run(name: str) -> Counts:
    seen = Seen()
    run = WORKLOADS[name](seen)
    seen.counts = Counts()  # not what was asked for beforehand
    allocated = asyncio.run(_allocated(run))
    return replace(seen.counts, allocated=round(allocated / _KB))


async def _allocated(run: Run) -> int:
    """Run it, and return how many bytes the lines of demur allocate, all together.

    CPython does not count what was ever allocated. So what is in use is looked at after each line
    of demur, and what it grew by is added up: what a line frees again by itself is not seen, and
    what it calls outside of demur counts for it. Only the event loop's thread is looked at.
    """
    cell = array("q", [0, 0])  # the sum, and what was in use after the last line

    def after_line(frame: FrameType, event: str, argument: object) -> Any:
        now, _ = tracemalloc.get_traced_memory()
        if now > cell[1]:
            cell[0] += now - cell[1]
        cell[1] = now
        return after_line

    def on_call(frame: FrameType, event: str, argument: object) -> Any:
        if frame.f_code.co_filename.startswith(_OURS):
            return after_line(frame, event, argument)
        return None

    gc.collect()
    gc.freeze()  # else each collection would look at all that was ever imported
    gc.disable()  # what a collection frees would hide what a line allocates
    tracemalloc.start()
    sys.settrace(on_call)
    try:
        await run()
    finally:
        sys.settrace(None)
        tracemalloc.stop()
        gc.enable()
    return cell[0]
