"""One text, read as a record or as a saved trace, or told why it is none: nothing raises here."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import ValidationError

from demur._text import one_line
from demur.guard import Trace
from demur.observe.log.errors import reason
from demur.observe.records import Record

T = TypeVar("T")

_LONGEST = 300


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


def read_trace(value: Mapping[str, Any], number: int) -> Record | Damaged:
    """The record that a saved trace stands for, or why it is none."""
    id = f"trace-{number}"

    def validated() -> Record:
        trace = Trace.model_validate(value)
        return Record(id=id, root=id, **dict(trace))  # all of a trace's fields are a record's too

    return _read(validated, f"trace {number}")


def read_json(text: bytes, place: str) -> Any:
    """What a text of JSON holds, or why it is none."""
    return _read(lambda: json.loads(text), place)


def _read(make: Callable[[], T], place: str) -> T | Damaged:
    """What `make` gives, or why it gives nothing: the one place where a log's content may fail.

    What is read is anybody's, and validating it runs the constructors of others (LangChain's
    documents), so that no list of errors would be the whole of them.
    """
    try:
        return make()
    except ValidationError as error:
        return Damaged(place, reason(error)[:_LONGEST])
    except RecursionError:
        return Damaged(place, "it is nested too deeply")
    except Exception as error:
        return Damaged(place, one_line(f"{type(error).__name__}: {error}")[:_LONGEST])
