"""Saved traces of guards, read as a log: what `trace.model_dump_json()` and `demur demo` write."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from demur.observe.log.reading import Damaged, read_json, read_trace
from demur.observe.records import Record


def read(raw: bytes) -> list[Record | Damaged] | None:
    """The records that a file of traces stands for, and what is damaged; None if it has no traces.

    It is one trace, a list of them, or one on each line; a trace may stand in an object under
    "trace". Traces have no id, so they are called by their number: "trace-1" and so on.
    """
    values = _values(raw)
    if values and not any(map(_is_trace, values)):
        return None
    return [_read(value, number) for number, value in enumerate(values, start=1)]


def _values(raw: bytes) -> list[Any]:
    whole = read_json(raw, "line 1")
    if not isinstance(whole, Damaged):
        return whole if isinstance(whole, list) else [whole]
    lines = enumerate(raw.split(b"\n"), start=1)
    return [read_json(line, f"line {number:,}") for number, line in lines if line.strip()]


def _is_trace(value: Any) -> bool:
    if isinstance(value, Mapping) and "trace" in value:
        value = value["trace"]
    # A record, which may be damaged, has an id.
    return isinstance(value, Mapping) and "attempts" in value and "id" not in value


def _read(value: Any, number: int) -> Record | Damaged:
    if isinstance(value, Damaged):
        return value
    if not isinstance(value, Mapping):
        return Damaged(f"trace {number}", f"it is {value!r:.80}")
    return read_trace(value.get("trace", value), number)
