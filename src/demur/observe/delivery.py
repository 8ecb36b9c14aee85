"""Deliver records to every sink, or to a fallback file if a sink fails."""

from __future__ import annotations

import inspect
import logging
import tempfile
import traceback
import uuid
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path

import tenacity

from demur._system import lock
from demur.errors import DemurError
from demur.observe.places import SinkError
from demur.observe.records import Record
from demur.observe.sinks import JSONLSink, Sink, SQLSink, Writer
from demur.runtime import in_own_loop

_log = logging.getLogger("demur.observe")

_TRIES, _SECONDS = 4, 2.0
"""The most attempts and seconds to write a record to a sink that accepted the last one."""


class Delivery:
    """Give records to sinks. Safe in threads; one thread at a time writes to a sink.

    If a sink fails, the write is retried for about a second. Then the sink's records go to a file
    of JSON lines, and a warning is logged. Each further record is offered to the sink once, until
    the sink accepts a record again. Warnings quote neither a record nor an error's message, which
    may quote a record.

    Args:
        sinks: The sinks.
        fallback: The file for records that a sink does not accept. None: a file beside the sink's
            own file, or in the system's temporary folder if the sink has no file.

    Raises:
        DemurError: The folder of `fallback` does not exist, or `fallback` is a folder.
    """

    def __init__(self, sinks: Sequence[Writer], fallback: Path | None) -> None:
        if fallback is not None:
            fallback = fallback.absolute()
            if not fallback.parent.is_dir() or fallback.is_dir():
                raise DemurError(
                    f"cannot keep records in {fallback}: expected a file in a folder that exists"
                )
        self._routes = [_Route(sink, fallback or _beside(sink)) for sink in sinks]

    @property
    def to_fallback(self) -> int:
        """Return the number of records that went to a file instead, once for each failing sink."""
        return sum(route.to_fallback for route in self._routes)

    @property
    def lost(self) -> int:
        """Return the number of records that the file did not accept either, once for each sink."""
        return sum(route.lost for route in self._routes)

    def write(self, record: Record) -> None:
        """Give a record to every sink; never raise.

        When this returns, each sink or its fallback file has the record, or the record counts as
        lost.
        """
        for route in self._routes:
            route.write(record)

    def flush(self) -> None:
        """Have every sink send on the records that it holds. Errors are logged."""
        for route in self._routes:
            route.end("flush")

    def close(self) -> None:
        """Close every sink. Errors are logged. A later `write` still works."""
        for route in self._routes:
            route.end("close")


class _Route:
    """Hold one sink, and the file for records that it does not accept."""

    def __init__(self, sink: Writer, fallback: Path) -> None:
        self._sink, self._fallback = sink, fallback
        self._lock = lock()
        self._down = False
        self.to_fallback = self.lost = 0

    def write(self, record: Record) -> None:
        with self._lock:
            try:
                self._offer(record)
            except BaseException as error:  # SystemExit too, which would only end this thread
                self._keep(record, error)
                self._down = True
            else:
                self._down = False

    def end(self, how: str) -> None:
        """Flush or close the sink, if it has such a method."""
        if (work := getattr(self._sink, how, None)) is None:
            return
        with self._lock:
            try:
                finish(work)
            except BaseException as error:
                _log.warning("%s failed to %s: %s", self._name, how, without_words(error))

    def _offer(self, record: Record) -> None:
        write = partial(finish, self._sink.write, record)
        if self._down:
            write()
            return
        tenacity.Retrying(
            stop=tenacity.stop_after_attempt(_TRIES) | tenacity.stop_after_delay(_SECONDS),
            wait=tenacity.wait_exponential(multiplier=0.1),
            reraise=True,
        )(write)

    def _keep(self, record: Record, error: BaseException) -> None:
        """Write a record to the fallback file."""
        try:
            JSONLSink(self._fallback).write(record)
        except Exception as second:
            self.lost += 1
            if self.lost == 1 or not self._down:
                _log.error(
                    "records are lost: %s does not accept them (%s), and %s cannot be written (%s)",
                    *(self._name, without_words(error)),
                    *(self._fallback, without_words(second)),
                )
            return
        self.to_fallback += 1
        if not self._down:
            _log.warning(
                "%s does not accept records (%s): until it does, they go to %s",
                *(self._name, without_words(error), self._fallback),
            )

    @property
    def _name(self) -> str:
        """Return the sink's name for messages; a user's own `repr` may hold a secret."""
        ours = isinstance(self._sink, Sink) and type(self._sink).__module__.startswith("demur.")
        return repr(self._sink) if ours else type(self._sink).__qualname__


def finish(function: Callable[..., object], *arguments: object) -> None:
    """Call a function, and wait for its result if the function is asynchronous."""
    returned = function(*arguments)
    if inspect.isawaitable(returned):
        in_own_loop(partial(_awaited, returned))


async def _awaited(returned: Awaitable[object]) -> None:
    await returned


def _beside(sink: Writer) -> Path:
    if isinstance(sink, (JSONLSink, SQLSink)) and sink.path is not None:
        return sink.path.with_name(f"{sink.path.name}.fallback.jsonl")
    return Path(tempfile.gettempdir(), f"demur-fallback-{uuid.uuid4().hex[:12]}.jsonl")


def without_words(error: BaseException) -> str:
    """Describe an error by its type and place, without its message, which may quote a record.

    The message of a `SinkError` is safe, and is returned as it is.
    """
    if isinstance(error, SinkError):
        return str(error)
    words = type(error).__name__
    if isinstance(error, OSError) and error.strerror:
        words += f", {error.strerror}"
    if frames := traceback.extract_tb(error.__traceback__):
        words += f", at {Path(frames[-1].filename).name}:{frames[-1].lineno}"
    return words
