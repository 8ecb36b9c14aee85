"""Run all blocking work in one pool of threads.

The pool promises:

- No thread delays the end of the interpreter. Work that is under way then is left behind. So is
  work that takes longer than its caller waits: a blocking call cannot be stopped from outside.
- Work runs in a copy of its caller's context variables. The thread itself carries no context, and
  keeps nothing of the work that it did.
- Threads are reused, and end when they have been idle for a while. The pool sets no bound. The
  callers do, as in `as_completed` and the slots of `demur.runtime.limits`.
- A caller that waits receives interrupts. When a caller stops listening, no further work begins,
  and none is waited for.
- A forked process has threads of its own.

The workers of `demur.observe` are threads of the pool, too. The code that starts them also finishes
their work at the end of the interpreter.
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

from demur._system import in_child, lock

T = TypeVar("T")
R = TypeVar("R")

_IDLE_SECONDS = 10.0
_HEARD_SECONDS = 0.5

_Inbox: TypeAlias = "SimpleQueue[Callable[[], None]]"
_idle: deque[_Inbox] = deque()
# Idle threads wait for work here. The thread that came last is chosen first, so that surplus
# threads stay idle long enough to end.
in_child(_idle.clear)  # a child process has none of the threads


def within(timeout: float | None, call: Callable[[], T]) -> T:
    """Run a blocking call, but wait at most `timeout` seconds. None: wait until it ends.

    Raises:
        concurrent.futures.TimeoutError: The call takes longer. It keeps its thread until its client
            gives up.
    """
    return begun(call).result(timeout)


def begun(call: Callable[[], T]) -> Future[T]:
    """Make a call in a thread of the pool, and return its future."""
    future: Future[T] = Future()
    in_background(partial(_settle, future, call))
    return future


def _settle(future: Future[T], call: Callable[[], T]) -> None:
    """Make a call, and put its result or its exception into the future."""
    try:
        future.set_result(call())
    except BaseException as error:
        future.set_exception(error)


def in_own_loop(call: Callable[[], Coroutine[object, None, T]]) -> T:
    """Run a coroutine function to its end in demur's own event loop, in another thread.

    You can call it where a loop is already running. All calls share one loop, so a client that was
    used in it once can be used in it again.
    """
    loop = _own_loop()
    try:
        inside = asyncio.get_running_loop() is loop
    except RuntimeError:
        inside = False
    if not inside:
        return asyncio.run_coroutine_threadsafe(call(), loop).result()
    # A caller inside the loop would block the loop that it waits for. It gets a loop of its own.
    return begun(lambda: asyncio.run(call())).result()


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
    """Give `asyncio.to_thread` threads of this pool, which start even at the interpreter's end."""

    def submit(  # type: ignore[explicit-any]  # as the base class has it
        self, fn: Callable[..., T], /, *args: object, **kwargs: object
    ) -> Future[T]:
        future: Future[T] = Future()

        def work() -> None:
            if future.set_running_or_notify_cancel():
                _settle(future, partial(fn, *args, **kwargs))

        in_background(work)
        return future


def in_background(work: Callable[[], None]) -> None:
    """Run `work` in a thread of the pool; `work` must not raise.

    The caller's context is copied, since only one thread at a time can use a context. Threads are
    reused: starting one for each call would take more CPU than everything else around the call.
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
    """Yield what `work` returns for each item, in the order in which the results are ready.

    At most `at_once` items are at work, and the next one is taken when one is done. When the caller
    stops listening, no further work begins, and none is waited for. An exception of `work` is
    raised here.
    """
    ready: SimpleQueue[Future[R]] = SimpleQueue()
    waiting, at_work = iter(items), 0
    while True:
        for item in islice(waiting, at_once - at_work):
            begun(partial(work, item)).add_done_callback(ready.put)
            at_work += 1
        if not at_work:
            return
        future = take(ready)
        at_work -= 1
        yield future.result()


def take(queue: SimpleQueue[T]) -> T:
    """Wait for the next item of a queue, and return it.

    The wait is cut into pieces. The system may deliver an interrupt to any thread. Then nothing
    wakes the main thread, which alone can act on it.
    """
    while True:
        try:
            return queue.get(timeout=_HEARD_SECONDS)
        except Empty:
            continue


def _serve(inbox: _Inbox) -> None:
    """Do the work that comes, and end when none has come for a while."""
    while True:
        try:
            work = inbox.get(timeout=_IDLE_SECONDS)
        except Empty:
            try:
                _idle.remove(inbox)
            except ValueError:
                continue  # this thread was chosen just now, so work is on its way
            return
        work()
        del work  # frees all that the work holds
        _idle.append(inbox)
