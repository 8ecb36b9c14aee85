"""What holds for demur's own tests holds here: drawn examples, and nothing leaves the machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from support import profiles
from support.offline import offline

__all__ = ["offline", "profiles"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The laboratory is left to `make slow`: the quick tests are of demur itself."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.slow)
