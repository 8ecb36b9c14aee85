"""An advisory lock on an open file or folder, between threads and processes."""

from __future__ import annotations

import contextlib
import errno
import time
from collections.abc import Iterator

_now = time.monotonic
_SECONDS = 10.0


@contextlib.contextmanager
def locked(file: int) -> Iterator[None]:
    """Hold the lock (`flock`) of what the descriptor `file` was opened for. None on Windows.

    It is asked for again and again: a process that is stopped while it has the lock must not stop
    all others.

    Raises:
        TimeoutError: Others had it for ten seconds.
        OSError: There are no locks on that file system.
    """
    try:
        import fcntl
    except ImportError:
        yield
        return
    until, pause = _now() + _SECONDS, 0.0005
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError:
            if _now() > until:
                raise TimeoutError(
                    errno.ETIMEDOUT, f"another process has locked it for {_SECONDS:g} seconds"
                ) from None
        time.sleep(pause)
        pause = min(2 * pause, 0.02)
    try:
        yield
    finally:
        fcntl.flock(file, fcntl.LOCK_UN)
