"""Test warnings that are logged at most once a minute each."""

from __future__ import annotations

import logging
import uuid
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from demur._system import once_a_minute, warn_once_a_minute


class Clock:
    """Represent a clock that a test sets."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(once_a_minute, "time", clock)
    return clock


@pytest.fixture
def logger() -> logging.Logger:
    return logging.getLogger(f"demur.test.{uuid.uuid4().hex}")


def test_a_warning_is_logged_once_a_minute_and_counts_what_it_held_back(
    clock: Clock, logger: logging.Logger, caplog: pytest.LogCaptureFixture
) -> None:
    for second in (0, 1, 30, 59.9):
        clock.now = 1000 + second
        warn_once_a_minute(logger, "judge", "%s failed with %d", "judge", 503)
    assert caplog.messages == ["judge failed with 503"]
    clock.now = 1060
    warn_once_a_minute(logger, "judge", "%s failed with %d", "judge", 500)
    assert caplog.messages[1:] == ["judge failed with 500 (3 more like this one since the last)"]
    clock.now = 1120
    warn_once_a_minute(logger, "judge", "%s failed with %d", "judge", 501)
    assert caplog.messages[2:] == ["judge failed with 501"]
    assert {record.levelno for record in caplog.records} == {logging.WARNING}


def test_each_key_and_each_logger_has_a_minute_of_its_own(
    clock: Clock, logger: logging.Logger, caplog: pytest.LogCaptureFixture
) -> None:
    for key in ("a", "b", "a", "b"):
        warn_once_a_minute(logger, key, "of %s", key)
    other = logger.getChild("other")
    warn_once_a_minute(other, "a", "of another")
    assert caplog.messages == ["of a", "of b", "of another"]


def test_a_bounded_number_of_keys_is_remembered_and_the_oldest_goes_first(
    clock: Clock, logger: logging.Logger, caplog: pytest.LogCaptureFixture
) -> None:
    for at in range(1001):
        warn_once_a_minute(logger, str(at), "key %d", at)
    caplog.clear()
    warn_once_a_minute(logger, "1000", "the newest")
    warn_once_a_minute(logger, "1", "the second")
    assert caplog.messages == []
    warn_once_a_minute(logger, "0", "the first, which is forgotten")
    assert caplog.messages == ["the first, which is forgotten"]


def test_of_many_threads_one_logs_and_all_others_are_counted(
    monkeypatch: pytest.MonkeyPatch, logger: logging.Logger, caplog: pytest.LogCaptureFixture
) -> None:
    now = 0.0
    monkeypatch.setattr(once_a_minute, "time", SimpleNamespace(monotonic=lambda: now))
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: warn_once_a_minute(logger, "a", "message"), range(800)))
    assert caplog.messages == ["message"]
    now = 61.0
    warn_once_a_minute(logger, "a", "message")
    assert caplog.messages[1:] == ["message (799 more like this one since the last)"]
