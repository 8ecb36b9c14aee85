"""Keep the values that were used last in memory, up to a bound."""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Iterable
from typing import Generic, TypeVar

from demur._system.forks import lock

T = TypeVar("T")


class Recent(Generic[T]):
    """Keep values by key, and drop the least recently used ones first. The class is thread-safe."""

    def __init__(self, limit: int, seconds: float = math.inf) -> None:
        """Keep values up to the total weight `limit`, each for `seconds` after it was put."""
        self._limit, self._seconds = limit, seconds
        self._kept: OrderedDict[str, tuple[T, int, float]] = OrderedDict()
        self._weight = 0
        self._lock = lock()

    def get(self, keys: Iterable[str]) -> dict[str, T]:
        """Return the values that are kept for these keys, by key."""
        found = {}
        now = time.monotonic()
        with self._lock:
            for key in keys:
                if key in self._kept and now - self._kept[key][2] < self._seconds:
                    self._kept.move_to_end(key)
                    found[key] = self._kept[key][0]
        return found

    def put(self, key: str, value: T, weight: int) -> None:
        """Keep a value, and replace the value that the key had."""
        with self._lock:
            if key in self._kept:
                self._weight -= self._kept.pop(key)[1]
            self._kept[key] = value, weight, time.monotonic()
            self._weight += weight
            while self._weight > self._limit:
                self._weight -= self._kept.popitem(last=False)[1][1]
