"""Work that knows no time limit, waited for no longer than its scope has time left."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from functools import partial
from typing import TypeVar

from demur.runtime.pool import in_background, settle
from demur.runtime.scope import remaining_seconds

T = TypeVar("T")

GRACE = 0.25
"""Seconds that work may take beyond its limit, to put together or write down what it has. Local
work gets them once. The evaluator around it gets them twice, and so can still tell what it found
and what it spent."""


def in_time(call: Callable[[], T], beyond: float = 0.0) -> T:
    """Make a blocking call; in this thread, where nothing limits its time.

    Args:
        call: It is left to its thread when it takes too long.
        beyond: Seconds beyond what the scope has left.

    Raises:
        TimeoutError: It takes longer.
    """
    left = remaining_seconds()
    if left is None:
        return call()
    future: Future[T] = Future()
    in_background(partial(settle, future, call))
    try:
        return future.result(left + beyond)
    except FutureTimeout:
        if future.done():
            return future.result()  # it is the call's own, or just in time
        raise TimeoutError(_late(left + beyond)) from None


async def ain_time(call: Callable[[], Awaitable[T]], beyond: float = 0.0) -> T:
    """As `in_time`, in the running loop. A task that does not end when it is cancelled is left."""
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
    """Ask for an error that nobody waits for any more, lest asyncio log it."""
    if not task.cancelled():
        task.exception()


def _late(seconds: float) -> str:
    return f"it did not end within {seconds:.3g} s"
