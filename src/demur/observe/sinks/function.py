"""FunctionSink: records given to a function of the user's."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable

from demur.observe.records import Record
from demur.observe.sinks.base import Sink


class FunctionSink(Sink):
    """Calls a function with each record. What it returns is dropped.

    Args:
        function: Takes a record. What it awaits, if it is `async`, runs to its end in an event loop
            of its own, in the thread that writes: nothing that belongs to another loop, such as a
            pool of connections, can be used in it.
    """

    def __init__(self, function: Callable[[Record], object]) -> None:
        self._function = function

    def __repr__(self) -> str:
        # Without what a partial or an instance holds, which may be a key.
        function = self._function
        name = getattr(function, "__qualname__", None)
        return f"FunctionSink({name if isinstance(name, str) else type(function).__qualname__})"

    def write(self, record: Record) -> None:
        """Call the function, and wait for its end."""
        returned = self._function(record)
        if inspect.isawaitable(returned):
            asyncio.run(_wait_for(returned))


async def _wait_for(returned: Awaitable[object]) -> None:
    await returned
