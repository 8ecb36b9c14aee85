"""Provide one function that makes calls by each of the two drivers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from demur.runtime import CallPolicy, Outcome, adrive, drive
from support.calls import Run, steps


@pytest.fixture(params=["sync", "async"])
def run(request: pytest.FixtureRequest) -> Iterator[Run]:
    """Return a function that makes calls, in threads or in an event loop that keeps no task."""
    loop = asyncio.new_event_loop()

    def made(
        *calls: Any, policy: CallPolicy | None = None, config: Any = None
    ) -> Sequence[Outcome[Any]]:
        if request.param == "sync":
            return drive(steps(*calls), config or {}, policy)[0]
        found = loop.run_until_complete(adrive(steps(*calls), config or {}, policy))[0]
        assert asyncio.all_tasks(loop) == set()
        return found

    yield made
    loop.close()
