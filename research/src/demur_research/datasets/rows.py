"""Define what every data set is read into: rows with labels for answers, sentences or spans."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import JsonValue


@dataclass(frozen=True)
class Part:
    """Describe a labelled sentence or span of an answer by offsets `[start, end)` into its text."""

    start: int
    end: int
    hallucinated: bool
    label: str
    """The publisher's word for the label."""


@dataclass(frozen=True)
class Answer:
    """Hold one answer, with the labels that people gave it."""

    text: str
    hallucinated: bool | None
    """Whether the answer as a whole is hallucinated; None where the publisher gives no such
    label."""
    name: str | None = None
    """The name that identifies the answer in its row, such as "best" or the model that wrote it;
    None where the row has one answer only."""
    label: str | None = None
    """The publisher's word for the label of the whole answer."""
    parts: tuple[Part, ...] = ()
    """Labelled sentences or spans, in their order; empty where only the whole answer has a
    label."""


@dataclass(frozen=True)
class LabelledRow:
    """Hold a question, or a claim without one, with its answers and the texts that they rest on."""

    key: str
    """A key that is unique in the data set, and the same whichever rows are left out."""
    question: str | None
    answers: tuple[Answer, ...]
    """At least one answer. The names of the answers differ."""
    contexts: tuple[str, ...] = ()
    group: str = ""
    """What the row has in common with other rows, such as a document. The bootstrap draws a group
    as one. Empty: the row stands alone."""
    metadata: Mapping[str, JsonValue] = field(default_factory=dict)
    """Other values that a method or a table needs, such as `entity`, `domain` or `short_answer`."""

    def as_line(self) -> dict[str, Any]:
        """Return the row in the form that `demur score` and `demur compare` read.

        The labels stand under `hallucinated`: a truth value if the row has one answer without a
        name, or else a mapping from the answers' names. An answer without a label of the whole has
        None.
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
    """Hold the rows that were read of a data set, and what was left out, kept and missing."""

    rows: tuple[LabelledRow, ...]
    left_out: Mapping[str, int] = field(default_factory=dict)
    """The number of rows that each filter left out, by the filter's name."""
    kept: Mapping[str, int] = field(default_factory=dict)
    """How often each trap of the data set occurs in the rows, by the trap's name."""
    missing: tuple[str, ...] = ()
    """The paths of the data set's files that were not found. The rows were read without them."""
    folder: Path | None = None
    """The folder of the files, where records that are published beside them are looked for."""

    def __iter__(self) -> Iterator[LabelledRow]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)
