"""FunctionSink and WriterSink: records given to a function, or an object, of the user's."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import Protocol

from demur.observe.records import Record
from demur.observe.sinks.base import Sink


class Writer(Protocol):
    """Something with `write`. Its `flush` and `close` are called if it has them."""

    def write(self, record: Record, /) -> object:
        """Keep a record, or raise. It may be `async`, as a function may."""
        ...


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
        _finish(self._function(record))


class WriterSink(Sink):
    """Gives records to an object with `write` that is no `Sink`.

    Args:
        writer: The object.
    """

    def __init__(self, writer: Writer) -> None:
        self._writer = writer

    def __repr__(self) -> str:
        return type(self._writer).__qualname__  # without what it holds, which may be a key

    def write(self, record: Record) -> None:
        """Have the object keep a record."""
        _finish(self._writer.write(record))

    def flush(self) -> None:
        """Call the object's `flush`, if it has one."""
        self._call("flush")

    def close(self) -> None:
        """Call the object's `close`, if it has one."""
        self._call("close")

    def _call(self, name: str) -> None:
        method = getattr(self._writer, name, None)
        if callable(method):
            _finish(method())


def _finish(returned: object) -> None:
    """Wait for what an asynchronous function does."""
    if inspect.isawaitable(returned):
        asyncio.run(_wait_for(returned))


async def _wait_for(returned: Awaitable[object]) -> None:
    await returned
