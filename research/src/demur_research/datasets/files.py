"""Rows of JSON and JSON-lines files, checked against a form."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError

_Form = TypeVar("_Form", bound=BaseModel)


def load(path: Path) -> Any:
    """What a JSON file holds; of a file whose name ends in .jsonl, the list of its lines.

    Raises:
        ValueError: It cannot be read, or is not JSON; the message names the file.
    """
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise ValueError(f"cannot read {path}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8 text (byte {error.start})") from error
    if path.suffix != ".jsonl":
        return _parsed(text, str(path))
    lines = enumerate(text.splitlines(), start=1)
    return [_parsed(line, f"{path}, line {at}") for at, line in lines if line.strip()]


def rows(found: Any, form: type[_Form], name: str) -> list[_Form]:
    """A list of objects, each of the form.

    Args:
        found: What a file holds.
        form: A model of one row; its other fields are not read.
        name: Of the file, or of the part of it.

    Raises:
        ValueError: It is no list, or a row is not of the form; the message says which and why.
    """
    if not isinstance(found, list):
        raise ValueError(f"{name}: expected a list of objects, got {type(found).__name__}")
    try:
        # A type that is known at run time only, which mypy has no words for.
        return TypeAdapter(list[form]).validate_python(found)  # type: ignore[valid-type]
    except ValidationError as error:
        first = error.errors()[0]
        at, *field = first["loc"]
        where = f", {'.'.join(map(str, field))}" if field else ""
        got = "" if first["type"] == "missing" else f", got {first['input']!r:.80}"
        raise ValueError(f"{name}: row {int(at) + 1}{where}: {first['msg']}{got}") from error


def _parsed(text: str, name: str) -> Any:
    try:
        return json.loads(text, parse_constant=_no_number)
    except RecursionError as error:
        raise ValueError(f"{name} is nested too deeply") from error
    except ValueError as error:
        raise ValueError(f"{name} is not JSON: {error}") from error


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON value")
