"""Wait for events, never for times: no test may depend on how fast a machine is."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable

PATIENCE = 60.0
"""The number of seconds that a test waits for something before it fails; no less than the limit of
slow tests, because what is held has to stay while a slow machine does the rest."""

NEVER = threading.Event()
"""An event that nobody sets: a reply that is held until then does not come."""


def wait(event: threading.Event) -> None:
    """Wait until the event is set."""
    if not event.wait(PATIENCE):
        raise TimeoutError("it did not come")


def until(holds: Callable[[], object]) -> None:
    """Wait until `holds` returns something true."""
    patience = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < patience, "it did not come to that"
        time.sleep(0.001)


async def await_(event: threading.Event) -> None:
    """Wait until the event is set, and let the loop go on."""
    await auntil(event.is_set)


async def auntil(holds: Callable[[], object]) -> None:
    """Wait until `holds` returns something true, and let the loop go on."""
    patience = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < patience, "it did not come to that"
        await asyncio.sleep(0.001)
