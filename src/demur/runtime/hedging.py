"""A request that is made a second time when no reply has come for a while: the first one counts.

The other is not waited for. In an event loop it is cancelled; in threads it is left to its client.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from functools import partial
from queue import Empty, SimpleQueue
from typing import TypeVar

from demur.runtime.in_time import hear
from demur.runtime.pool import in_background, settle

T = TypeVar("T")


def hedged(
    call: Callable[[], T],
    timeout: float,
    after: float,
    second: Callable[[], AbstractContextManager[bool]],
) -> T:
    """Make a blocking call, and the same once more if it has not ended after a while.

    Args:
        call: The request.
        timeout: Seconds for both together.
        after: Seconds until the second is made.
        second: What the second holds while it is under way; it says whether it may be made.

    Returns:
        What came first. An error counts only if both end with one.

    Raises:
        concurrent.futures.TimeoutError: Neither ended in time.
        Exception: As the last of them raises.
    """
    ready: SimpleQueue[Future[T]] = SimpleQueue()
    until = time.monotonic() + timeout

    def begin() -> None:
        future: Future[T] = Future()
        future.add_done_callback(ready.put)
        in_background(partial(settle, future, call))

    def ended(seconds: float) -> Future[T] | None:
        try:
            return ready.get(timeout=max(0.0, seconds))
        except Empty:
            return None

    begin()
    first = ended(min(after, timeout))
    if first is not None:
        return first.result()
    if after >= timeout:
        raise FutureTimeout
    with second() as may:
        under_way = 1
        if may:
            begin()
            under_way = 2
        while True:
            future = ended(until - time.monotonic())
            if future is None:
                raise FutureTimeout
            under_way -= 1
            if not under_way or not isinstance(future.exception(), Exception):
                return future.result()


async def ahedged(
    call: Callable[[], Awaitable[T]],
    timeout: float,
    after: float,
    second: Callable[[], AbstractAsyncContextManager[bool]],
) -> T:
    """As `hedged`, in the running loop. Neither is left when it returns.

    Raises:
        asyncio.TimeoutError: Neither ended in time.
        Exception: As the last of them raises.
    """
    until = time.monotonic() + timeout
    under_way: set[asyncio.Future[T]] = set()

    def begin() -> None:
        task = asyncio.ensure_future(call())
        task.add_done_callback(hear)
        under_way.add(task)

    begin()
    try:
        await asyncio.wait(under_way, timeout=min(after, timeout))
        if any(task.done() for task in under_way) or after >= timeout:
            return await _first(under_way, until)
        async with second() as may:
            if may:
                begin()
            return await _first(under_way, until)
    finally:
        for task in under_way:
            task.cancel()
        if under_way:
            await asyncio.wait(under_way)


async def _first(under_way: set[asyncio.Future[T]], until: float) -> T:
    """What ends first without an error, or last with one; those that have ended are taken out."""
    while True:
        left = max(0.0, until - time.monotonic())
        done, _ = await asyncio.wait(under_way, timeout=left, return_when=asyncio.FIRST_COMPLETED)
        if not done:
            raise asyncio.TimeoutError
        under_way -= done
        failed = [task for task in done if task.cancelled() or task.exception() is not None]
        for task in done:
            if task not in failed:
                return task.result()
        if not under_way:
            return failed[-1].result()
