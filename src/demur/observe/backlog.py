"""Run jobs in the background, with a bounded queue and a few threads."""

from __future__ import annotations

import contextlib
import contextvars
import math
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Generic, Literal, TypeVar

from demur._system import renewed
from demur.runtime import in_background

Job = TypeVar("Job")
OnFull = Literal["drop", "block"]
"""What a handler does with a run when the queue is full: drop it, or wait until there is room."""

_HEARD_SECONDS = 0.5
"""The longest single wait, in seconds; the main thread notices an interrupt only between two waits
(`runtime/pool.py`)."""
_working: contextvars.ContextVar[bool] = contextvars.ContextVar("working", default=False)
"""Whether the code runs as a job of a backlog, also in threads that the job starts."""


def is_scoring() -> bool:
    """Return whether the calling code runs as a job of a backlog."""
    return _working.get()


class Backlog(Generic[Job]):
    """Queue jobs and run them in background threads. Safe in threads.

    The lock is reentrant, as that of `queue.Queue` is not. Garbage collection can close an
    abandoned stream at any moment, such as during `put`. The stream then reports its end, and
    `put` is called again in the same thread.

    Args:
        work: A function that does a job. It must not raise.
        limit: The largest number of jobs that wait, at least 1.
        on_full: What to do with a job when the queue is full. "drop": it is dropped and counted.
            "block": `put` waits for room.
        at_once: The largest number of jobs that are done at a time, at least 1.
    """

    def __init__(
        self, work: Callable[[Job], None], limit: int, on_full: OnFull, at_once: int
    ) -> None:
        self._work, self._limit = work, limit
        self._blocks, self._at_once = on_full == "block", at_once
        self.dropped = 0
        """The number of jobs not done: the queue was full, or the time to close ran out."""
        self._begin()
        renewed(self, Backlog._begin)  # in a forked process, the jobs belong to the parent

    def _begin(self) -> None:
        self._changed = threading.Condition()
        self._closed = False
        self._count = self._threads = 0
        self._waiting: deque[tuple[int, Job]] = deque()
        self._open: dict[int, None] = {}
        """The numbers of all jobs that wait or are being done, in order."""

    def __len__(self) -> int:
        """Return how many jobs wait."""
        return len(self._waiting)

    def put(self, job: Job) -> None:
        """Queue a job, or drop it."""
        with self._changed:
            # A job that adds a job would wait for itself.
            if self._blocks and not is_scoring():
                self._wait_for(lambda: self._closed or len(self._waiting) < self._limit, None)
            elif not self._blocks and len(self._waiting) >= self._limit:
                self.dropped += 1
                return
            if self._closed:
                self.dropped += 1
                return
            self._count += 1
            self._open[self._count] = None
            self._waiting.append((self._count, job))
        self._start()

    def flush(self, timeout: float | None) -> bool:
        """Wait until all jobs that were queued before are done.

        Returns:
            True if they are done, False if `timeout` seconds were not enough.
        """
        with contextlib.suppress(RuntimeError):  # no new thread can start: the others do the rest
            self._start()
        with self._changed:
            last = self._count
            return self._wait_for(lambda: next(iter(self._open), last + 1) > last, timeout)

    def close(self, timeout: float | None) -> int:
        """Accept no more jobs, finish those in the queue, and drop those not done at the timeout.

        Returns:
            The number of jobs that are not done. They count as dropped.
        """
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self.flush(timeout)
        with self._changed:
            left = len(self._open)
            self.dropped += left
            self._waiting.clear()
            self._open.clear()
            self._changed.notify_all()
        return left

    def _start(self) -> None:
        """Start one more thread, if jobs wait and the number of threads allows it."""
        with self._changed:
            if not self._waiting or self._threads >= self._at_once:
                return
            self._threads += 1
        try:
            # In a new context, so that evaluators do not inherit the chain's callbacks.
            contextvars.Context().run(in_background, self._serve)
        except BaseException:  # the system has too many threads: the next call tries again
            with self._changed:
                self._threads -= 1
            raise

    def _serve(self) -> None:
        _working.set(True)
        while True:
            with self._changed:
                if not self._waiting:
                    self._threads -= 1
                    return
                number, job = self._waiting.popleft()
                self._changed.notify_all()
            self._work(job)
            del job
            with self._changed:
                self._open.pop(number, None)
                self._changed.notify_all()

    def _wait_for(self, is_so: Callable[[], bool], timeout: float | None) -> bool:
        """Wait, with the lock, until `is_so()` is true; return whether it became true."""
        until = math.inf if timeout is None else time.monotonic() + timeout
        while not is_so():
            left = until - time.monotonic()
            if left <= 0:
                return False
            self._changed.wait(min(left, _HEARD_SECONDS))
        return True
