"""One workload, run and counted."""

from __future__ import annotations

import asyncio
import gc
import sys
import tracemalloc
from array import array
from collections.abc import Iterable
from pathlib import Path
from types import FrameType
from typing import Any

import demur

from .seen import Counts, Seen
from .workloads import WORKLOADS, Run

_OURS = str(Path(demur.__file__).parent)
_WARM_UP = 2
"""Runs before the one that counts: they import what is imported late, and fill caches."""
_KB = 1000


def measured(names: Iterable[str]) -> dict[str, Counts]:
    """Return what each workload asks for, and what it allocates."""
    _measured("guard passes")  # what the first run allocates for the process is no workload's
    return {name: _measured(name) for name in names}


def _measured(name: str) -> Counts:
    for _ in range(_WARM_UP):
        asyncio.run(WORKLOADS[name](Seen())())
    seen = Seen()
    run = WORKLOADS[name](seen)
    seen.counts = Counts()  # not what was asked for beforehand
    seen.counts.allocated = round(asyncio.run(_allocated(run)) / _KB)
    return seen.counts


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
