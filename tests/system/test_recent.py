"""Test the store that keeps the most recently used items, up to a bound."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from demur._system import Recent, recent


def test_what_was_used_least_lately_goes_first() -> None:
    kept: Recent[str] = Recent(3)
    for key in "abc":
        kept.put(key, key.upper(), 1)
    assert kept.get("a") == {"a": "A"}
    kept.put("d", "D", 1)
    assert kept.get("abcd") == {"a": "A", "c": "C", "d": "D"}


def test_weights_are_summed_and_replaced() -> None:
    kept: Recent[int] = Recent(10)
    kept.put("a", 1, 6)
    kept.put("a", 2, 3)
    kept.put("b", 3, 7)
    assert kept.get("ab") == {"a": 2, "b": 3}
    kept.put("c", 4, 4)
    assert kept.get("abc") == {"c": 4}
    kept.put("d", 5, 11)  # This weight alone exceeds the bound.
    assert kept.get("abcd") == {}


def test_values_end_when_their_time_is_up(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(recent, "time", SimpleNamespace(monotonic=lambda: now))
    kept: Recent[int] = Recent(9, seconds=5)
    kept.put("a", 1, 1)
    now = 104.0
    assert kept.get("a") == {"a": 1}
    kept.put("b", 2, 1)
    now = 106.0
    assert kept.get("ab") == {"b": 2}


def test_threads_do_not_lose_count() -> None:
    kept: Recent[int] = Recent(50)

    def use(thread: int) -> None:
        for at in range(2000):
            kept.put(str((at * thread) % 97), at, 1)
            kept.get([str(at % 97)])

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(use, range(8)))
    assert len(kept.get(str(at) for at in range(97))) == 50
