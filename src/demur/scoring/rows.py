"""The rows of a data set, read one at a time, each as JSON with its answers as samples."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, NoReturn

from pydantic import ValidationError

from demur._text import replace_surrogates
from demur.schema import Sample

_SAMPLE = ("question", "contexts", "reference", "preceding", "metadata")
FIELDS = ("id", "answer", "answers", *_SAMPLE)
"""What a row may hold. Its other fields are not read."""
_INTO_METADATA = "metadata."


@dataclass(frozen=True)
class Row:
    """One line: a question, and one answer to it or several that have names."""

    id: str
    """The field `id`; without one, the line's number and a hash of what it holds; the hash alone
    where rows are in no order."""
    line: int
    samples: Mapping[str | None, Sample]
    """The answers by name, in the line's order; None for an answer that has no name."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """The fields of `Data.extra` that the line holds, as JSON values."""

    def key(self, name: str | None) -> str:
        """What an answer of this row is called in the results."""
        return self.id if name is None else f"{self.id}:{name}"


@dataclass(frozen=True)
class Data:
    """A file of rows, or another source of them, and how it is to be read."""

    path: Path | None
    """The file; None where there is a `source`."""
    name: str
    """What messages call it."""
    fields: Mapping[str, str] = field(default_factory=dict)
    """For some of `FIELDS`, of `extra`, or `metadata.NAME`: the field of the file that holds it,
    which every row has to have. `answers` may name several, with commas between them."""
    check: Callable[[Sample], str | None] = lambda sample: None
    """Says what a sample lacks to be scored, or None."""
    limit: int | None = None
    """Only the first rows, of which every one is nevertheless read before the first is scored."""
    extra: Sequence[str] = ()
    """Further fields that a row may hold. No score depends on them."""
    select: Callable[[Row], Row | None] = lambda row: row
    """What of a row is scored: the row, one with fewer answers, or None. It may raise ValueError,
    which is told as a fault of the line."""
    source: Callable[[], Iterable[bytes]] | None = None
    """In place of a file: gives the rows, each as JSON, and the same ones each time it is called,
    in any order."""

    @property
    def ordered(self) -> bool:
        """Whether the rows have an order, so that their numbers tell them apart."""
        return self.source is None

    @property
    def word(self) -> str:
        """What messages call a row."""
        return "line" if self.source is None else "row"

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """Every line that is not blank, with its number from 1."""
        if self.source is not None:
            yield from enumerate(self.source(), start=1)
        elif self.path is not None:
            with self.path.open("rb") as file:
                for number, raw in enumerate(file, start=1):
                    if raw.strip():
                        yield number, raw.removeprefix(b"\xef\xbb\xbf") if number == 1 else raw

    def row(self, number: int, raw: bytes) -> Row:
        """The row that a line holds.

        Raises:
            ValueError: It holds none; the message says what is wrong with it.
        """
        values = _object(raw)
        missing = [source for source in self._explicit() if source not in values]
        if missing:
            raise ValueError(
                f"it has no field {missing[0]!r}, which --field names: null stands for nothing"
            )
        shared = self._shared(values)
        answers = self._answers(values)
        samples = {name: _sample({**shared, "answer": answer}, name) for name, answer in answers}
        if len(samples) < len(answers):  # lone surrogates are all written as one character
            raise ValueError("answers: two answers have the same name")
        for sample in samples.values():
            lack = self.check(sample)
            if lack is not None:
                raise ValueError(lack)
        extra = {name: self._value(values, name) for name in self.extra}
        id_ = _identity(self._value(values, "id"))
        return Row(id_ or self._made_up(number, raw), number, samples, extra)

    def _made_up(self, number: int, raw: bytes) -> str:
        """What a row without an id is called."""
        digits = hashlib.sha256(raw.strip()).hexdigest()
        return f"{number}-{digits[:12]}" if self.ordered else digits[:24]

    def rows(self) -> Iterator[Row]:
        """What is scored of the rows up to the limit, of a file without fault."""
        first = islice((self.row(number, raw) for number, raw in self.lines()), self.limit)
        return (row for row in map(self.select, first) if row is not None)

    def _source(self, target: str) -> str:
        return self.fields.get(target, target)

    def _value(self, values: Mapping[str, Any], target: str) -> Any:
        return values.get(self._source(target))

    def _explicit(self) -> Iterator[str]:
        for target, source in self.fields.items():
            yield from source.split(",") if target == "answers" else (source,)

    def _shared(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """The sample's fields but for the answer, those that are null left to their defaults."""
        named = {target: self._value(values, target) for target in _SAMPLE}
        known = {target: value for target, value in named.items() if value is not None}
        extra = {
            target.removeprefix(_INTO_METADATA): values[source]
            for target, source in self.fields.items()
            if target.startswith(_INTO_METADATA)
        }
        if extra:
            metadata = known.get("metadata", {})
            if not isinstance(metadata, dict):
                raise ValueError(f"metadata: expected an object, got {_kind(metadata)}")
            known["metadata"] = {**metadata, **extra}
        return known

    def _answers(self, values: Mapping[str, Any]) -> Sequence[tuple[str | None, Any]]:
        sources = self._source("answers").split(",")
        named = values.get(sources[0])
        has_answer = self._source("answer") in values
        if len(sources) > 1 or isinstance(named, str):
            named = {source: values[source] for source in sources}
        elif has_answer and named is not None:
            raise ValueError("it has both an answer and answers: one of the two is expected")
        if named is None:
            if not has_answer:
                raise ValueError(
                    f"it has no answer: expected a text in a field {self._source('answer')!r}, or "
                    f"an object of texts in {sources[0]!r}; --field answer=NAME names another field"
                )
            return [(None, self._value(values, "answer"))]
        if not isinstance(named, dict) or not named:
            raise ValueError(f"answers: expected an object from names to texts, got {_kind(named)}")
        return [(replace_surrogates(name), answer) for name, answer in named.items()]


class Digest:
    """A hash of rows: of their bytes in order, or of rows that may come in any order."""

    def __init__(self, ordered: bool) -> None:
        self._ordered = ordered
        self._bytes = hashlib.sha256()
        self._sum = 0

    def update(self, raw: bytes) -> None:
        """Take in a row."""
        if self._ordered:
            self._bytes.update(raw)
        else:
            self._sum += int.from_bytes(hashlib.sha256(raw).digest(), "big")

    def hexdigest(self) -> str:
        """64 hexadecimal digits."""
        return self._bytes.hexdigest() if self._ordered else f"{self._sum % (1 << 256):064x}"


def read_fields(texts: Sequence[str], extra: Sequence[str] = ()) -> dict[str, str]:
    """The mapping that texts like `question=prompt` stand for.

    Args:
        texts: What was given.
        extra: Names beside `FIELDS`, see `Data.extra`.

    Raises:
        ValueError: One names nothing that a row may hold, or says nothing of it.
    """
    fields: dict[str, str] = {}
    for text in texts:
        target, _, source = text.partition("=")
        known = target in (*FIELDS, *extra) or target.removeprefix(_INTO_METADATA) not in (
            "",
            target,
        )
        if not known or not all(source.split(",")):
            raise ValueError(
                f"expected TARGET=FIELD, where TARGET is one of {', '.join((*FIELDS, *extra))} or "
                f"metadata.NAME and FIELD is a field of the file, got {text!r}"
            )
        if target in fields:
            raise ValueError(f"{target} is given twice: {fields[target]!r} and {source!r}")
        fields[target] = source
    return fields


def _object(raw: bytes) -> dict[str, Any]:
    try:
        value = json.loads(raw.decode("utf-8"), parse_constant=_no_number)
    except UnicodeDecodeError as error:
        raise ValueError(f"it is not UTF-8 text (byte {error.start})") from error
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    except json.JSONDecodeError as error:
        raise ValueError(f"it is not JSON: {error.msg} at character {error.pos + 1}") from error
    if not isinstance(value, dict):
        raise ValueError(f"expected an object, got {_kind(value)}")
    return value


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON value: null stands for a number that is missing")


def _sample(values: Mapping[str, Any], name: str | None) -> Sample:
    try:
        return Sample.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        if place == "answer" and name is not None:
            place = f"answer {name!r}"
        why = str(first["msg"]).removeprefix("Value error, ")
        raise ValueError(f"{place}: {why}, got {_kind(first['input'])}") from error


def _identity(value: Any) -> str | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (str, int)) or value == "":
        raise ValueError(f"id: expected a text or a whole number, got {_kind(value)}")
    return replace_surrogates(str(value))


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "a text", bool: "a truth value"}
    if value is None:
        return "null"
    if value in ("", {}, []):
        return f"{names[type(value)]} that is empty"
    return names.get(type(value), f"the number {value}")
