"""Warnings that a busy process would repeat with every answer, at most once a minute each."""

from __future__ import annotations

import logging
import time
from collections import OrderedDict

from demur._forks import lock

_SECONDS = 60.0
_MOST_KEYS = 1000
"""How many keys are remembered; beyond it those go first whose warning is the oldest."""

_lock = lock()
# By logger and key: when it was last logged, and how often it was held back since.
_logged: OrderedDict[tuple[str, str], tuple[float, int]] = OrderedDict()


def warn(logger: logging.Logger, key: str, message: str, *args: object) -> None:
    """Log a warning, unless this logger logged one under the same key within the last minute.

    The next one that is logged says how many were held back. Safe in threads.

    Args:
        logger: Who logs.
        key: Which warnings count as the same one, such as an evaluator's name.
        message: As `logging` takes it, with "%s" for each of `args`. No text of an answer.
        args: What stands in the message.
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
    # Outside of the lock: a handler may be slow, or warn itself. The record names the caller.
    logger.warning(message, *args, stacklevel=2)
