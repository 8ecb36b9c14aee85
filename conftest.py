"""Apply the rules of all tests: nothing leaves the machine; slow folders are marked."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import strategies as st

from support import profiles
from support.chroma_server import chroma
from support.offline import offline
from support.postgres_server import postgres

__all__ = ["chroma", "offline", "postgres", "profiles"]

ROOT = Path(__file__).parent
SLOW = ("integrations/llama-index", "integrations/ray", "research")
"""The folders whose tests are slow, because collecting them already imports much."""
SERVERS = ("cluster", "chromium", "postgres", "chroma")
"""The fixtures that start a server. Tests that use it run in one process, which starts one."""


@pytest.hookimpl(trylast=True)  # after Hypothesis is ready, before pytest-xdist starts processes
def pytest_sessionstart() -> None:
    """Tabulate Unicode, which takes Hypothesis seconds once on a machine and is no test's time."""
    st.text().validate()


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist looks for groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark slow folders, group by servers, keep tests on the real model in place."""
    for item in items:
        if item.path.is_relative_to(ROOT) and _folder(item.path).startswith(SLOW):
            item.add_marker(pytest.mark.slow)
        used = [name for name in SERVERS if name in getattr(item, "fixturenames", ())]
        if used:
            item.add_marker(pytest.mark.xdist_group(used[0]))
        real = item.get_closest_marker("real") and not item.get_closest_marker("packaging")
        if real and item.path.parent.name != "real" and item.path.name != "test_real.py":
            # The Makefile looks for them there, and runs them alone.
            raise pytest.UsageError(f"{item.nodeid} is real: move it to tests/real")


def _folder(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()
