"""Do what must happen when the process ends, and say that it is ending."""

from __future__ import annotations

import atexit
import math
import threading
import time
from collections.abc import Callable

from demur._system.forks import in_child

_endings: list[Callable[[], object]] = []
_ended_at = -math.inf
"""When the work for the end was done, in seconds; infinite while it is being done."""
_GRACE = 1.0


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


def _forked() -> None:
    global _ended_at
    _ended_at = -math.inf


in_child(_forked)


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
