"""Hold the fixtures that the tests of the commands share."""

from __future__ import annotations

import functools
from collections.abc import Iterator

import pytest
import typer

from demur.cli import progress

_get_command = functools.cache(typer.main.get_command)


@pytest.fixture(scope="module", autouse=True)
def _built_once() -> Iterator[None]:
    """Build the commands once, because that takes longer than to run most of them."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("typer.main.get_command", _get_command)
        yield


@pytest.fixture
def told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a log show progress from the first second."""
    monkeypatch.setattr(progress, "QUIET_SECONDS", 0.0)
