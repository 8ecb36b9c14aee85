"""Find data that cannot be part of the repository."""

from __future__ import annotations

from pathlib import Path

import pytest

SHARED = Path(__file__).parents[3] / "shared" / "data"


def shared(*names: str) -> Path:
    """Return the path of such a file. Skip the test if the file does not exist."""
    path = SHARED.joinpath(*names)
    if not path.exists():
        pytest.skip(f"not here: {path}")
    return path
