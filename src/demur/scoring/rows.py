"""Read the rows of a data set one at a time, each a JSON object with its answers as samples."""

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
from demur.shapes import sample_of

_SAMPLE = ("question", "contexts", "reference", "preceding", "metadata")
FIELDS = ("id", "answer", "answers", "messages", *_SAMPLE)
"""The fields that a row may have. Other fields of a row are ignored."""
_INTO_METADATA = "metadata."


@dataclass(frozen=True)
class Row:
    """Represent one line: a question with one answer, or with several named answers."""

    id: str
    """The field `id`. A row without it gets the line's number and a hash of the line, or only the
    hash if the rows have no order."""
    line: int
    samples: Mapping[str | None, Sample]
    """The answers by name, in the line's order. The name is None for an answer without a name."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """The fields of `Data.extra` that the line has, as JSON values."""

    def key(self, name: str | None) -> str:
        """Return the key of an answer of this row in the results."""
        return self.id if name is None else f"{self.id}:{name}"


@dataclass(frozen=True)
class Data:
    """Describe a file of rows, or another source of rows, and how to read it."""

    path: Path | None
    """The file; None if there is a `source`."""
    name: str
    """The name that messages use for the data."""
    fields: Mapping[str, str] = field(default_factory=dict)
    """A mapping from a name in `FIELDS` or `extra`, or from `metadata.NAME`, to the field of the
    file that holds it. Every row must have that field. For `answers`, it may be several fields,
    separated by commas."""
    check: Callable[[Sample], str | None] = lambda sample: None
    """A function that says what a sample lacks to be scored, or returns None."""
    limit: int | None = None
    """The number of rows to score. All rows are nevertheless read before the first row is
    scored."""
    extra: Sequence[str] = ()
    """The names of further fields that a row may have. No score depends on them."""
    select: Callable[[Row], Row | None] = lambda row: row
    """A function that chooses what to score of a row: the row itself, a row with fewer answers, or
    None. If it raises ValueError, the line is reported as faulty."""
    source: Callable[[], Iterable[bytes]] | None = None
    """A function that replaces the file. It returns the rows, each as JSON. Every call returns the
    same rows, in any order."""

    @property
    def ordered(self) -> bool:
        """Return whether the rows have an order, so that a row's number identifies it."""
        return self.source is None

    @property
    def word(self) -> str:
        """Return the word that messages use for a row."""
        return "line" if self.source is None else "row"

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """Yield every line that is not blank, with its number from 1."""
        if self.source is not None:
            yield from enumerate(self.source(), start=1)
        elif self.path is not None:
            with self.path.open("rb") as file:
                for number, raw in enumerate(file, start=1):
                    if raw.strip():
                        yield number, raw.removeprefix(b"\xef\xbb\xbf") if number == 1 else raw

    def row(self, number: int, raw: bytes) -> Row:
        """Return the row that a line holds.

        Raises:
            ValueError: The line holds no valid row; the message says what is wrong.
        """
        values = _object(raw)
        missing = [source for source in self._explicit() if source not in values]
        if missing:
            raise ValueError(
                f"it has no field {missing[0]!r}, which --field names: add it; null means no value"
            )
        shared = self._shared(values)
        answers = self._answers(values)
        messages = self._value(values, "messages")
        samples = {
            name: _sample({**shared, "answer": answer}, name, messages) for name, answer in answers
        }
        if len(samples) < len(answers):  # all lone surrogates become the same character
            raise ValueError("answers: two answers have the same name")
        for sample in samples.values():
            lack = self.check(sample)
            if lack is not None:
                raise ValueError(lack)
        extra = {name: self._value(values, name) for name in self.extra}
        id_ = _identity(self._value(values, "id"))
        return Row(id_ or self._made_up(number, raw), number, samples, extra)

    def _made_up(self, number: int, raw: bytes) -> str:
        """Return the id of a row that has no field `id`."""
        digits = hashlib.sha256(raw.strip()).hexdigest()
        return f"{number}-{digits[:12]}" if self.ordered else digits[:24]

    def rows(self) -> Iterator[Row]:
        """Yield what is to be scored of the rows up to the limit.

        The file must have no faults.
        """
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
        """Return the sample's fields except the answer; a field that is null keeps its default."""
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
            if not has_answer and self._value(values, "messages") is None:
                raise ValueError(
                    f"it has no answer: expected a text in a field {self._source('answer')!r}, or "
                    f"an object of texts in {sources[0]!r}; --field answer=NAME names another field"
                )
            return [(None, self._value(values, "answer"))]
        if not isinstance(named, dict) or not named:
            raise ValueError(f"answers: expected an object from names to texts, got {_kind(named)}")
        return [(replace_surrogates(name), answer) for name, answer in named.items()]


class Digest:
    """Compute a hash of rows: of their bytes in order, or of rows that may come in any order."""

    def __init__(self, ordered: bool) -> None:
        self._ordered = ordered
        self._bytes = hashlib.sha256()
        self._sum = 0

    def update(self, raw: bytes) -> None:
        """Add a row."""
        if self._ordered:
            self._bytes.update(raw)
        else:
            self._sum += int.from_bytes(hashlib.sha256(raw).digest(), "big")

    def hexdigest(self) -> str:
        """Return the hash as 64 hexadecimal digits."""
        return self._bytes.hexdigest() if self._ordered else f"{self._sum % (1 << 256):064x}"


def read_fields(texts: Sequence[str], extra: Sequence[str] = ()) -> dict[str, str]:
    """Return the mapping that texts such as `question=prompt` describe.

    Args:
        texts: The texts, each of the form TARGET=FIELD.
        extra: The targets that are allowed besides `FIELDS`; see `Data.extra`.

    Raises:
        ValueError: A text has an unknown target, has no field, or repeats a target.
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


def _sample(values: Mapping[str, Any], name: str | None, messages: Any) -> Sample:
    """Return a sample.

    Args:
        values: The sample's fields. With messages, the answer may be None: it is the last of them.
        name: The name of the answer.
        messages: The conversation before the answer, or with it, whose results of tools and calls
            are further contexts; None: there is none.
    """
    last = messages is not None and values["answer"] is None
    try:
        sample = Sample.model_validate({**values, "answer": ""} if last else values)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        if place == "answer" and name is not None:
            place = f"answer {name!r}"
        why = str(first["msg"]).removeprefix("Value error, ")
        raise ValueError(f"{place}: {why}, got {_kind(first['input'])}") from error
    if messages is None:
        return sample
    if not isinstance(messages, list):
        raise ValueError(f"messages: expected a list, got {_kind(messages)}")
    said = [] if last else [{"role": "assistant", "content": sample.answer}]
    try:
        found = sample_of([*messages, *said])
    except ValueError as error:
        raise ValueError(f"messages: {error}") from error
    question = found.question if sample.question is None else sample.question
    contexts = (*sample.contexts, *found.contexts)
    own = {"question": question, "answer": found.answer, "contexts": contexts}
    return sample.model_copy(update=own)


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
