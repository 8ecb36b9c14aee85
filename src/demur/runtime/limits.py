"""Limit model calls: by slots for each model, and by one call for identical requests in flight."""

from __future__ import annotations

import asyncio
import threading
import time
import weakref
from collections.abc import Awaitable, Callable, Hashable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from langchain_core.language_models import BaseChatModel

from demur._system import in_child, lock
from demur.schema.fingerprints import endpoint_of

T = TypeVar("T")


class PerModel(Generic[T]):
    """Hold values for each model object while it lives, since chat models are not hashable."""

    def __init__(self) -> None:
        self._values: dict[tuple[int, Hashable], tuple[weakref.ref[BaseChatModel], T]] = {}
        self._lock = lock()

    def setdefault(self, model: BaseChatModel, key: Hashable, make: Callable[[], T]) -> T:
        """Return the value kept for `model` under `key`, which is made first if there is none."""
        at = (id(model), key)
        with self._lock:
            if at not in self._values:
                # The callback runs before the id can be given to another object. The reference is
                # kept here, not with the model, so that it is dropped together with the values.
                gone = weakref.ref(model, lambda _: self._values.pop(at, None))
                self._values[at] = (gone, make())
            return self._values[at][1]

    def clear(self) -> None:
        """Remove all values."""
        self._values.clear()


@dataclass
class _Flight:
    task: asyncio.Task[Any]
    waiters: int = 0


@dataclass(frozen=True)
class _Loop:
    """Hold what the tasks of one event loop share."""

    slots: PerModel[asyncio.Semaphore] = field(default_factory=PerModel)
    flights: dict[Hashable, _Flight] = field(default_factory=dict)


_loops: dict[asyncio.AbstractEventLoop, _Loop] = {}


def _running_loop() -> _Loop:
    """Return what the running loop's tasks share, and drop what closed loops have left.

    That would not be freed by itself: a semaphore that was waited for keeps its loop alive.
    """
    running = asyncio.get_running_loop()
    if running not in _loops:
        for loop in tuple(_loops):
            if loop.is_closed():
                _loops.pop(loop, None)
    return _loops.setdefault(running, _Loop())


_thread_slots: PerModel[threading.BoundedSemaphore] = PerModel()


class Slots(Protocol):
    """Represent slots, of which each call in a thread takes one while it runs."""

    def acquire(self, *, timeout: float | None) -> bool:
        """Take a slot, and return whether one was free within `timeout` seconds.

        None: wait without a limit.
        """
        ...

    def release(self) -> None:
        """Give the slot back."""
        ...


def thread_slot(model: BaseChatModel, limit: int) -> Slots:
    """Return the `limit` slots for calls to `model`, which all threads share."""
    own = _thread_slots.setdefault(model, limit, lambda: threading.BoundedSemaphore(limit))
    endpoints = _endpoints
    return own if endpoints.most is None else _Both(own, endpoints.slots(model, endpoints.most))


@dataclass(frozen=True)
class _Both:
    """Combine a model's own slots with those of its endpoint."""

    own: threading.BoundedSemaphore
    shared: threading.BoundedSemaphore

    def acquire(self, *, timeout: float | None) -> bool:
        until = None if timeout is None else time.monotonic() + timeout
        if not self.own.acquire(timeout=timeout):
            return False
        left = None if until is None else max(0.0, until - time.monotonic())
        if self.shared.acquire(timeout=left):
            return True
        self.own.release()
        return False

    def release(self) -> None:
        self.shared.release()
        self.own.release()


@dataclass(frozen=True)
class _Endpoints:
    """Hold how many requests one endpoint may get at a time, whatever policies allow per model."""

    most: int | None = None
    by_address: dict[str, threading.BoundedSemaphore] = field(default_factory=dict)
    of: PerModel[threading.BoundedSemaphore] = field(default_factory=PerModel)

    def slots(self, model: BaseChatModel, most: int) -> threading.BoundedSemaphore:
        """Return the slots that the model shares with all other models at its address."""

        def make() -> threading.BoundedSemaphore:
            made = threading.BoundedSemaphore(most)
            return self.by_address.setdefault(endpoint_of(model), made)

        return self.of.setdefault(model, most, make)


_endpoints = _Endpoints()


def bound_endpoints(most: int) -> None:
    """Let this process's threads have at most `most` requests under way to one endpoint.

    Use it in one of several processes that share an endpoint. All models with the same address
    count together, as do the models of a class that has no address. The policy of each model
    applies, too.

    Args:
        most: The number of requests, at least 1. Requests that are already under way do not count.
    """
    global _endpoints
    _endpoints = _Endpoints(most)


def loop_slot(model: BaseChatModel, limit: int) -> asyncio.Semaphore:
    """Return the `limit` slots for calls to `model`, which all tasks of the running loop share."""
    return _running_loop().slots.setdefault(model, limit, lambda: asyncio.Semaphore(limit))


async def acquired(slot: asyncio.Semaphore, seconds: float | None) -> bool:
    """Take a slot of the running loop, and return whether one was free within `seconds`.

    Args:
        slot: The slots that `loop_slot` returned.
        seconds: How long to wait for a slot, at least 0. None: without a limit.
    """
    if seconds is None or not slot.locked():
        return await slot.acquire()
    try:
        return await asyncio.wait_for(slot.acquire(), seconds)
    except asyncio.TimeoutError:
        return False


class Hedges:
    """Limit how many requests to a model are made twice: one in ten, and ten more at first."""

    def __init__(self) -> None:
        self._left = _MOST_HEDGES
        self._lock = lock()

    def earn(self) -> None:
        """Count a request: ten of them earn one that is made twice."""
        with self._lock:
            self._left = min(_MOST_HEDGES, self._left + _HEDGED)

    def take(self) -> bool:
        """Return whether a request may be made twice, and count it if so."""
        with self._lock:
            if self._left < 1:
                return False
            self._left -= 1
            return True


_MOST_HEDGES, _HEDGED = 10.0, 0.1
_hedges: PerModel[Hedges] = PerModel()


def hedges_of(model: BaseChatModel) -> Hedges:
    """Return the `Hedges` of a model, which all threads and loops share."""
    return _hedges.setdefault(model, "hedges", Hedges)


_thread_flights: dict[Hashable, Future[Any]] = {}
_flights_lock = lock()


def share(key: Hashable, run: Callable[[], T]) -> tuple[T, bool]:
    """Call `run`, or wait for the call that another thread makes under the same key.

    Returns:
        The result, and whether it came from another thread.
    """
    with _flights_lock:
        future = _thread_flights.get(key)
        if future is None:
            own: Future[Any] = Future()
            _thread_flights[key] = own
    if future is not None:
        return future.result(), True
    try:
        result = run()
    except BaseException as error:
        own.set_exception(error)
        raise
    else:
        own.set_result(result)
        return result, False
    finally:
        with _flights_lock:
            _thread_flights.pop(key, None)  # missing in a child process that `run` forked


async def ashare(key: Hashable, run: Callable[[], Awaitable[T]]) -> tuple[T, bool]:
    """Do the same as `share` among the tasks of the running loop.

    The call goes on while any task waits for it. Cancelling the task that began it does not fail
    the others. Cancelling the last task cancels the call.
    """
    flights = _running_loop().flights
    flight = flights.get(key)
    joined = flight is not None
    if flight is None:
        flight = flights[key] = _Flight(asyncio.ensure_future(run()))
    flight.waiters += 1
    try:
        return await asyncio.shield(flight.task), joined
    finally:
        flight.waiters -= 1
        if not flight.waiters:
            if flights.get(key) is flight:
                del flights[key]
            if not flight.task.done():
                # The call must have ended before the cancelled caller goes on.
                flight.task.cancel()
                await asyncio.wait([flight.task])


def _forked() -> None:
    """Free all slots and forget all requests: the parent's requests are not under way here."""
    _loops.clear()
    _thread_slots.clear()
    _thread_flights.clear()


in_child(_forked)
