"""Apply the rules of demur's own tests: drawn examples, and nothing leaves the machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from support import profiles
from support.offline import offline

__all__ = ["offline", "profiles"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave these tests to `make slow`, because the quick tests are of demur itself."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.slow)
