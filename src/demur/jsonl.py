"""Files of JSON lines: written whole or not at all, compressed where the name ends in ".gz"."""

from __future__ import annotations

import gzip
import json
import os
import tempfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from demur.text import replace_surrogates


def as_json(value: Any) -> str:
    """A value as JSON that any encoding carries: lone surrogates are replaced."""
    return replace_surrogates(json.dumps(value, ensure_ascii=False))


def write_lines(path: Path, values: Iterable[Any]) -> None:
    """Write a file of a JSON value a line. The same values give the same bytes.

    Raises:
        OSError: It cannot be written; what was there before is then still there.
    """
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as new:
        try:
            # Without a name and a time in it.
            packed = gzip.GzipFile("", "wb", 6, new, mtime=0) if _packs(path) else None
            for value in values:
                (packed or new).write(as_json(value).encode() + b"\n")
            if packed:
                packed.close()
            new.flush()
            os.fsync(new.fileno())
            os.replace(new.name, path)
        except BaseException:
            os.unlink(new.name)
            raise


def read_lines(path: Path) -> Iterator[tuple[int, Any]]:
    """The values in a file of `write_lines`, as they are read, each with its line's number.

    Raises:
        ValueError: A line is damaged; the message names it.
        OSError: The file cannot be read.
    """
    number = 0
    with gzip.open(path) if _packs(path) else path.open("rb") as file:
        try:
            for number, line in enumerate(file, 1):
                yield number, json.loads(line)
        except (ValueError, EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise ValueError(f"{path} is damaged at line {number}: {error}") from error


def _packs(path: Path) -> bool:
    return path.suffix == ".gz"
