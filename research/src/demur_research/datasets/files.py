"""Rows of JSON, JSON-lines and CSV files, checked against a form."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError

_Form = TypeVar("_Form", bound=BaseModel)


def text(path: Path) -> str:
    """What a file of text holds.

    Raises:
        ValueError: It cannot be read, or is not UTF-8; the message names the file.
    """
    try:
        return path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise ValueError(f"cannot read {path}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8 text (byte {error.start})") from error


def load(path: Path) -> Any:
    """What a JSON file holds; of a file whose name ends in .jsonl, the list of its lines.

    Raises:
        ValueError: It cannot be read, or is not JSON; the message names the file.
    """
    return load_lines(path) if path.suffix == ".jsonl" else _parsed(text(path), str(path))


def load_lines(path: Path) -> list[Any]:
    """What the lines of a file hold, one JSON value each, whatever the file is called.

    Raises:
        ValueError: It cannot be read, or a line is not JSON; the message names the place.
    """
    # Only \n ends a line: a JSON string may hold the other line separators of Unicode.
    lines = enumerate(text(path).split("\n"), start=1)
    return [_parsed(line, f"{path}, line {at}") for at, line in lines if line.strip()]


def load_csv(path: Path) -> list[dict[str, str]]:
    """The rows of a CSV file, by the names in its first line.

    Raises:
        ValueError: It cannot be read, or a row has more or fewer cells than the first.
    """
    reader = csv.DictReader(io.StringIO(text(path), newline=""), strict=True)
    try:
        found = list(reader)
    except csv.Error as error:
        raise ValueError(f"{path}, line {reader.line_num} is not CSV: {error}") from error
    for at, row in enumerate(found, start=1):
        if None in row or None in row.values():
            raise ValueError(f"{path}: row {at} has other cells than the first line names")
    return found


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
