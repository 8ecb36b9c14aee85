"""Define the lines of a recording, and read and write the file that holds them."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from demur._system import read_lines
from demur.schema import in_words

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
_LINE: TypeAdapter[AnyLine] = TypeAdapter(Annotated[AnyLine, Field(discriminator="line")])


def read(path: Path) -> Iterator[AnyLine]:
    """Yield the complete lines of a recording.

    Raises:
        ValueError: The file cannot be read, or a line is not a line of a recording.
    """
    try:
        whole = None if path.suffix == ".gz" else path.read_bytes().count(b"\n")
        for number, value in islice(read_lines(path), whole):
            try:
                yield _LINE.validate_python(value)
            except ValidationError as error:
                why = f"{path}, line {number}: no line of a recording"
                raise ValueError(f"{why}: {in_words(error)}") from error
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


def torn(path: Path, cut: bool) -> int:
    """Return how many bytes follow the last complete line.

    Args:
        path: The file, which need not exist if `cut` is true.
        cut: Whether to cut these bytes off.

    Raises:
        ValueError: The file cannot be read or written, or is no recording.
    """
    if path.suffix == ".gz":
        return 0
    try:
        with path.open("a+b" if cut else "rb") as file:
            file.seek(0)
            held = file.read()
            whole = held.rfind(b"\n") + 1
            if cut and not (held.startswith(_BEGINNING) or _BEGINNING.startswith(held)):
                raise ValueError(f"{path} exists and is no recording: name another file")
            if cut:
                file.truncate(whole)
    except OSError as error:
        raise cannot("write" if cut else "read", path, error) from error
    return len(held) - whole


def cannot(do: str, path: Path, error: OSError) -> ValueError:
    """Return the error for a file that could not be read or written."""
    return ValueError(f"cannot {do} {path}: {error.strerror or error}")
