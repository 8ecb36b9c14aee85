"""What a process that was forked must not take over: the parent's threads are not there.

A lock that one of them held stays locked for ever, and what waits for one of them never ends.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

T = TypeVar("T")

_renewed: WeakKeyDictionary[Any, Callable[[Any], object]] = WeakKeyDictionary()


def in_child(work: Callable[[], object]) -> None:
    """Have `work` done in every process that is forked from this one, before all else there."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=work)


def renewed(thing: T, renew: Callable[[T], object]) -> T:
    """Have `renew(thing)` done in every process that is forked while there is the thing."""
    _renewed[thing] = renew
    return thing


def lock() -> threading.Lock:
    """A lock that is free in a process that was forked, whoever held it in the parent."""
    # What the standard library does with its own.
    return renewed(threading.Lock(), lambda one: one._at_fork_reinit())  # type: ignore[attr-defined]


def leave(thing: object) -> None:
    """Never destroy an object, also not at the interpreter's end.

    It is the parent's: to destroy it could wait for threads that are not there, or give back locks
    that the parent still needs.
    """
    import ctypes

    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))


def end_abruptly() -> None:
    """Have this process end with its exit code, and without the destructors of C and C++.

    Those of some libraries wait for threads that are not there. Python's own end, with `atexit`
    and the flush of its files, comes before.
    """
    import ctypes

    libc = ctypes.CDLL(None)
    if hasattr(libc, "on_exit"):
        libc.on_exit(libc._exit, None)  # called with the exit status


def _renew() -> None:
    for thing, renew in [*_renewed.items()]:
        renew(thing)


in_child(_renew)
