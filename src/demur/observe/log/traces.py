"""Saved traces of guards, read as a log: what `trace.model_dump_json()` and `demur demo` write."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from demur.guard.trace import Trace
from demur.observe.log.errors import LogError, reason
from demur.observe.records import Record


def read(path: Path, raw: bytes) -> list[Record] | None:
    """The records that a file of traces stands for; None if it holds no traces.

    It is one trace, a list of them, or one on each line; a trace may stand in an object under
    "trace". Traces have no id, so they are called by their number: "trace-1" and so on.

    Raises:
        LogError: One of them is damaged, or of an earlier version.
    """
    values = _values(raw)
    if values is None or not all(map(_is_trace, values)):
        return None
    return [_record(path, number, value) for number, value in enumerate(values, start=1)]


def _values(raw: bytes) -> list[Any] | None:
    try:
        try:
            whole = json.loads(raw)
        except ValueError:
            return [json.loads(line) for line in raw.split(b"\n") if line.strip()]
    except (ValueError, RecursionError):
        return None
    return whole if isinstance(whole, list) else [whole]


def _is_trace(value: Any) -> bool:
    if isinstance(value, Mapping) and "trace" in value:
        value = value["trace"]
    # A record, which may be damaged, has an id.
    return isinstance(value, Mapping) and "attempts" in value and "id" not in value


def _record(path: Path, number: int, value: Mapping[str, Any]) -> Record:
    try:
        trace = Trace.model_validate(value.get("trace", value))
    except ValidationError as error:
        raise LogError(f"{path}: trace {number} cannot be read: {reason(error)}") from error
    id = f"trace-{number}"
    return Record(id=id, root=id, **dict(trace))  # all of a trace's fields are a record's too
