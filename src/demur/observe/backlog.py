"""A bounded queue of work, done in the background by threads, or by tasks of the caller's loop.

Work that a loop has begun and does not go on with, since it ended, is done by threads instead.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from functools import partial
from typing import Any, Generic, Literal, TypeVar

from demur.runtime import describe, in_background, settle

Job = TypeVar("Job")
Loop = asyncio.AbstractEventLoop
OnFull = Literal["drop", "block"]

_log = logging.getLogger(__name__)
_HEARD_SECONDS = 0.5
_serving: contextvars.ContextVar[object] = contextvars.ContextVar("serving", default=None)
"""The backlog whose work this is, in the threads too that the work starts."""


def is_serving() -> bool:
    """Whether this is the work of a backlog."""
    return _serving.get() is not None


class Backlog(Generic[Job]):
    """Work that waits or is being done. Safe in threads and in any number of event loops.

    Args:
        work: Does a job in a thread.
        awork: Does what can wait in a loop of a job in a task, and returns the rest of it, which is
            done in a thread and not given up with the loop.
        limit: How many jobs may wait, at least 1.
        on_full: What becomes of a job for which there is no room: "drop", it is counted and gone;
            "block", whoever offers it waits.
        at_once: How many jobs are done at a time, at least 1.
    """

    def __init__(
        self,
        work: Callable[[Job], None],
        awork: Callable[[Job], Coroutine[Any, Any, Callable[[], None]]],
        limit: int,
        on_full: OnFull,
        at_once: int,
    ) -> None:
        self._work, self._awork = work, awork
        self._limit, self._on_full, self._at_once = limit, on_full, at_once
        self.dropped = 0
        """Jobs that were not done: there was no room, or no time at the end."""
        self.reset()

    def reset(self) -> None:
        """Forget all of it, as a process that was forked has to: its threads are not there."""
        # Garbage may be collected at any allocation, and an abandoned stream that is closed then
        # tells of its end: a thread that has the lock may come for it again. Nothing is started
        # with it, since others would wait meanwhile.
        self._lock = threading.RLock()
        self._closed = False
        self._count = 0
        self._waiting: deque[tuple[int, Job]] = deque()
        self._open: dict[int, None] = {}
        """Every job that waits or is being done, by number, in order."""
        self._threads = 0
        self._in_tasks: dict[int, tuple[Job, Loop]] = {}
        self._tasks: dict[object, tuple[Loop, asyncio.Task[None] | None]] = {}
        self._for_room: deque[Future[None]] = deque()
        self._for_end: list[tuple[int, Future[None]]] = []

    def __len__(self) -> int:
        """How many jobs wait."""
        return len(self._waiting)

    # --- Offering ------------------------------------------------------------------------------

    def put(self, job: Job) -> bool:
        """Take in a job for the threads.

        Returns:
            Whether it will be done.
        """
        while True:
            room = self._offer(job, None)
            if isinstance(room, bool):
                return room
            wait(room, None)

    async def aput(self, job: Job, loop: Loop | None) -> bool:
        """As `put`, for tasks of a loop that will go on; None: for the threads."""
        while True:
            room = self._offer(job, loop)
            if isinstance(room, bool):
                return room
            await asyncio.wrap_future(room)

    def _offer(self, job: Job, loop: Loop | None) -> bool | Future[None]:
        """Whether the job is taken in; or what is done when there may be room."""
        room: Future[None] | None = None
        with self._lock:
            full = len(self._waiting) >= self._limit
            if full and self._on_full == "block" and _serving.get() is self:
                full = False  # it would wait for itself
            if self._closed or (full and self._on_full == "drop"):
                self.dropped += 1
                return False
            if full:
                self._for_room.append(room := Future())
            else:
                number = self._count = self._count + 1
                self._open[number] = None
                self._waiting.append((number, job))
            start = self._worker(loop)
        start()
        return room or True

    # --- Doing ---------------------------------------------------------------------------------

    def _worker(self, loop: Loop | None) -> Callable[[], None]:
        """What starts one more worker, if there may be. With the lock; to be called without."""
        if self._threads + len(self._tasks) >= self._at_once:
            self._disown(lambda loop: loop.is_closed())
        # A thread that waits for room may hold up the loop whose tasks are to make it. There is one
        # worker too many then, rather than none.
        stuck = loop is None and bool(self._for_room) and not self._threads
        busy = self._threads + len(self._tasks) >= self._at_once and not stuck
        if busy or not self._waiting:
            return _nothing
        # In a context of its own: the chain's would make the chain's callbacks the evaluators'.
        context = contextvars.Context()
        context.run(_serving.set, self)
        if loop is None:
            self._threads += 1
            return partial(self._start_thread, context)
        self._tasks[worker := object()] = loop, None
        return partial(self._start_task, context, loop, worker)

    def _start_thread(self, context: contextvars.Context) -> None:
        try:
            context.run(in_background, self._serve)
        except BaseException:  # there are too many threads: the next to come tries again
            with self._lock:
                self._threads -= 1
            raise

    def _start_task(self, context: contextvars.Context, loop: Loop, worker: object) -> None:
        task = context.run(loop.create_task, self._aserve(loop, worker))
        # One that is cancelled before it has begun does nothing of what it does at its end.
        task.add_done_callback(lambda _: self._pass_on(worker))
        with self._lock:
            if worker in self._tasks:
                self._tasks[worker] = loop, task  # the loop itself may let go of it

    def _pass_on(self, worker: object) -> None:
        """A task has ended with work left, or with those left who wait for room: others go on."""
        with self._lock:
            if self._tasks.pop(worker, None) is None:
                return
            start = self._worker(None)
            if not self._waiting:
                self._tell_of_room()
        start()

    def _take(self, loop: Loop | None) -> tuple[int, Job] | None:
        """The next job. With the lock."""
        if not self._waiting:
            self._tell_of_room()
            return None
        number, job = self._waiting.popleft()
        if loop is not None:
            self._in_tasks[number] = job, loop
        while self._for_room and not _settle(self._for_room.popleft()):
            pass  # who wanted that room does not wait for it any more
        return number, job

    def _tell_of_room(self) -> None:
        """Tell all who wait for it. With the lock.

        Who was told before may have gone away since, and nobody would tell the others.
        """
        while self._for_room:
            _settle(self._for_room.popleft())

    def _serve(self) -> None:
        while True:
            with self._lock:
                taken = self._take(None)
                if taken is None:
                    self._threads -= 1
                    return
            number, job = taken
            try:
                self._work(job)
            except BaseException as error:  # nobody is there to be told
                _log.error("demur lost a sample: %s", describe(error))
            del job, taken
            self._done(number)

    async def _aserve(self, loop: Loop, worker: object) -> None:
        while True:
            with self._lock:
                taken = self._take(loop)
                if taken is None:
                    self._tasks.pop(worker, None)
                    return
            number, job = taken
            rest = _nothing
            try:
                rest = await self._awork(job)
            except (Exception, SystemExit) as error:  # nobody is there to be told
                _log.error("demur lost a sample: %s", describe(error))
            except BaseException as end:
                with self._lock:
                    self._tasks.pop(worker, None)
                    self._hand_over(number)
                    # Cancelled, as all tasks of a loop that ends. Otherwise it is collected as
                    # garbage, which may come at the interpreter's end: too late for a thread.
                    cancelled = isinstance(end, asyncio.CancelledError)
                    start = self._worker(None) if cancelled else _nothing
                start()
                raise
            del job, taken
            with self._lock:
                # From here on it is not done again, whatever becomes of the loop.
                if self._in_tasks.pop(number, None) is None:
                    self._tasks.pop(worker, None)
                    return  # the job was given to a thread
            try:
                finishing = begin(partial(self._finish, number, rest))
                await asyncio.shield(asyncio.wrap_future(finishing))
            except asyncio.CancelledError:
                self._pass_on(worker)
                raise
            except BaseException:
                with self._lock:
                    self._tasks.pop(worker, None)
                raise

    def _finish(self, number: int, rest: Callable[[], None]) -> None:
        try:
            rest()
        except BaseException as error:  # nobody is there to be told
            _log.error("demur lost a sample: %s", describe(error))
        self._done(number)

    def _done(self, number: int) -> None:
        with self._lock:
            self._open.pop(number, None)
            self._tell_ends()

    def _tell_ends(self) -> None:
        """Tell those for whom all is done. With the lock."""
        oldest = next(iter(self._open), self._count + 1)
        for mark, end in [*self._for_end]:
            if mark < oldest:
                self._for_end.remove((mark, end))
                _settle(end)

    def _hand_over(self, number: int) -> None:
        """A job that a task had begun waits again, before all others. With the lock."""
        begun = self._in_tasks.pop(number, None)
        if begun is not None:
            self._waiting.appendleft((number, begun[0]))

    def _disown(self, gone: Callable[[Loop], bool]) -> None:
        """Let others do what tasks of loops that are gone had begun. With the lock."""
        for worker, (loop, _) in [*self._tasks.items()]:
            if gone(loop):
                self._tasks.pop(worker, None)
        for number, (_, loop) in [*self._in_tasks.items()]:
            if gone(loop):
                self._hand_over(number)

    # --- The end -------------------------------------------------------------------------------

    def flush(self, timeout: float | None = None) -> bool:
        """Wait until all is done that was taken in before.

        Returns:
            Whether it is; False when `timeout` seconds were not enough.
        """
        return wait(self._end(None), timeout)

    async def aflush(self, timeout: float | None = None) -> bool:
        """As `flush`."""
        return await await_for(self._end(asyncio.get_running_loop()), timeout)

    def _end(self, loop: Loop | None) -> Future[None]:
        """What is done when all is that was taken in before."""
        end: Future[None] = Future()
        with self._lock:
            self._disown(lambda loop: not loop.is_running())
            starts = [self._worker(loop) for _ in range(self._at_once)]
            self._for_end = [(mark, end) for mark, end in self._for_end if not end.cancelled()]
            self._for_end.append((self._count, end))
            self._tell_ends()
        for start in starts:
            start()
        return end

    def close(self) -> None:
        """Take in nothing more."""
        with self._lock:
            self._closed = True
            while self._for_room:
                _settle(self._for_room.popleft())

    def give_up(self) -> int:
        """Leave what is not done, what is being done included.

        Returns:
            How many jobs that is.
        """
        with self._lock:
            left = len(self._open)
            self.dropped += left
            for loop, task in self._tasks.values():
                if task is not None and loop.is_running():
                    loop.call_soon_threadsafe(task.cancel)
            self._waiting.clear()
            self._in_tasks.clear()
            self._open.clear()
            self._tell_ends()
        return left


def _nothing() -> None:
    """Start nothing."""


def _settle(future: Future[None]) -> bool:
    """Tell whoever waits for it; whether anyone does."""
    if not future.set_running_or_notify_cancel():
        return False
    future.set_result(None)
    return True


def begin(work: Callable[[], None]) -> Future[None]:
    """Have a sink at work in a thread that can be left behind: it may hang.

    Not in the loop's pool: chains that wait for room may have all of it, and the loop's end waits
    for it.
    """
    future: Future[None] = Future()

    def start() -> None:
        if future.set_running_or_notify_cancel():
            settle(future, work)

    in_background(start)
    return future


def wait(future: Future[None], timeout: float | None) -> bool:
    """Wait for a future, at most so many seconds: whether it is done.

    In pieces, so that an interrupt is heard (see `demur.runtime.pool.take`).
    """
    until = math.inf if timeout is None else time.monotonic() + timeout
    while True:
        left = until - time.monotonic()
        try:
            future.result(max(0.0, min(left, _HEARD_SECONDS)))
        except FutureTimeoutError:
            if left <= _HEARD_SECONDS:
                future.cancel()
                return False
        else:
            return True


async def await_for(future: Future[None], timeout: float | None) -> bool:
    """As `wait`, in the running loop."""
    try:
        await asyncio.wait_for(asyncio.wrap_future(future), timeout)
    except asyncio.TimeoutError:
        return False
    return True
