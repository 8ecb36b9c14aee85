"""Log a warning at most once a minute, where a busy process would repeat it with every answer."""

from __future__ import annotations

import logging
import time
from collections import OrderedDict

from demur._system.forks import lock

_SECONDS = 60.0
_MOST_KEYS = 1000
"""The number of keys that are remembered. Beyond it, the key with the oldest warning is dropped."""

_lock = lock()
# For each logger and key: when it was last logged, and how often it was held back since.
_logged: OrderedDict[tuple[str, str], tuple[float, int]] = OrderedDict()


def warn_once_a_minute(logger: logging.Logger, key: str, message: str, *args: object) -> None:
    """Log a warning, unless this logger logged one with the same key within the last minute.

    The next warning that is logged says how many were held back. The function is thread-safe.

    Args:
        logger: The logger to use.
        key: Warnings with the same key count as the same warning. Use an evaluator's name, for
            example.
        message: The message as `logging` takes it, with "%s" for each of `args`. It must not
            contain text of an answer.
        args: The values for the message.
    """
    now = time.monotonic()
    with _lock:
        last, held_back = _logged.get((logger.name, key), (None, 0))
        if last is not None and now - last < _SECONDS:
            _logged[logger.name, key] = last, held_back + 1
            return
        _logged[logger.name, key] = now, 0
        _logged.move_to_end((logger.name, key))
        while len(_logged) > _MOST_KEYS:
            _logged.popitem(last=False)
    if held_back:
        message += f" ({held_back:,} more like this one since the last)"
    # This is outside of the lock, because a handler may be slow or may warn itself. With
    # `stacklevel`, the record names the caller.
    logger.warning(message, *args, stacklevel=2)
