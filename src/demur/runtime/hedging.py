"""Make a request a second time if no reply has come for a while, and take the first reply.

The other request is not waited for. In an event loop it is cancelled. In threads it is left to its
client.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from queue import Empty, SimpleQueue
from typing import TypeVar

from demur.runtime.in_time import hear
from demur.runtime.pool import begun

T = TypeVar("T")


def hedged(
    call: Callable[[], T],
    timeout: float,
    after: float,
    second: Callable[[], AbstractContextManager[bool]],
) -> T:
    """Make a blocking call, and make it once more if it has not ended after `after` seconds.

    Args:
        call: The request.
        timeout: The seconds after which both requests are given up.
        after: The seconds until the second request is made.
        second: Returns a context manager that is held while the second request is under way. It
            yields whether that request may be made.

    Returns:
        The first result. Once the second request is made, an error counts only if both requests
        end with one.

    Raises:
        concurrent.futures.TimeoutError: Neither request ended within `timeout` seconds.
        Exception: The error of the request that ended last.
    """
    ready: SimpleQueue[Future[T]] = SimpleQueue()
    until = time.monotonic() + timeout

    def begin() -> None:
        begun(call).add_done_callback(ready.put)

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
    """Do the same as `hedged` in the running loop, and leave no request under way.

    Raises:
        asyncio.TimeoutError: Neither request ended within `timeout` seconds.
        Exception: The error of the request that ended last.
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
    """Return the first result or raise the last error, and remove ended tasks from `under_way`."""
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
