"""The one pool of threads, for all that blocks.

What it promises:

- No thread holds up the interpreter's end. What is under way then is left behind, and so is what
  takes longer than its caller waits: a blocking call cannot be stopped from outside.
- A piece of work runs in a copy of its caller's context variables. The thread itself carries no
  context, and keeps nothing of the work that it did.
- Threads are used again, and end when nobody has needed them for a while. The pool sets no bound:
  who hands in work does, as `as_completed` and the slots of `demur.runtime.limits` do.
- Who waits hears an interrupt. Who stops listening has nothing further begun, and waits for none.
- A forked process has threads of its own.

The workers of `demur.observe` are threads of the pool too, but what they do is finished at the
interpreter's end, by whoever started them.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from itertools import islice
from queue import Empty, SimpleQueue
from typing import TypeAlias, TypeVar

from demur._forks import in_child, lock

T = TypeVar("T")
R = TypeVar("R")

_IDLE_SECONDS = 10.0
_HEARD_SECONDS = 0.5

_Inbox: TypeAlias = "SimpleQueue[Callable[[], None]]"
_idle: deque[_Inbox] = deque()
# Where threads wait for work. The last to come is the first to be chosen, so that those that are
# not needed wait long enough to end.
in_child(_idle.clear)  # a child process has none of the threads


def within(timeout: float | None, call: Callable[[], T]) -> T:
    """Run a blocking call, but wait `timeout` seconds at most; None: to its end.

    Raises:
        concurrent.futures.TimeoutError: It takes longer. Its thread is left to it until its client
            gives up.
    """
    future: Future[T] = Future()
    in_background(partial(settle, future, call))
    return future.result(timeout)


def settle(future: Future[T], call: Callable[[], T]) -> None:
    """Make a call, and put what comes of it, an exception too, into the future."""
    try:
        future.set_result(call())
    except BaseException as error:
        future.set_exception(error)


def in_own_loop(call: Callable[[], Coroutine[object, None, T]]) -> T:
    """Run a coroutine function to its end, in an event loop of demur's own in another thread.

    So it can be called where a loop is running already. It is one loop for all, so that a client
    that was used in it once can be used in it again.
    """
    loop = _own_loop()
    try:
        inside = asyncio.get_running_loop() is loop
    except RuntimeError:
        inside = False
    if not inside:
        return asyncio.run_coroutine_threadsafe(call(), loop).result()
    # What runs in the loop calls something that waits for the loop: it would wait for ever.
    future: Future[T] = Future()
    in_background(partial(settle, future, lambda: asyncio.run(call())))
    return future.result()


_own: list[asyncio.AbstractEventLoop] = []
in_child(_own.clear)
_beginning = lock()


def _own_loop() -> asyncio.AbstractEventLoop:
    with _beginning:
        if not _own:
            loop = asyncio.new_event_loop()
            loop.set_default_executor(_Executor())
            contextvars.Context().run(in_background, loop.run_forever)
            _own.append(loop)
        return _own[0]


class _Executor(ThreadPoolExecutor):
    """Threads of this pool for `asyncio.to_thread`, which still start at the interpreter's end."""

    def submit(  # type: ignore[explicit-any]  # as the base class has it
        self, fn: Callable[..., T], /, *args: object, **kwargs: object
    ) -> Future[T]:
        future: Future[T] = Future()

        def work() -> None:
            if future.set_running_or_notify_cancel():
                settle(future, partial(fn, *args, **kwargs))

        in_background(work)
        return future


def in_background(work: Callable[[], None]) -> None:
    """Run `work` in a thread of the pool. It must not raise.

    The caller's context is copied, since one thread at a time can be in it. Threads are used again:
    to start one for each call would take more CPU than all else around the call.
    """
    try:
        inbox = _idle.pop()
    except IndexError:
        inbox = SimpleQueue()
        thread = threading.Thread(target=_serve, args=(inbox,), daemon=True, name="demur-call")
        # From Python 3.14 on, a thread may begin in a copy of the context in which it is started.
        contextvars.Context().run(thread.start)
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
