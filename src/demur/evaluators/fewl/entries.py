"""What is kept of a question: its id, and its form in Chroma and in a file."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from demur._jsonl import as_json, read_lines, write_lines
from demur.evaluators.fewl.parsing import Pairs

KIND = "fewl-neighbors-1"
"""Changes when entries take another form."""


@dataclass(frozen=True)
class KnownQuestion:
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


_ENTRY = TypeAdapter(KnownQuestion)


def as_kept(known: KnownQuestion) -> KnownQuestion:
    """The entry as it is read again: no encoding carries lone surrogates."""
    return _ENTRY.validate_json(as_json(asdict(known)))


def to_metadata(known: KnownQuestion) -> dict[str, str]:
    """An entry as Chroma's metadata.

    An update leaves as they are the keys that it does not give. So pairs and agreement say which
    answers they were given with.
    """
    fields = asdict(known)
    metadata = {"said": as_json({key: fields[key] for key in ("question", "answers")})}
    for key in ("pairs", "agreement"):
        if fields[key] is not None:
            metadata[key] = as_json({"with": _digest(known.answers), key: fields[key]})
    return metadata


def from_metadata(metadata: Mapping[str, Any]) -> KnownQuestion:
    """The entry that Chroma's metadata hold."""
    fields = json.loads(metadata["said"])
    for key in ("pairs", "agreement"):
        if key in metadata:
            more = json.loads(metadata[key])
            if more["with"] == _digest(fields["answers"]):
                fields[key] = more[key]
    return _ENTRY.validate_python(fields)


def write_entries(path: Path, binding: Mapping[str, str], entries: Iterable[KnownQuestion]) -> None:
    """Write a file, whole or not at all: a JSON object a line, the first with the binding.

    Where the name ends in ".gz" it is compressed. The same content gives the same bytes.
    """
    write_lines(path, chain([{"kind": KIND, **binding}], map(asdict, entries)))


def read_entries(path: Path) -> tuple[dict[str, str], Iterator[KnownQuestion]]:
    """The binding in a file of `write_entries`, and its entries as they are read.

    Raises:
        ValueError: The file is another, or a line of it is damaged; the message names the line.
        OSError: It cannot be read.
    """
    lines = read_lines(path)
    head = next(lines, (0, None))[1]
    if not isinstance(head, dict) or head.pop("kind", None) != KIND:
        raise ValueError(f"{path} holds no exported neighbours ({KIND} in its first line)")
    return head, _read(path, lines)


def _read(path: Path, lines: Iterator[tuple[int, Any]]) -> Iterator[KnownQuestion]:
    for number, line in lines:
        try:
            yield _ENTRY.validate_python(line)
        except ValueError as error:
            raise ValueError(f"{path}, line {number}: {error}") from error


def _digest(answers: Iterable[str]) -> str:
    return hashlib.sha256(as_json(list(answers)).encode()).hexdigest()[:16]
