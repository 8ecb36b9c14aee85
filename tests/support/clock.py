"""Provide a clock that only a test moves, for the time limits of guarded calls."""

from __future__ import annotations

import pytest


class Clock:
    """Stand still, or go on as far as a test says.

    Time limits of budgets and scopes are read from it. Waiting itself takes real time.
    """

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, module: str = "demur.runtime.scope"
    ) -> None:
        self.now = 1_000.0
        monkeypatch.setattr(f"{module}.time", self)

    def monotonic(self) -> float:
        """Return the time in seconds."""
        return self.now

    def go_on(self, seconds: float) -> None:
        """Let so many seconds pass."""
        self.now += seconds
