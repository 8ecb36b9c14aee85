"""One text, read as a record or as a saved trace, or told why it is none: nothing raises here."""

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

T = TypeVar("T")

_LONGEST = 300


class LogError(DemurError):
    """A log cannot be read, or what was asked of it is not there."""


@dataclass(frozen=True)
class Damaged:
    """A record that cannot be read, and is left out."""

    place: str
    """The line, or the run's id."""
    why: str
    """What is wrong with it."""


def read_record(text: Any, place: str) -> Record | Damaged:
    """The record that a text is, or why it is none."""
    return _read(lambda: Record.model_validate_json(text), place)


def read_traces(raw: bytes) -> list[Record | Damaged] | None:
    """The records that saved traces of guards stand for; None if there is no trace.

    A file of these has one trace, a list of them, or one on each line, as
    `trace.model_dump_json()` and `demur demo` write them; a trace may stand in an object under
    "trace". Traces have no id, so they are called by their number: "trace-1" and so on.
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
    # A record, which may be damaged, has an id.
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
        del fields["citations"]  # they follow from the attempts; a record has all other fields
        return Record(id=id, root=id, **fields)

    return _read(validated, f"trace {number}")


def _read(make: Callable[[], T], place: str) -> T | Damaged:
    """What `make` gives, or why it gives nothing: the one place where a log's content may fail.

    What is read is anybody's, and validating it runs the constructors of others (LangChain's
    documents), so that no list of errors would be the whole of them.
    """
    try:
        return make()
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        why = f"{where}: {first['msg']}" if where else str(first["msg"])
        return Damaged(place, why[:_LONGEST])
    except RecursionError:
        return Damaged(place, "it is nested too deeply")
    except Exception as error:
        return Damaged(place, one_line(f"{type(error).__name__}: {error}")[:_LONGEST])
