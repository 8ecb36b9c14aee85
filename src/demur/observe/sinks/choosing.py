"""Make sinks of the values that users give: paths, URLs, functions and objects."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias, Union, cast

from demur.observe.places import is_server
from demur.observe.records import Record
from demur.observe.sinks.base import FunctionSink, Sink, Writer
from demur.observe.sinks.jsonl import JSONLSink
from demur.observe.sinks.langfuse import LangfuseSink
from demur.observe.sinks.langsmith import LangSmithSink
from demur.observe.sinks.mlflow import MLflowSink
from demur.observe.sinks.phoenix import PhoenixSink
from demur.observe.sinks.sql import SQLSink

_One: TypeAlias = Union[str, Path, Sink, Writer, Callable[[Record], object]]  # noqa: UP007  # of Python 3.10
SinkLike: TypeAlias = Union[_One, Sequence[_One]]  # noqa: UP007  # of Python 3.10
"""A value that a sink is made of: a path that ends in ".sqlite", ".sqlite3", ".db", ".jsonl" or
".ndjson"; a URL, "postgresql://..."; the name of a system for traces, "langsmith", "langfuse",
"phoenix" or "mlflow"; a `Sink`, or an object with `write(record)`; a function of a `Record`; or a
list of these. The function and `write` may be `async`."""

_FILES: dict[str, Callable[[Path], Sink]] = {
    **dict.fromkeys((".jsonl", ".ndjson"), JSONLSink),
    **dict.fromkeys((".sqlite", ".sqlite3", ".db"), SQLSink),
}
"""The sinks for files, by the suffix of the path."""
_SYSTEMS: dict[object, Callable[[], Sink]] = {
    sink.system: sink for sink in (LangSmithSink, LangfuseSink, PhoenixSink, MLflowSink)
}
"""The sinks for traces, by the name of the system. They are set up by the environment."""


def as_sinks(sink: SinkLike) -> tuple[Writer, ...]:
    """Return the sinks that a value stands for.

    Args:
        sink: A value that `SinkLike` describes.

    Raises:
        TypeError: `sink` is another value.
        ValueError: The path has another suffix, the list is empty, or a sink's class raises it.
        DemurError: A sink's class raises it.
    """
    if isinstance(sink, (list, tuple)):
        if not sink:
            raise ValueError(f"sink is {sink!r}: expected at least one sink")
        return tuple(_as_sink(member) for member in sink)
    return (_as_sink(sink),)


def _as_sink(sink: object) -> Writer:
    if isinstance(sink, (str, Path)) and is_server(sink):
        return SQLSink(sink)
    if isinstance(sink, str) and (make_sink := _SYSTEMS.get(sink)):
        return make_sink()
    if isinstance(sink, (str, os.PathLike)):
        path = Path(sink)
        if make := _FILES.get(path.suffix.lower()):
            return make(path)
        raise ValueError(
            f"cannot tell the file format from the name {str(sink)!r}: expected a file "
            "that ends in .sqlite, .sqlite3 or .db (SQLite), or in .jsonl or .ndjson (JSON lines), "
            "or postgresql://user@host/database. For another name give JSONLSink(path) or "
            f"SQLSink(path). Systems for traces are {', '.join(map(str, _SYSTEMS))}"
        )
    if isinstance(sink, type):
        raise TypeError(
            f"a sink cannot be the class {sink.__name__} itself: give an instance of it, "
            f"{sink.__name__}(...)"
        )
    if isinstance(sink, io.IOBase):  # its `write` takes texts, not records
        raise TypeError(
            "a sink cannot be an open file, since several threads and processes may write: give "
            "its path"
        )
    if callable(getattr(sink, "write", None)):
        return cast(Writer, sink)
    if callable(sink):
        return FunctionSink(sink)
    raise TypeError(
        f"expected as a sink a path, a Sink or another object with write(record), a function that "
        f"takes a record, or a list of these, got {type(sink).__name__}"
    )
