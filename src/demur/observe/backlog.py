"""A bounded queue of work, done in the background by a few threads."""

from __future__ import annotations

import contextlib
import contextvars
import math
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Generic, Literal, TypeVar

from demur._forks import renewed
from demur.runtime import in_background

Job = TypeVar("Job")
OnFull = Literal["drop", "block"]
"""What a handler does with a run when its queue is full: drop it, or wait until there is room."""

_HEARD_SECONDS = 0.5
"""Waiting is cut into pieces, so that the main thread hears an interrupt (`runtime/pool.py`)."""
_working: contextvars.ContextVar[bool] = contextvars.ContextVar("working", default=False)
"""Whether this is the work of a backlog, in the threads too that the work starts."""


def is_scoring() -> bool:
    """Whether this is the work of a backlog."""
    return _working.get()


class Backlog(Generic[Job]):
    """Jobs that wait or are being done. Safe in threads.

    It is no `queue.Queue`, since its lock has to be one that a thread can take twice. Python may
    collect garbage anywhere, in `put` too, and a stream that nobody read to its end then tells of
    its end, and comes to `put` again.

    Args:
        work: Does a job. It must not raise.
        limit: How many jobs may wait, at least 1.
        on_full: What becomes of a job for which there is no room: "drop", it is counted and gone;
            "block", whoever offers it waits.
        at_once: How many jobs are done at a time, at least 1.
    """

    def __init__(
        self, work: Callable[[Job], None], limit: int, on_full: OnFull, at_once: int
    ) -> None:
        self._work, self._limit = work, limit
        self._blocks, self._at_once = on_full == "block", at_once
        self.dropped = 0
        """Jobs that were not done: there was no room, or no time at the end."""
        self._begin()
        renewed(self, Backlog._begin)  # what is under way belongs to the process that was forked

    def _begin(self) -> None:
        self._changed = threading.Condition()
        self._closed = False
        self._count = self._threads = 0
        self._waiting: deque[tuple[int, Job]] = deque()
        self._open: dict[int, None] = {}
        """Every job that waits or is being done, by number, in order."""

    def __len__(self) -> int:
        """How many jobs wait."""
        return len(self._waiting)

    def put(self, job: Job) -> None:
        """Take in a job, or drop it."""
        with self._changed:
            # Work that makes work would wait for itself.
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
        """Wait until all is done that was taken in before.

        Returns:
            Whether it is; False when `timeout` seconds were not enough.
        """
        with contextlib.suppress(RuntimeError):  # no thread starts: those at work do the rest
            self._start()
        with self._changed:
            last = self._count
            return self._wait_for(lambda: next(iter(self._open), last + 1) > last, timeout)

    def close(self, timeout: float | None) -> int:
        """Take in nothing more, finish what was taken in, and leave what is not done in time.

        Returns:
            How many jobs are left undone; they count as dropped.
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
        """Have one thread more at work, if there is work for it and it may be."""
        with self._changed:
            if not self._waiting or self._threads >= self._at_once:
                return
            self._threads += 1
        try:
            # In a context of its own: the chain's would make the chain's callbacks the evaluators'.
            contextvars.Context().run(in_background, self._serve)
        except BaseException:  # there are too many threads: the next to come tries again
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
        """Wait until it is so, with the lock; whether it is."""
        until = math.inf if timeout is None else time.monotonic() + timeout
        while not is_so():
            left = until - time.monotonic()
            if left <= 0:
                return False
            self._changed.wait(min(left, _HEARD_SECONDS))
        return True
