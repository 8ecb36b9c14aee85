"""Define `Sink`, the base class of the places that records go to."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Protocol

from demur.observe.records import Record


class Writer(Protocol):
    """Match any object with a `write` method; its `flush` and `close` are called if it has them."""

    def write(self, record: Record, /) -> object:
        """Keep a record, or raise an error. The method may be `async`."""
        ...


class Sink(ABC):
    """Receive the records of handlers. Subclass it to send records to a place of your own.

    If `write` raises, the handler tries again, and then writes the record to a fallback file. A
    handler calls a sink from one thread at a time. Several handlers that share a sink can call it
    at the same time. A sink must also work after the process has forked. Each method may be
    `async`; all `async` methods run in one event loop of demur's own.
    """

    @abstractmethod
    def write(self, record: Record) -> object:
        """Keep a record. After this returns, `kill -9` must not lose the record.

        If a record with the same id comes again, it should replace the first one.

        Raises:
            Exception: The record could not be kept.
        """

    def flush(self) -> object:  # noqa: B027  # most sinks have nothing to do
        """Send the records that were written so far, or put them on the disk."""

    def close(self) -> object:  # noqa: B027  # most sinks have nothing to do
        """Close files and connections. A later `write` opens them again."""


class FunctionSink(Sink):
    """Call a function with each record.

    Args:
        function: A function that takes a record, or raises an error. It may be `async`.
    """

    def __init__(self, function: Callable[[Record], object]) -> None:
        self._function = function

    def __repr__(self) -> str:
        # The `repr` of a partial or an instance may show a key.
        function = self._function
        name = getattr(function, "__qualname__", None)
        return f"FunctionSink({name if isinstance(name, str) else type(function).__qualname__})"

    def write(self, record: Record) -> object:
        """Call the function with a record."""
        return self._function(record)
