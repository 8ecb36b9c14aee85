"""Threads for blocking calls: used again, left behind when time is up, never in an exit's way."""

from __future__ import annotations

import contextvars
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from functools import partial
from itertools import islice
from queue import Empty, SimpleQueue
from typing import Any, TypeAlias, TypeVar

from demur._forks import in_child

T = TypeVar("T")
R = TypeVar("R")

_IDLE_SECONDS = 10.0
_HEARD_SECONDS = 0.5

_Inbox: TypeAlias = "SimpleQueue[Callable[[], None]]"
_idle: deque[_Inbox] = deque()
# Where threads wait for work. The last to come is the first to be chosen, so that those that are
# not needed wait long enough to end.
in_child(_idle.clear)  # a child process has none of the threads


def within(timeout: float, call: Callable[[], T]) -> T:
    """Run a blocking call, but wait `timeout` seconds at most.

    A blocking call cannot be stopped from outside: it has a thread of its own, and is left behind
    there until its client gives up.
    """
    future: Future[T] = Future()
    in_background(partial(settle, future, call))
    return future.result(timeout)


def settle(future: Future[Any], call: Callable[[], Any]) -> None:
    """Make a call, and put what comes of it, an exception too, into the future."""
    try:
        future.set_result(call())
    except BaseException as error:
        future.set_exception(error)


def in_background(work: Callable[[], None]) -> None:
    """Run `work` in a thread that does not keep the interpreter from ending, as a pool's would.

    The thread sees the caller's context variables in a copy of its own, since a context can be
    entered by one thread at a time. Threads are used again: to start one for each call would take
    more CPU than all else around the call.
    """
    try:
        inbox = _idle.pop()
    except IndexError:
        inbox = SimpleQueue()
        threading.Thread(target=_serve, args=(inbox,), daemon=True, name="demur-call").start()
    inbox.put(partial(contextvars.copy_context().run, work))


def as_completed(work: Callable[[T], R], items: Iterable[T], at_once: int) -> Iterator[R]:
    """What `work` makes of each item, in the order in which that is ready.

    Items are taken as there is room for them. When the caller stops to listen, nothing further is
    begun, and nothing is waited for. An exception of `work` is raised here.
    """
    ready: SimpleQueue[Future[R]] = SimpleQueue()

    def begin(item: T) -> None:
        future: Future[R] = Future()
        future.add_done_callback(ready.put)
        in_background(partial(settle, future, partial(work, item)))

    waiting, at_work = iter(items), 0
    while True:
        for item in islice(waiting, at_once - at_work):
            begin(item)
            at_work += 1
        if not at_work:
            return
        future = take(ready)
        at_work -= 1
        yield future.result()


def take(queue: SimpleQueue[T]) -> T:
    """The next item of a queue, once there is one.

    The wait is cut into pieces. The system may hand an interrupt to any thread, and then nothing
    wakes the main one, which alone can act on it.
    """
    while True:
        try:
            return queue.get(timeout=_HEARD_SECONDS)
        except Empty:
            continue


def _serve(inbox: _Inbox) -> None:
    """Do the work that comes, until none has come for a while."""
    while True:
        try:
            work = inbox.get(timeout=_IDLE_SECONDS)
        except Empty:
            try:
                _idle.remove(inbox)
            except ValueError:
                continue  # it was chosen in this moment: work is on its way
            return
        work()
        del work  # and all that it holds
        _idle.append(inbox)
