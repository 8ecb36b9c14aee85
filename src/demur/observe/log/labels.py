"""Read people's labels: a file of run ids, and whether each first answer is hallucinated."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from demur.observe.log.reading import LogError

LABEL = "hallucinated"
"""The name of the field, column or metadata entry that holds the label."""
_IDS = ("id", "run")
"""The names of the field with the run's id; if a file has both, the first is read."""
_YES, _NO = ("true", "yes", "1"), ("false", "no", "0")
_EXPECTED = f"expected CSV or JSON lines with the fields `id` (or `run`) and `{LABEL}`"


def read_labels(path: Path) -> dict[str, bool]:
    """Read whether first answers are hallucinated, by run: see `labels_of_attempts`."""
    return {id: label for (id, attempt), label in labels_of_attempts(path).items() if attempt == 1}


def labels_of_attempts(path: Path) -> dict[tuple[str, int], bool]:
    """Read a file that says whether answers are hallucinated, by run and attempt.

    The file is CSV with a header line, separated by commas, semicolons or tabs; or JSON lines. Its
    fields are `id` and `hallucinated`. The value of `hallucinated` is true or false, yes or no, 1
    or 0. A row with an empty value or null is skipped.

    You can also add the column `hallucinated` to a table that `demur log export` wrote. Its field
    `run` is read as the id, unless there is also an `id`. Its field `attempt` says which of the
    run's answers the label is about; without it, that is the first one.

    Returns:
        A mapping from the run's id and the attempt, from 1, to True for a hallucinated answer, else
        False.

    Raises:
        LogError: The file or a row cannot be read, or two rows contradict each other.
    """
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise LogError(f"cannot read {path}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise LogError(f"{path} is not UTF-8 text (byte {error.start})") from error
    labels: dict[tuple[str, int], bool] = {}
    for number, row in _json_lines(text) if text.lstrip()[:1] == "{" else _table(text):
        try:
            labelled = _read(row)
        except ValueError as error:
            raise LogError(f"{path}, line {number:,}: {error}; {_EXPECTED}") from error
        if labelled is None:
            continue
        key, label = labelled
        if labels.setdefault(key, label) is not label:
            raise LogError(
                f"{path}, line {number:,}: {LABEL} of {key[0]!r} is {label} here and {not label} "
                "above"
            )
    return labels


def _read(row: Any) -> tuple[tuple[str, int], bool] | None:
    """Return the id, the attempt and the label in a row, or None if the row has no label."""
    if not isinstance(row, Mapping):
        raise ValueError(f"the row is {row!r:.80}")
    named = next((field for field in _IDS if field in row), None)
    if named is None or LABEL not in row:
        known = ", ".join(map(repr, row)) or "none"
        missing = repr(LABEL) if named else " or ".join(map(repr, _IDS))
        raise ValueError(f"it has no field {missing}, only {known:.300}")
    id, attempt, label = row[named], row.get("attempt"), truth(row[LABEL])
    if label is None:
        return None
    number = "1" if attempt in (None, "") else str(attempt).strip().removesuffix(".0")
    if not number.isdecimal():
        raise ValueError(f"its attempt is {attempt!r:.80}")
    if isinstance(id, bool) or not isinstance(id, (str, int)) or id == "":
        raise ValueError(f"its id is {id!r:.80}")
    return (str(id), int(number)), label


def truth(value: Any) -> bool | None:
    """Return the truth value of a label: true or false, yes or no, 1 or 0; None if it is empty.

    Raises:
        ValueError: The label is another value.
    """
    word = str(value).strip().lower()
    if value is None or word == "":
        return None
    if not isinstance(value, (bool, int, str)) or word not in (*_YES, *_NO):
        raise ValueError(f"{LABEL} is {value!r:.80}, which is neither true nor false")
    return word in _YES


def _json_lines(text: str) -> Iterator[tuple[int, Any]]:
    # `splitlines` would also cut at characters that JSON texts may contain.
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            try:
                yield number, json.loads(line)
            except (ValueError, RecursionError):
                yield number, line


def _table(text: str) -> list[tuple[int, Any]]:
    head = text.partition("\n")[0]
    delimiter = max(",;\t", key=head.count)  # spreadsheets of some countries write semicolons
    readable = text.replace("\0", "\u2400")  # the csv module of Python 3.10 cannot read NUL
    reader = csv.DictReader(io.StringIO(readable, newline=""), delimiter=delimiter)
    rows: list[tuple[int, Any]] = []
    # Answers may be longer than the csv module's limit for a cell.
    longest = csv.field_size_limit(len(text) + 1)
    try:
        # The header is a row too, so that its names are checked in a file without other rows.
        rows.append((1, dict.fromkeys(reader.fieldnames or ())))
        for row in reader:
            cells = {name: value for name, value in row.items() if name is not None}
            rows.append((reader.line_num, cells))
    except csv.Error as error:
        rows.append((reader.line_num, str(error)))
    finally:
        csv.field_size_limit(longest)
    return rows
