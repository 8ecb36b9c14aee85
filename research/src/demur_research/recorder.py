"""A recording: what configurations found of items, one JSON line each, in a file that grows.

A line is in the file as soon as its result is there. One process writes at a time; what a killed
one leaves torn is cut off by the next, which goes on where the file ends. A file is of one model,
and of items that still say the same. Of two lines about the same the later one counts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeAlias, TypeVar

from filelock import FileLock, Timeout
from pydantic import BaseModel, ValidationError

from demur import DemurError
from demur._jsonl import as_json, read_lines

T = TypeVar("T")

# Of each line: what does not begin like it is somebody else's file, and not to be cut.
_BEGINNING = b'{"item":'


@dataclass(frozen=True)
class Item(Generic[T]):
    """Something to be judged, under a key of its own."""

    key: str
    content: str
    """All that it says. Its digest is kept: a key that comes to mean something else is noticed."""
    value: T
    """What a judge is given."""

    @property
    def digest(self) -> str:
        """Of the content."""
        return hashlib.sha256(self.content.encode()).hexdigest()


class Line(BaseModel):
    """What one configuration found of one item."""

    item: str
    """The item's key."""
    content: str
    """The digest of what it says."""
    model: str
    """The fingerprint of the one that was asked."""
    configuration: str
    error: str | None = None
    """Why it could not be decided; None where it was."""
    result: dict[str, Any]


Lines: TypeAlias = Mapping[tuple[str, str], Line]
"""By item and configuration."""


class Recording:
    """A file that is open for one process. Made by `open_recording`."""

    def __init__(self, path: Path, model: str, lines: Lines, cut: int) -> None:
        self.path, self.model, self.cut = path, model, cut
        self.lines = dict(lines)

    def lacks(self, item: str, configuration: str, retry: bool = False) -> bool:
        """Whether there is no result; with `retry`, or only one that decides nothing."""
        line = self.lines.get((item, configuration))
        return line is None or (retry and line.error is not None)

    def append(self, line: Line) -> None:
        """Write a line.

        Raises:
            DemurError: It could not be written.
        """
        text = as_json(line.model_dump(mode="json"))
        try:
            with self.path.open("ab") as out:
                out.write(text.encode() + b"\n")
        except OSError as error:
            why = _cannot("write", self.path, error)
            raise DemurError(f"{why}; what is there is kept, and the same goes on") from error
        self.lines[line.item, line.configuration] = line


@contextmanager
def open_recording(
    path: Path, items: Sequence[Item[Any]] | None, model: str
) -> Iterator[Recording]:
    """Open a recording to go on with it, or begin one.

    Args:
        path: JSON lines; what is there is kept, but for a last line that is not whole.
        items: What it is about; None where their keys follow from what they say.
        model: The fingerprint of the one that is asked.

    Raises:
        ValueError: Two items have one key; the file cannot be written, is no recording, is being
            written by another process, holds what another model said, or is about other items.
    """
    if items is not None and len({item.key for item in items}) < len(items):
        raise ValueError("the data has an id twice: what is recorded would fit both")
    if path.suffix == ".gz":
        raise ValueError(f"{path}: a compressed recording is only read: name another file")
    if not path.parent.is_dir():  # the lock would make one
        raise ValueError(f"cannot write {path}: there is no folder {path.parent}")
    try:
        locked = FileLock(path.with_name(f".{path.name}.lock")).acquire(timeout=0)
    except Timeout as error:
        raise ValueError(f"another run writes {path} at this moment: wait for its end") from error
    except OSError as error:
        raise _cannot("write beside", path, error) from error
    with locked:
        cut = _mend(path)
        yield Recording(path, model, read(path, items, model), cut)


def read(
    path: Path, items: Sequence[Item[Any]] | None = None, model: str | None = None
) -> dict[tuple[str, str], Line]:
    """The lines of a recording, in the order in which they were written.

    Args:
        path: The recording, compressed if its name ends in ".gz".
        items: Those that count, lines about others being left out; None: all.
        model: The fingerprint that has to have been asked; None: any, but only one.

    Raises:
        ValueError: A line is of another model or of an item that says something else now, or
            cannot be read.
    """
    digests = None if items is None else {item.key: item.digest for item in items}
    found: dict[tuple[str, str], Line] = {}
    for number, value in _values(path):
        try:
            line = Line.model_validate(value)
        except ValidationError as error:
            first = error.errors()[0]
            why = ": ".join([*map(str, first["loc"][:1]), first["msg"]])
            raise ValueError(f"{path}, line {number}: no line of a recording ({why})") from error
        model = model or line.model
        if line.model != model:
            raise ValueError(
                f"{path}, line {number}: {line.model} was asked, and not {model}: name another file"
            )
        if digests is not None and line.item not in digests:
            continue
        if digests is not None and digests[line.item] != line.content:
            raise ValueError(f"{path}, line {number}: {line.item} says something else in the data")
        found[line.item, line.configuration] = line
    return found


def _values(path: Path) -> Iterator[tuple[int, Any]]:
    try:
        yield from read_lines(path)
    except OSError as error:
        raise _cannot("read", path, error) from error
    except ValueError as error:
        raise ValueError(f"{error}; to record again cuts off a last line that is torn") from error


def is_recording(path: Path) -> bool:
    """Whether a file begins as recordings do."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(_BEGINNING)) == _BEGINNING


def _mend(path: Path) -> int:
    """Cut off a last line that is not whole; how many bytes it had."""
    try:
        with path.open("a+b") as file:
            file.seek(0)
            held = file.read()
            if not (held.startswith(_BEGINNING) or _BEGINNING.startswith(held)):
                raise ValueError(f"{path} is there and is no recording: name another file")
            whole = held.rfind(b"\n") + 1
            file.truncate(whole)
    except OSError as error:
        raise _cannot("write", path, error) from error
    return len(held) - whole


def _cannot(do: str, path: Path, error: OSError) -> ValueError:
    return ValueError(f"cannot {do} {path}: {error.strerror or error}")
