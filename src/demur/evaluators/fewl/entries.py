"""Define what is kept of a question, and its form in Chroma and in a file."""

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

from demur._system import as_json, read_lines, write_lines
from demur.evaluators.fewl.parsing import Pairs

KIND = "fewl-neighbors-1"
"""The version of the entries' form; it changes when the form changes."""


@dataclass(frozen=True)
class KnownQuestion:
    """Hold what the store knows of a question.

    Raises:
        ValueError: The question is blank, there is no answer, or there are not as many finite
            numbers as answers.
    """

    question: str
    answers: tuple[str, ...]
    """The answers of the references, in the order of the references."""
    pairs: Pairs | None = None
    """The wrong and corrected answers; None if they were not asked for."""
    agreement: tuple[float, ...] | None = None
    """The expertise of each reference answer by agreement; None if it was not asked for, empty if
    the replies could not be read."""

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

    @property
    def usable_pairs(self) -> int:
        """Return the number of usable pairs, 0 if they were not asked for."""
        return len(self.pairs.usable) if self.pairs else 0


_ENTRY = TypeAdapter(KnownQuestion)


def as_kept(known: KnownQuestion) -> KnownQuestion:
    """Return the entry as it will be read again: lone surrogates cannot be encoded."""
    return _ENTRY.validate_json(as_json(asdict(known)))


def to_metadata(known: KnownQuestion) -> dict[str, str]:
    """Return an entry as Chroma's metadata.

    An update in Chroma leaves the keys unchanged that it does not contain. So pairs and agreement
    are stored with a hash of the answers that they were given with.
    """
    fields = asdict(known)
    metadata = {"said": as_json({key: fields[key] for key in ("question", "answers")})}
    for key in ("pairs", "agreement"):
        if fields[key] is not None:
            metadata[key] = as_json({"with": _digest(known.answers), key: fields[key]})
    return metadata


def from_metadata(metadata: Mapping[str, Any]) -> KnownQuestion:
    """Return the entry that Chroma's metadata contain."""
    fields = json.loads(metadata["said"])
    for key in ("pairs", "agreement"):
        if key in metadata:
            more = json.loads(metadata[key])
            if more["with"] == _digest(fields["answers"]):
                fields[key] = more[key]
    return _ENTRY.validate_python(fields)


def write_entries(path: Path, binding: Mapping[str, str], entries: Iterable[KnownQuestion]) -> None:
    """Write the binding and the entries to a file of JSON lines, completely or not at all.

    The first line has the binding. The file is compressed if its name ends in ".gz". The same
    content gives the same bytes.
    """
    write_lines(path, chain([{"kind": KIND, **binding}], map(asdict, entries)))


def read_entries(path: Path) -> tuple[dict[str, str], Iterator[KnownQuestion]]:
    """Return the binding of a file that `write_entries` wrote, and an iterator over its entries.

    Raises:
        ValueError: The file is of another kind, or a line is damaged; the message names the line.
        OSError: The file cannot be read.
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
