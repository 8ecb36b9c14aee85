"""The lines of a recording, and the file that they are in."""

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
    """A chat model that is asked."""

    line: Literal["model"] = "model"
    name: str
    """What the user calls it."""
    fingerprint: str
    kind: str
    """LangChain's word for its class, by which demur knows a local model."""


class CallLine(_Line):
    """One call of a chat model."""

    line: Literal["call"] = "call"
    key: str
    """A hash of the model's fingerprint, the prompt and the options."""
    model: str
    """The model's name in this recording."""
    prompt: tuple[tuple[str, Any], ...]
    """Role and content of each message."""
    options: dict[str, Any]
    reply: dict[str, Any]
    """The message, as LangChain writes it."""
    seconds: float


class VectorLine(_Line):
    """The vector of one text."""

    line: Literal["vector"] = "vector"
    key: str
    """A hash of the embedding's fingerprint and the text."""
    vector: str
    """Numbers of 32 bits, little-endian, in base64."""

    @classmethod
    def of(cls, key: str, numbers: Sequence[float]) -> VectorLine:
        """Pack a vector."""
        packed = np.asarray(numbers, dtype="<f4").tobytes()
        return cls(key=key, vector=base64.b64encode(packed).decode())

    @property
    def numbers(self) -> list[float]:
        """The vector, as 32 bits hold it."""
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
        ValueError: Another one writes it, or its folder is not there or cannot be written.
    """
    if not path.parent.is_dir():  # the lock would make one
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
    """Yield the lines of a recording that are whole.

    Raises:
        ValueError: The file cannot be read, or a line is none of a recording.
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
    """Append to a file.

    Raises:
        OSError: It could not be written whole. A part is taken back, lest two lines run together.
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
    """Return how many bytes stand behind the last line that is whole.

    Raises:
        ValueError: The file cannot be read.
    """
    if path.suffix == ".gz":
        return 0
    held = _bytes(path)
    return len(held) - held.rfind(b"\n") - 1


def mend(path: Path) -> int:
    """Cut off a last line that is not whole, and return how many bytes it had.

    Raises:
        ValueError: The file cannot be written, or is no recording.
    """
    try:
        with path.open("a+b") as file:
            file.seek(0)
            held = file.read()
            if not (held.startswith(_BEGINNING) or _BEGINNING.startswith(held)):
                raise ValueError(f"{path} is there and is no recording: name another file")
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
    """Return the error for a file that something cannot be done with."""
    return ValueError(f"cannot {do} {path}: {error.strerror or error}")
