"""What was used last, kept in memory within a bound."""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Iterable
from typing import Generic, TypeVar

from demur._forks import lock

T = TypeVar("T")


class Recent(Generic[T]):
    """Values by key, of which those go first that were used least lately. Safe in threads."""

    def __init__(self, limit: int, seconds: float = math.inf) -> None:
        """Keep values of a total weight up to `limit`, each for `seconds` after it was put."""
        self._limit, self._seconds = limit, seconds
        self._kept: OrderedDict[str, tuple[T, int, float]] = OrderedDict()
        self._weight = 0
        self._lock = lock()

    def get(self, keys: Iterable[str]) -> dict[str, T]:
        """Those of the keys that are kept, with their values."""
        found = {}
        now = time.monotonic()
        with self._lock:
            for key in keys:
                if key in self._kept and now - self._kept[key][2] < self._seconds:
                    self._kept.move_to_end(key)
                    found[key] = self._kept[key][0]
        return found

    def put(self, key: str, value: T, weight: int) -> None:
        """Keep a value, in the place of one that is kept."""
        with self._lock:
            if key in self._kept:
                self._weight -= self._kept.pop(key)[1]
            self._kept[key] = value, weight, time.monotonic()
            self._weight += weight
            while self._weight > self._limit:
                self._weight -= self._kept.popitem(last=False)[1][1]
