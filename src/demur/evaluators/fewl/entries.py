"""What is kept of a question: its id, and its form in Chroma and in a file."""

from __future__ import annotations

import gzip
import hashlib
import json
import math
import os
import tempfile
import unicodedata
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from demur.evaluators.fewl.parsing import Pairs
from demur.text import replace_surrogates

KIND = "fewl-neighbors-1"
"""Changes when entries take another form."""


@dataclass(frozen=True)
class Asked:
    """What is kept of a question.

    Raises:
        ValueError: The question is blank, there is no answer, or the numbers do not fit.
    """

    question: str
    answers: tuple[str, ...]
    """One per reference, in their order."""
    pairs: Pairs | None = None
    """Wrong and corrected answers, where they were asked for."""
    agreement: tuple[float, ...] | None = None
    """One number per reference: its expertise, where it was asked for by agreement. Empty where the
    replies could not be read."""

    def __post_init__(self) -> None:
        if not self.question.strip():
            raise ValueError(f"expected a question, got {self.question!r}")
        if not self.answers or not all(isinstance(answer, str) for answer in self.answers):
            raise ValueError(
                f"expected one answer per reference, as text, for {self.question!r}; "
                f"got {self.answers!r}"
            )
        if self.agreement and (
            len(self.agreement) != len(self.answers) or not all(map(math.isfinite, self.agreement))
        ):
            raise ValueError(
                f"expected {len(self.answers)} finite numbers, one per answer to "
                f"{self.question!r}; got agreement={self.agreement}"
            )


_ASKED = TypeAdapter(Asked)


def entry_id(question: str) -> str:
    """The hash by which a question is known: of its text after NFC, with white space made one."""
    text = " ".join(unicodedata.normalize("NFC", replace_surrogates(question)).split())
    return hashlib.sha256(text.encode()).hexdigest()


def as_kept(one: Asked) -> Asked:
    """The entry as it is read again: no encoding carries lone surrogates."""
    return _ASKED.validate_json(as_json(asdict(one)))


def to_metadata(one: Asked) -> dict[str, str]:
    """An entry as Chroma's metadata.

    An update leaves as they are the keys that it does not give. So pairs and agreement say which
    answers they were given with.
    """
    fields = asdict(one)
    found = {"said": as_json({key: fields[key] for key in ("question", "answers")})}
    for key in ("pairs", "agreement"):
        if fields[key] is not None:
            found[key] = as_json({"with": _digest(one.answers), key: fields[key]})
    return found


def from_metadata(metadata: Mapping[str, Any]) -> Asked:
    """The entry that Chroma's metadata hold."""
    fields = json.loads(metadata["said"])
    for key in ("pairs", "agreement"):
        if key in metadata:
            more = json.loads(metadata[key])
            if more["with"] == _digest(fields["answers"]):
                fields[key] = more[key]
    return _ASKED.validate_python(fields)


def write_entries(path: Path, binding: Mapping[str, str], entries: Iterable[Asked]) -> None:
    """Write a file, whole or not at all: a JSON object a line, the first with the binding.

    Where the name ends in ".gz" it is compressed. The same content gives the same bytes.
    """
    lines = chain([{"kind": KIND, **binding}], map(asdict, entries))
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as new:
        try:
            # Without a name and a time in it.
            packed = gzip.GzipFile("", "wb", 6, new, mtime=0) if _packs(path) else None
            for line in lines:
                (packed or new).write(as_json(line).encode() + b"\n")
            if packed:
                packed.close()
            new.flush()
            os.fsync(new.fileno())
            os.replace(new.name, path)
        except BaseException:
            os.unlink(new.name)
            raise


def read_entries(path: Path) -> tuple[dict[str, str], Iterator[Asked]]:
    """The binding in a file of `write_entries`, and its entries as they are read.

    Raises:
        ValueError: The file is another, or a line of it is damaged; the message names the line.
        OSError: It cannot be read.
    """
    lines = _lines(path)
    head = next(lines, (0, None))[1]
    if not isinstance(head, dict) or head.pop("kind", None) != KIND:
        raise ValueError(f"{path} holds no exported neighbours ({KIND} in its first line)")
    return head, _read(path, lines)


def _read(path: Path, lines: Iterator[tuple[int, Any]]) -> Iterator[Asked]:
    for number, line in lines:
        try:
            yield _ASKED.validate_python(line)
        except ValueError as error:
            raise ValueError(f"{path}, line {number}: {error}") from error


def _lines(path: Path) -> Iterator[tuple[int, Any]]:
    number = 0
    with gzip.open(path) if _packs(path) else path.open("rb") as file:
        try:
            for number, line in enumerate(file, 1):
                yield number, json.loads(line)
        except (ValueError, EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise ValueError(f"{path} is damaged at line {number}: {error}") from error


def _packs(path: Path) -> bool:
    return path.suffix == ".gz"


def as_json(value: Any) -> str:
    """A value as JSON that any encoding carries."""
    return replace_surrogates(json.dumps(value, ensure_ascii=False))


def _digest(answers: Iterable[str]) -> str:
    return hashlib.sha256(as_json(list(answers)).encode()).hexdigest()[:16]
