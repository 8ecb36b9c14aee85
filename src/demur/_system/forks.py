"""Reset what a forked process must not inherit, because the parent's threads do not exist there.

A lock that such a thread held would stay locked for ever, and waiting for such a thread would never
end. What must happen when a process ends is here too.
"""

from __future__ import annotations

import atexit
import math
import os
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

T = TypeVar("T")

_renewed: WeakKeyDictionary[Any, Callable[[Any], object]] = WeakKeyDictionary()


def in_child(work: Callable[[], object]) -> None:
    """Run `work` first in every process that is forked from this one."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=work)


def renewed(thing: T, renew: Callable[[T], object]) -> T:
    """Return `thing`, and run `renew(thing)` in each process that is forked while it exists."""
    _renewed[thing] = renew
    return thing


def lock() -> threading.Lock:
    """Return a lock that is free in a forked process, even if a thread of the parent held it."""
    # The standard library resets its own locks in the same way.
    return renewed(threading.Lock(), lambda one: one._at_fork_reinit())  # type: ignore[attr-defined]


def leave(thing: object) -> None:
    """Never destroy an object, not even at the interpreter's end.

    The object belongs to the parent. Destroying it could wait for threads that do not exist here,
    or release locks that the parent still needs.
    """
    import ctypes

    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))


def at_the_end(work: Callable[[], object]) -> None:
    """Run `work` when the process ends, after all that demur's rooms registered with `atexit`.

    What was registered before demur was imported runs later still.
    """
    _endings.append(work)


def is_ending() -> bool:
    """Return whether this thread must not begin what it could not finish, as the process ends.

    It should wait, so that it ends without a message. If the process is still there a second after
    the work for its end was done, somebody else's work for the end may need this thread.
    """
    main = threading.current_thread() is threading.main_thread()
    return not main and time.monotonic() < _ended_at + _GRACE


def end_abruptly() -> None:
    """Make this process end without running the destructors of C and C++; its exit code stays.

    The destructors of some libraries wait for threads that do not exist here. Python's own
    shutdown, with `atexit` and the flush of files, still runs before.
    """
    import ctypes

    libc = ctypes.CDLL(None)
    if hasattr(libc, "on_exit"):
        libc.on_exit(libc._exit, None)  # called with the exit status


def _renew() -> None:
    global _ended_at
    _ended_at = -math.inf
    for thing, renew in [*_renewed.items()]:
        renew(thing)


in_child(_renew)

_endings: list[Callable[[], object]] = []
_ended_at = -math.inf
"""When the work for the end was done, in seconds; infinite while it is being done."""
_GRACE = 1.0


# What is registered first runs last, and the rooms load this module before they register anything.
@atexit.register
def _end() -> None:
    global _ended_at
    _ended_at = math.inf
    try:
        for work in _endings:
            work()
    except (KeyboardInterrupt, SystemExit):  # the user does not want to wait
        pass
    finally:
        _ended_at = time.monotonic()
