"""Test progress in a log: a line now and then, with the costs and the time left."""

from __future__ import annotations

from typing import Any

import pytest

from demur.cli import progress


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [1000.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


def test_a_line_for_every_tenth_after_some_quiet_seconds(clock: list[float], capsys: Any) -> None:
    with progress.counts() as report:
        for done in range(101):
            report("scoring", f"{done} calls", done, 100)
            clock[0] += 0.2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 9
    assert lines[0] == "scoring, 25 calls: 25 of 100, about 0:00:15 left"
    assert lines[3] == "scoring, 50 calls: 50 of 100, about 0:00:10 left"
    assert lines[-1] == "scoring, 100 calls: 100 of 100"


def test_a_line_for_every_minute(clock: list[float], capsys: Any) -> None:
    with progress.counts() as report:
        for done in range(31):
            report("scoring", "1 call", 500 + done, 10_000)
            clock[0] += 10
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 5
    # Earlier runs do not count for the speed: 7 were done in 70 seconds, and 9,493 are left.
    assert lines[1] == "scoring, 1 call: 507 of 10,000, about 26:22:10 left"


def test_each_task_has_lines_of_its_own(clock: list[float], capsys: Any) -> None:
    with progress.counts() as report:
        for task, note in (("asking", "1 call"), ("scoring", "2 calls")):
            report(task, note, 0, 1)
            clock[0] += progress.QUIET_SECONDS
            report(task, note, 1, 1)
    assert capsys.readouterr().err.splitlines() == [
        "asking, 1 call: 1 of 1",
        "scoring, 2 calls: 1 of 1",
    ]
