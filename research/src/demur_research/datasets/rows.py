"""What every data set is read into: rows with labels at answer, sentence or span level."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import JsonValue


@dataclass(frozen=True)
class Part:
    """A labelled sentence or span of an answer, as offsets `[start, end)` into its text."""

    start: int
    end: int
    hallucinated: bool
    label: str
    """The publisher's word for it."""


@dataclass(frozen=True)
class Answer:
    """One answer, with what people found of it."""

    text: str
    hallucinated: bool | None
    """Of the whole; None where the publisher gives no label that says so."""
    name: str | None = None
    """Which answer of its row it is, such as "best" or the name of the model that wrote it. None
    where the row has one answer only."""
    label: str | None = None
    """The publisher's word for the whole."""
    parts: tuple[Part, ...] = ()
    """Labelled sentences or spans, in their order; empty where the labels are of the whole."""


@dataclass(frozen=True)
class LabelledRow:
    """A question, or a claim without one, with its answers and the texts that they rest on."""

    key: str
    """Unique in its set, and the same whatever is left out of the set."""
    question: str | None
    answers: tuple[Answer, ...]
    """At least one; their names differ."""
    contexts: tuple[str, ...] = ()
    group: str = ""
    """What rows have in common that are drawn together in a bootstrap, such as a document. Empty:
    the row stands alone."""
    metadata: Mapping[str, JsonValue] = field(default_factory=dict)
    """What else a method or a table needs, such as `entity`, `domain` or `short_answer`."""

    def as_line(self) -> dict[str, Any]:
        """The row as `demur score` and `demur compare` read it.

        Labels stand under `hallucinated`: a truth value for the one answer, or by the answers'
        names. An answer without a label of the whole has None.
        """
        line: dict[str, Any] = {"id": self.key, "question": self.question}
        if self.answers[0].name is None:
            line |= {"answer": self.answers[0].text, "hallucinated": self.answers[0].hallucinated}
        else:
            line["answers"] = {str(one.name): one.text for one in self.answers}
            line["hallucinated"] = {str(one.name): one.hallucinated for one in self.answers}
        if self.contexts:
            line["contexts"] = list(self.contexts)
        if self.group:
            line["group"] = self.group
        if self.metadata:
            line["metadata"] = dict(self.metadata)
        return line


@dataclass(frozen=True)
class Reading:
    """What was read of a data set."""

    rows: tuple[LabelledRow, ...]
    left_out: Mapping[str, int] = field(default_factory=dict)
    """By the names of the filters that left rows out: how many rows."""
    kept: Mapping[str, int] = field(default_factory=dict)
    """By the names of the set's traps: how many there are among the rows."""
    missing: tuple[str, ...] = ()
    """The set's files that were not there, and without which it was read."""

    def __iter__(self) -> Iterator[LabelledRow]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)
