"""Outlet: the last step of a record's way, to every sink; what one does not take goes to a file."""

from __future__ import annotations

import io
import os
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias, Union, cast
from weakref import WeakValueDictionary

from demur.observe.fallback import FallbackFile
from demur.observe.feed import Feed
from demur.observe.records import Record
from demur.observe.sinks.base import Sink
from demur.observe.sinks.function import FunctionSink, Writer, WriterSink
from demur.observe.sinks.jsonl import JSONLSink
from demur.observe.sinks.sqlite import SQLiteSink

_One: TypeAlias = Union[str, Path, Sink, Writer, Callable[[Record], object]]  # noqa: UP007  # of Python 3.10
SinkLike: TypeAlias = Union[_One, Sequence[_One]]  # noqa: UP007  # of Python 3.10
"""What a sink is made of: a path that ends in ".sqlite", ".sqlite3" or ".db", or in ".jsonl" or
".ndjson"; a `Sink`, or an object with `write(record)`; a function that takes a `Record`; or several
of these. The function and `write` may be `async`."""

FILES: dict[str, Callable[[Path], Sink]] = {
    **dict.fromkeys((".jsonl", ".ndjson"), JSONLSink),
    **dict.fromkeys((".sqlite", ".sqlite3", ".db"), SQLiteSink),
}
"""What a file holds, by the end of its name."""


class Outlet:
    """Gives records to sinks. Safe in threads; each sink is asked by one at a time.

    A sink that fails is asked again for about a second; then the record is appended to a local
    file, the fallback, in the form of `JSONLSink`, and a warning says so. While a sink is down, the
    records meant for it go there at once, and it is asked again every few seconds. Where several
    sinks fail, the fallback file has a record once for each.

    Warnings go to the logger "demur.observe". They name the sink, its error and the file, and
    never hold a record's text.

    Args:
        sinks: Where the records go.
        fallback: The file for what a sink does not take: by default one in the system's folder for
            temporary files, made when it is needed.

    Raises:
        DemurError: There is no folder for `fallback`.
    """

    def __init__(self, sinks: Sequence[Sink], *, fallback: Path | None = None) -> None:
        self._fallback = FallbackFile(fallback)
        self._closed = threading.Event()
        self._feeds = [Feed(sink, self._fallback, self._closed) for sink in sinks]

    @property
    def to_fallback(self) -> int:
        """Records that went to the fallback file; once for each sink that did not take it."""
        return self._fallback.kept

    @property
    def lost(self) -> int:
        """Records that the fallback file did not take either; once for each sink."""
        return self._fallback.lost

    def write(self, record: Record) -> None:
        """Give a record to every sink. Raises nothing but an interrupt.

        When this returns, each sink has it, or the fallback file has, or it counts as lost.
        """
        for feed in self._feeds:
            feed.write(record)

    def flush(self) -> None:
        """Have every sink send on what it holds. What fails is logged."""
        for feed in self._feeds:
            feed.flush()
        self._fallback.flush()

    def close(self) -> None:
        """Close the sinks, and wait for none any longer. What fails is logged.

        A write after it still works; a sink that fails is then asked once.
        """
        self._closed.set()
        for feed in self._feeds:
            feed.close()
        self._fallback.flush()


_writers: WeakValueDictionary[int, WriterSink] = WeakValueDictionary()
"""By the id of the object, which its sink keeps alive."""


def as_sinks(sink: SinkLike) -> tuple[Sink, ...]:
    """The sinks that a user means.

    Args:
        sink: See `SinkLike`.

    Raises:
        TypeError: It is something else.
        ValueError: The path has another suffix, or there is no sink; or as the sinks' classes do.
        DemurError: As the sinks' classes do.
    """
    if isinstance(sink, (list, tuple)):
        if not sink:
            raise ValueError(f"sink is {sink!r}: expected at least one sink")
        return tuple(_as_sink(member) for member in sink)
    return (_as_sink(sink),)


def _as_sink(sink: object) -> Sink:
    if isinstance(sink, Sink):
        return sink
    if isinstance(sink, (str, os.PathLike)):
        path = Path(sink)
        if make := FILES.get(path.suffix.lower()):
            return make(path)
        raise ValueError(
            f"cannot tell from its name what {str(sink)!r} is to hold: expected a file that ends "
            f"in .sqlite, .sqlite3 or .db (SQLite), or in .jsonl or .ndjson (JSON lines). For "
            "another name give JSONLSink(path) or SQLiteSink(path)"
        )
    if isinstance(sink, type):
        raise TypeError(
            f"a sink cannot be the class {sink.__name__} itself: give an instance of it, "
            f"{sink.__name__}(...)"
        )
    if isinstance(sink, io.IOBase):  # its `write` takes texts
        raise TypeError(
            "a sink cannot be an open file, since several threads and processes may write: give "
            "its path"
        )
    if callable(getattr(sink, "write", None)):
        # The same one each time, since a sink is asked by one thread at a time, whoever has it.
        known = _writers.get(id(sink))
        return known or _writers.setdefault(id(sink), WriterSink(cast(Writer, sink)))
    if callable(sink):
        return FunctionSink(sink)
    raise TypeError(
        f"expected as a sink a path, a Sink or another object with write(record), a function that "
        f"takes a record, or a list of these, got {type(sink).__name__}"
    )
