"""What the tests of the commands have in common."""

from __future__ import annotations

import pytest

from demur.cli import progress


@pytest.fixture
def told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Progress has its lines in a log from the first second on."""
    monkeypatch.setattr(progress, "QUIET_SECONDS", 0.0)
