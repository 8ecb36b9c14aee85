"""Run one workload, and count what it asks for."""

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
"""The number of runs that count. Other threads can only add to what is allocated, so the smallest
figure is taken."""


def measured(name: str) -> Counts:
    """Return what a workload asks for, and what it allocates.

    Raises:
        ValueError: The runs of the workload ask for different things.
    """
    asyncio.run(WORKLOADS[name](Seen())())  # does late imports, and fills caches
    runs = [_run(name) for _ in range(_RUNS)]
    least = min(run.allocated for run in runs)
    first, *others = (replace(run, allocated=least) for run in runs)
    if any(other != first for other in others):
        raise ValueError(f"{name}: expected the same counts of each run, got {runs}")
    return first


def _run(name: str) -> Counts:
    seen = Seen()
    run = WORKLOADS[name](seen)
    seen.counts = Counts()  # the preparation does not count
    allocated = asyncio.run(_allocated(run))
    return replace(seen.counts, allocated=round(allocated / _KB))


async def _allocated(run: Run) -> int:
    """Run a workload, and return how many bytes the lines of demur allocate in all.

    CPython does not count what was ever allocated. After each line of demur, the memory in use is
    therefore read, and its growth is added up. Memory that a line frees again itself is not seen.
    Memory that code outside of demur allocates counts for the line that called it. Only the event
    loop's thread is measured.
    """
    cell = array("q", [0, 0])  # the sum, and the memory in use after the last line

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
    gc.freeze()  # otherwise, each collection would visit everything that was ever imported
    gc.disable()  # memory that a collection frees would hide what a line allocates
    tracemalloc.start()
    sys.settrace(on_call)
    try:
        await run()
    finally:
        sys.settrace(None)
        tracemalloc.stop()
        gc.enable()
    return cell[0]
