"""Write and read files that are written completely or not at all.

Most are files of JSON lines, compressed if the name ends in ".gz".
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
from demur.errors import needs


def as_json(value: Any) -> str:
    """Return a value as JSON that every encoding can carry: lone surrogates are replaced."""
    return replace_surrogates(json.dumps(value, ensure_ascii=False))


def write_whole(path: Path, content: bytes) -> None:
    """Write a file that appears at its place only when it is complete.

    If `path` is a symbolic link, it stays one, and the file that it points to is replaced.

    Raises:
        OSError: The file cannot be written. Its earlier content is then still there.
        ValueError: A file cannot have such a name.
    """
    place = Path(os.path.realpath(path))
    if place.exists() and not place.is_file():  # such as /dev/stdout, whose place would be taken
        raise OSError(errno.EINVAL, "it is no ordinary file")
    with _beside(place) as file:
        file.write(content)
        _keep(file)
        os.replace(file.name, place)


def write_lines(path: Path, values: Iterable[Any]) -> None:
    """Write a file with one JSON value on each line. The same values always give the same bytes.

    Raises:
        OSError: The file cannot be written. Its earlier content is then still there.
    """
    with new_files(path) as (write,):
        for value in values:
            write(value)


@contextmanager
def new_files(*paths: Path) -> Iterator[list[Callable[[Any], None]]]:
    """Write several files side by side, each as `write_lines` writes one.

    The files are moved to their places together at the end. If anything is raised before, none is.

    Yields:
        One function for each path, which writes a value as the next line of that file.
    """
    with ExitStack() as stack:
        files = [stack.enter_context(_beside(path)) for path in paths]
        # Without a name and a time in the header, equal content gives equal bytes.
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
    """Yield a new file in the same folder, and delete it at the end if it is still there."""
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


@contextmanager
def locked(
    path: Path, purpose: str, extra: str, error: type[ValueError] = ValueError
) -> Iterator[None]:
    """Keep other processes from writing a file for the length of the block.

    Args:
        path: The file, which need not exist.
        purpose: The purpose, for the message of a `MissingExtraError`.
        extra: The extra that brings filelock.
        error: The class of the errors.

    Raises:
        MissingExtraError: filelock is not installed.
        error: Another process writes the file, or its folder does not exist or cannot be written.
    """
    with needs("filelock", extra, purpose):
        from filelock import FileLock, Timeout
    if not path.parent.is_dir():  # the lock would create the folder
        raise error(f"cannot write {path}: there is no folder {path.parent}")
    try:
        held = FileLock(path.with_name(f".{path.name}.lock")).acquire(timeout=0)
    except Timeout as busy:
        raise error(
            f"another run writes {path} at this moment: wait until it ends, or name another file"
        ) from busy
    except OSError as failed:
        raise error(f"cannot write beside {path}: {failed.strerror}") from failed
    with held:
        yield


def read_lines(path: Path) -> Iterator[tuple[int, Any]]:
    """Yield the values in a file that `write_lines` wrote, each with the number of its line.

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
