"""Files that are written whole or not at all.

Most are of JSON lines, compressed where the name ends in ".gz".
"""

from __future__ import annotations

import errno
import gzip
import json
import os
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import IO, Any

from demur._text import replace_surrogates


def as_json(value: Any) -> str:
    """A value as JSON that any encoding carries: lone surrogates are replaced."""
    return replace_surrogates(json.dumps(value, ensure_ascii=False))


def write_whole(path: Path, content: bytes) -> None:
    """Write a file. It is put into place at the end, and a link stays a link to it.

    Raises:
        OSError: It cannot be written; what was there before is then still there.
        ValueError: No file can have such a name.
    """
    place = Path(os.path.realpath(path))
    if place.exists() and not place.is_file():  # such as /dev/stdout, whose place would be taken
        raise OSError(errno.EINVAL, "it is no ordinary file")
    with _beside(place) as file:
        file.write(content)
        _keep(file)
        os.replace(file.name, place)


def write_lines(path: Path, values: Iterable[Any]) -> None:
    """Write a file of a JSON value a line. The same values give the same bytes.

    Raises:
        OSError: It cannot be written; what was there before is then still there.
    """
    with new_files(path) as (write,):
        for value in values:
            write(value)


@contextmanager
def new_files(*paths: Path) -> Iterator[list[Callable[[Any], None]]]:
    """Write several files side by side, as `write_lines` one.

    They are put into place together at the end; if anything is raised before, none is.

    Yields:
        One function per path, which writes a value as that file's next line.
    """
    with ExitStack() as stack:
        files = [stack.enter_context(_beside(path)) for path in paths]
        # Without a name and a time in it.
        packers = [
            gzip.GzipFile("", "wb", 6, file, mtime=0) if _packs(path) else None
            for file, path in zip(files, paths, strict=True)
        ]
        yield [partial(_write, packer or file) for file, packer in zip(files, packers, strict=True)]
        for file, packer in zip(files, packers, strict=True):
            if packer:
                packer.close()
            _keep(file)
        for file, path in zip(files, paths, strict=True):
            os.replace(file.name, path)


@contextmanager
def _beside(path: Path) -> Iterator[IO[bytes]]:
    """A file in the same folder, gone at the end unless it was put into the place of `path`."""
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as new:
        try:
            yield new
        finally:
            with suppress(FileNotFoundError):
                os.unlink(new.name)


def _keep(file: IO[bytes]) -> None:
    file.flush()
    os.fsync(file.fileno())


def _write(file: IO[bytes] | gzip.GzipFile, value: Any) -> None:
    file.write(as_json(value).encode() + b"\n")


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
        except (ValueError, RecursionError, EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise ValueError(f"{path} is damaged at line {number}: {error}") from error


def _packs(path: Path) -> bool:
    return path.suffix == ".gz"
