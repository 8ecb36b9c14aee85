"""Wait for work that has no time limit of its own only while its scope has time left."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import TimeoutError as FutureTimeout
from typing import TypeVar

from demur.runtime.pool import begun
from demur.runtime.scope import remaining_seconds

T = TypeVar("T")

GRACE = 0.25
"""The seconds that work may take beyond its limit, to finish or to save its result.

Local work gets them once. The evaluator around it gets them twice, so it can still report what it
found and what it spent.
"""


def in_time(call: Callable[[], T], beyond: float) -> T:
    """Make a blocking call, and wait for it no longer than the scope allows.

    The call is made in this thread if nothing limits its time.

    Args:
        call: The work. If it takes too long, it is left running in its thread.
        beyond: The seconds that it may take beyond what the scope has left.

    Raises:
        TimeoutError: The call takes longer.
    """
    left = remaining_seconds()
    if left is None:
        return call()
    future = begun(call)
    try:
        return future.result(left + beyond)
    except FutureTimeout:
        if future.done():
            return future.result()  # the call raised the timeout itself, or ended just in time
        raise TimeoutError(_late(left + beyond)) from None


async def ain_time(call: Callable[[], Awaitable[T]], beyond: float) -> T:
    """Do the same as `in_time` in the running loop.

    A task that does not end when it is cancelled is left running.
    """
    left = remaining_seconds()
    if left is None:
        return await call()
    task = asyncio.ensure_future(call())
    task.add_done_callback(hear)
    try:
        await asyncio.wait([task], timeout=left + beyond)
        if task.done():
            return await task
        raise TimeoutError(_late(left + beyond))
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait([task], timeout=GRACE)


def hear(task: asyncio.Future[T]) -> None:
    """Retrieve the error of a task that nobody waits for, so that asyncio does not log it."""
    if not task.cancelled():
        task.exception()


def _late(seconds: float) -> str:
    return f"it did not end within {seconds:.3g} s"
