"""Apply the rule of demur's own tests that nothing leaves the machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.offline import offline

__all__ = ["offline"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave these tests to `make slow`, because the quick tests are of demur itself."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.slow)
