"""Sink: where records go."""

from __future__ import annotations

from abc import ABC, abstractmethod

from demur.observe.records import Record


class Sink(ABC):
    """Where records go. One that fails is asked again; what it does not take goes to a file.

    A sink is asked by one thread at a time. It may be shared by handlers, and has to be ready for
    processes that fork.
    """

    @abstractmethod
    def write(self, record: Record) -> None:
        """Keep a record. When this returns, `kill -9` must not lose it any more.

        A record that comes again, with the same id, takes the place of the first, if it can.

        Raises:
            Exception: It could not be kept.
        """

    def flush(self) -> None:  # noqa: B027  # most have nothing to do
        """Send on, or put on the disk, what was written so far."""

    def close(self) -> None:  # noqa: B027  # most have nothing to do
        """Let go of files and connections. A write after it opens them anew."""
