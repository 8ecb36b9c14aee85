"""Read rows from JSON, JSON-lines and CSV files, also packed ones, and check their form."""

from __future__ import annotations

import csv
import gzip
import io
import json
import zlib
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError

_Form = TypeVar("_Form", bound=BaseModel)


def text(path: Path) -> str:
    """Return the content of a text file, unpacked if the file's name ends in .gz.

    Raises:
        ValueError: The file cannot be read or unpacked, or is not UTF-8. The message names the
            file.
    """
    try:
        content = path.read_bytes()
        if path.suffix == ".gz":
            content = gzip.decompress(content)
        return content.decode("utf-8-sig")
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ValueError(f"{path} cannot be unpacked: {error}") from error
    except OSError as error:
        raise ValueError(f"cannot read {path}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8 text (byte {error.start})") from error


def load(path: Path) -> Any:
    """Return the value in a JSON file, or the list of lines of a .jsonl or .jsonl.gz file.

    Raises:
        ValueError: The file cannot be read, or is not JSON. The message names the file.
    """
    of_lines = path.name.endswith((".jsonl", ".jsonl.gz"))
    return load_lines(path) if of_lines else _parsed(text(path), str(path))


def load_lines(path: Path) -> list[Any]:
    """Return the JSON values of a file's lines, one per line, whatever the file's name ends in.

    Raises:
        ValueError: The file cannot be read, or a line is not JSON. The message names the file and
            line.
    """
    # `splitlines` would also split at other separators of Unicode, which a JSON string may hold.
    lines = enumerate(text(path).split("\n"), start=1)
    return [_parsed(line, f"{path}, line {at}") for at, line in lines if line.strip()]


def load_csv(path: Path) -> list[dict[str, str]]:
    """Return the rows of a CSV file as mappings from the names in its first line.

    Raises:
        ValueError: The file cannot be read, is not CSV, or has a row with more or fewer cells than
            the first line.
    """
    reader = csv.DictReader(io.StringIO(text(path), newline=""), strict=True)
    try:
        found = list(reader)
    except csv.Error as error:
        raise ValueError(f"{path}, line {reader.line_num} is not CSV: {error}") from error
    for at, row in enumerate(found, start=1):
        if None in row or None in row.values():
            raise ValueError(f"{path}: row {at} has more or fewer cells than the first line")
    return found


def rows(found: Any, form: type[_Form], name: str) -> list[_Form]:
    """Return a list of objects as instances of a form.

    Args:
        found: The content of a file, or a part of it.
        form: A model of one row. Fields that it lacks are ignored.
        name: The name of the file, or of its part, for messages.

    Raises:
        ValueError: `found` is not a list, or a row does not have the form. The message says which
            row and why.
    """
    if not isinstance(found, list):
        raise ValueError(f"{name}: expected a list of objects, got {type(found).__name__}")
    try:
        # The type is known at run time only, which mypy cannot express.
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
