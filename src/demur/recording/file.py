"""Define the lines of a recording, and read and write the file that holds them."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import numpy as np
from filelock import FileLock, Timeout
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from demur._jsonl import read_lines

_BEGINNING = b'{"line":'


class _Line(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ModelLine(_Line):
    """Describe a chat model that is asked."""

    line: Literal["model"] = "model"
    name: str
    """The user's name for the model."""
    fingerprint: str
    kind: str
    """LangChain's name for the model's class, by which demur recognises a local model."""


class CallLine(_Line):
    """Hold one call of a chat model."""

    line: Literal["call"] = "call"
    key: str
    """A hash of the model's fingerprint, the prompt and the options."""
    model: str
    """The model's name in this recording."""
    prompt: tuple[tuple[str, Any], ...]
    """The role and the content of each message."""
    options: dict[str, Any]
    reply: dict[str, Any]
    """The reply message, as LangChain serialises it."""
    seconds: float


class VectorLine(_Line):
    """Hold the vector of one text."""

    line: Literal["vector"] = "vector"
    key: str
    """A hash of the embedding model's fingerprint and the text."""
    vector: str
    """The 32-bit floating-point numbers, little-endian, in base64."""

    @classmethod
    def of(cls, key: str, numbers: Sequence[float]) -> VectorLine:
        """Make the line of a vector."""
        packed = np.asarray(numbers, dtype="<f4").tobytes()
        return cls(key=key, vector=base64.b64encode(packed).decode())

    @property
    def numbers(self) -> list[float]:
        """Return the vector with the precision of 32 bits."""
        unpacked = np.frombuffer(base64.b64decode(self.vector), dtype="<f4")
        return [float(number) for number in unpacked]


AnyLine = ModelLine | CallLine | VectorLine
_LINES: dict[str, type[ModelLine | CallLine | VectorLine]] = {
    "model": ModelLine,
    "call": CallLine,
    "vector": VectorLine,
}


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Keep other processes from writing a recording.

    Raises:
        ValueError: Another process writes the file, or its folder does not exist or cannot be
            written.
    """
    if not path.parent.is_dir():  # the lock would create the folder
        raise ValueError(f"cannot write {path}: there is no folder {path.parent}")
    try:
        held = FileLock(path.with_name(f".{path.name}.lock")).acquire(timeout=0)
    except Timeout as error:
        raise ValueError(f"another run writes {path} at this moment: wait for its end") from error
    except OSError as error:
        raise cannot("write beside", path, error) from error
    with held:
        yield


def read(path: Path) -> Iterator[AnyLine]:
    """Yield the complete lines of a recording.

    Raises:
        ValueError: The file cannot be read, or a line is not a line of a recording.
    """
    whole = None if path.suffix == ".gz" else _bytes(path).count(b"\n")
    try:
        for number, value in islice(read_lines(path), whole):
            form = _LINES.get(str(value.get("line"))) if isinstance(value, dict) else None
            if form is None:
                raise ValueError(f"{path}, line {number}: no line of a recording")
            try:
                yield TypeAdapter(form).validate_python(value)
            except ValidationError as error:
                first = error.errors()[0]
                why = ": ".join([*map(str, first["loc"][:1]), first["msg"]])
                raise ValueError(f"{path}, line {number}: no line of a recording: {why}") from error
    except OSError as error:
        raise cannot("read", path, error) from error


def write(path: Path, content: bytes) -> None:
    """Append bytes to a file.

    Raises:
        OSError: The bytes could not all be written. A written part is removed, so that no two lines
            run together.
    """
    with path.open("ab", buffering=0) as out:
        before = out.tell()
        try:
            while content:
                content = content[out.write(content) :]
        except OSError:
            out.truncate(before)
            raise


def torn(path: Path) -> int:
    """Return how many bytes follow the last complete line.

    Raises:
        ValueError: The file cannot be read.
    """
    if path.suffix == ".gz":
        return 0
    held = _bytes(path)
    return len(held) - held.rfind(b"\n") - 1


def mend(path: Path) -> int:
    """Cut off a last line that is not complete, and return how many bytes it had.

    Raises:
        ValueError: The file cannot be written, or is no recording.
    """
    try:
        with path.open("a+b") as file:
            file.seek(0)
            held = file.read()
            if not (held.startswith(_BEGINNING) or _BEGINNING.startswith(held)):
                raise ValueError(f"{path} exists and is no recording: name another file")
            whole = held.rfind(b"\n") + 1
            file.truncate(whole)
    except OSError as error:
        raise cannot("write", path, error) from error
    return len(held) - whole


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise cannot("read", path, error) from error


def cannot(do: str, path: Path, error: OSError) -> ValueError:
    """Return the error for a file that could not be read or written."""
    return ValueError(f"cannot {do} {path}: {error.strerror or error}")
