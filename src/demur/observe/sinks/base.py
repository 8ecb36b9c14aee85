"""Sink: where records go."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Protocol

from demur.observe.records import Record


class Writer(Protocol):
    """Something with `write`. Its `flush` and `close` are called if it has them."""

    def write(self, record: Record, /) -> object:
        """Keep a record, or raise. It may be `async`."""
        ...


class Sink(ABC):
    """Where records go. One that fails is asked again; what it does not take goes to a file.

    A handler asks a sink by one thread at a time. One that several handlers have is asked by as
    many. It has to be ready for processes that fork. Each method may be `async`; all of these run
    in one event loop of demur's own.
    """

    @abstractmethod
    def write(self, record: Record) -> object:
        """Keep a record. When this returns, `kill -9` must not lose it any more.

        A record that comes again, with the same id, takes the place of the first, if it can.

        Raises:
            Exception: It could not be kept.
        """

    def flush(self) -> object:  # noqa: B027  # most have nothing to do
        """Send on, or put on the disk, what was written so far."""

    def close(self) -> object:  # noqa: B027  # most have nothing to do
        """Let go of files and connections. A write after it opens them anew."""


class FunctionSink(Sink):
    """Calls a function with each record.

    Args:
        function: Takes a record, or raises. It may be `async`.
    """

    def __init__(self, function: Callable[[Record], object]) -> None:
        self._function = function

    def __repr__(self) -> str:
        # Without what a partial or an instance holds, which may be a key.
        function = self._function
        name = getattr(function, "__qualname__", None)
        return f"FunctionSink({name if isinstance(name, str) else type(function).__qualname__})"

    def write(self, record: Record) -> object:
        """Call the function."""
        return self._function(record)
