"""Load the fixtures of every test, and check that tests on the real model are in `tests/real`."""

from __future__ import annotations

import pytest

from support import profiles
from support.offline import offline
from support.postgres_server import postgres

__all__ = ["offline", "postgres", "profiles"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Refuse tests on the real model outside `tests/real`, where the Makefile does not run them."""
    real = [item for item in items if item.get_closest_marker("real")]
    for item in real:
        found = item.path.parent.name == "real" or item.path.name == "test_real.py"
        if not found and not item.get_closest_marker("packaging"):
            raise pytest.UsageError(f"{item.nodeid} is real: move it to tests/real")
