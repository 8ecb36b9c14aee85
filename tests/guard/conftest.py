"""Have tests run in both ways."""

from __future__ import annotations

import pytest


@pytest.fixture(params=["sync", "async"])
def mode(request: pytest.FixtureRequest) -> str:
    """Return how a guard is to be called or read."""
    return str(request.param)
