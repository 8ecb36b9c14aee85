"""Reset what a forked process must not inherit, because the parent's threads do not exist there.

A lock that such a thread held would stay locked for ever, and waiting for such a thread would never
end.
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


def _renew() -> None:
    for thing, renew in [*_renewed.items()]:
        renew(thing)


in_child(_renew)
