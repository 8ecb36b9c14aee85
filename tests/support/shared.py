"""The data that cannot be part of the repository."""

from __future__ import annotations

from pathlib import Path

import pytest

SHARED = Path(__file__).parents[3] / "shared" / "data"


def shared(*names: str) -> Path:
    """A file of the data that cannot be part of the repository; without it the test is skipped."""
    path = SHARED.joinpath(*names)
    if not path.exists():
        pytest.skip(f"not here: {path}")
    return path
