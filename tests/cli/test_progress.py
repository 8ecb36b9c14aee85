"""Progress in a log: lines now and then, with what was spent and what is left."""

from __future__ import annotations

from typing import Any

import pytest

from demur.cli import progress


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [1000.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


def test_a_line_for_every_tenth(clock: list[float], capsys: Any) -> None:
    with progress.counts() as report:
        for done in range(101):
            clock[0] += 0.1
            report("scoring", f"{done} calls", done, 100)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 11
    assert lines[0] == "scoring, 0 calls: 0 of 100"
    assert lines[5] == "scoring, 50 calls: 50 of 100, about 0:00:05 left"
    assert lines[-1] == "scoring, 100 calls: 100 of 100"


def test_a_line_for_every_minute(clock: list[float], capsys: Any) -> None:
    with progress.counts() as report:
        for done in range(31):
            report("scoring", "1 call", 500 + done, 10_000)
            clock[0] += 10
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1 + 5
    # What earlier runs did says nothing of the speed: 6 in 60 seconds, 9,494 to go.
    assert lines[1] == "scoring, 1 call: 506 of 10,000, about 26:22:20 left"


def test_each_task_has_lines_of_its_own(clock: list[float], capsys: Any) -> None:
    with progress.counts() as report:
        report("asking", "1 call", 1, 1)
        report("scoring", "2 calls", 1, 1)
    assert capsys.readouterr().err.splitlines() == [
        "asking, 1 call: 1 of 1",
        "scoring, 2 calls: 1 of 1",
    ]
