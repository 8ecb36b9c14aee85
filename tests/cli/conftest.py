"""Hold the fixtures that the tests of the commands share."""

from __future__ import annotations

import pytest

from demur.cli import progress


@pytest.fixture
def told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a log show progress from the first second."""
    monkeypatch.setattr(progress, "QUIET_SECONDS", 0.0)
