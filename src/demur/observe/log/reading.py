"""Read a text as a record or as saved traces, and report damage without raising."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import ValidationError

from demur._text import one_line
from demur.errors import DemurError
from demur.guard import Trace
from demur.observe.records import Record
from demur.schema import in_words

T = TypeVar("T")

_LONGEST = 300


class LogError(DemurError):
    """Report that a log cannot be read, or does not hold the requested run."""


@dataclass(frozen=True)
class Damaged:
    """Describe a record that cannot be read and is left out."""

    place: str
    """The line, or the id of the run."""
    why: str
    """The reason why the record cannot be read."""


def read_record(text: Any, place: str) -> Record | Damaged:
    """Return the record in a text, or the reason why it cannot be read."""
    return _read(lambda: Record.model_validate_json(text), place)


def read_traces(raw: bytes) -> list[Record | Damaged] | None:
    """Return the saved traces of guards as records, or None if there is no trace.

    The file holds one trace, a list of traces, or a trace on each line. `trace.model_dump_json()`
    and `demur demo` write such files. A trace may also be the value of "trace" in an object. Traces
    have no ids, so the ids are their numbers: "trace-1" and so on.
    """
    whole = _read(lambda: json.loads(raw), "line 1")
    if isinstance(whole, Damaged):
        lines = enumerate(raw.split(b"\n"), start=1)
        values = [_json(line, f"line {number:,}") for number, line in lines if line.strip()]
    else:
        values = whole if isinstance(whole, list) else [whole]
    if values and not any(map(_is_trace, values)):
        return None
    return [_read_trace(value, number) for number, value in enumerate(values, start=1)]


def _json(line: bytes, place: str) -> Any:
    return _read(lambda: json.loads(line), place)


def _is_trace(value: Any) -> bool:
    if isinstance(value, Mapping) and "trace" in value:
        value = value["trace"]
    # A record has an id, even a damaged one.
    return isinstance(value, Mapping) and "attempts" in value and "id" not in value


def _read_trace(value: Any, number: int) -> Record | Damaged:
    if isinstance(value, Damaged):
        return value
    if not isinstance(value, Mapping):
        return Damaged(f"trace {number}", f"it is {value!r:.80}")
    id = f"trace-{number}"

    def validated() -> Record:
        trace = Trace.model_validate(value.get("trace", value))
        fields = dict(trace)
        del fields["citations"]  # the only field that records do not have
        return Record(id=id, root=id, **fields)

    return _read(validated, f"trace {number}")


def _read(make: Callable[[], T], place: str) -> T | Damaged:
    """Return the result of `make`, or the reason why it failed.

    Every error is caught, since a log may hold anything, and validation runs constructors of other
    libraries, such as those of LangChain's documents.
    """
    try:
        return make()
    except ValidationError as error:
        return Damaged(place, in_words(error)[:_LONGEST])
    except RecursionError:
        return Damaged(place, "it is nested too deeply")
    except Exception as error:
        return Damaged(place, one_line(f"{type(error).__name__}: {error}")[:_LONGEST])
