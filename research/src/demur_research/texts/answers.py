"""Hold answers as assistants write them: some state something, others state nothing.

For every answer that states something, the file says which parts do so, and whether the contexts
support all of them. The facts are invented or common knowledge, and the wording is our own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from demur import Evaluation
from demur_research.texts import rows_of


@dataclass(frozen=True)
class Answer:
    """Hold one answer, with what a checker sees beside it and what it should find."""

    id: str
    kind: str
    """The form of the answer, such as "negation" or "table"."""
    language: str
    """The language, as a code of two letters."""
    question: str | None
    answer: str
    contexts: tuple[str, ...]
    """One or two passages, at most 60 words in all."""
    states: bool
    """Whether the answer states anything that can be checked."""
    supported: bool | None
    """Whether the contexts support all its statements; None if it states nothing."""
    statements: tuple[str, ...]
    """The parts of the answer that each state something, in their order and without overlap."""

    def __post_init__(self) -> None:
        """Refuse an answer whose fields contradict each other."""
        if self.states == (self.supported is None) or self.states != bool(self.statements):
            raise ValueError(f"{self.id}: states, supported and statements do not fit together.")
        if not self.contexts or sum(len(text.split()) for text in self.contexts) > 60:
            raise ValueError(f"{self.id}: expected contexts of 60 words at most.")
        _ = self.places

    @property
    def places(self) -> tuple[tuple[int, int], ...]:
        """Return where each statement starts and ends in the answer."""
        found = []
        end = 0
        for statement in self.statements:
            start = self.answer.find(statement, end)
            if start < 0:
                raise ValueError(f"{self.id}: {statement!r} does not stand in the answer there.")
            end = start + len(statement)
            found.append((start, end))
        return tuple(found)

    @property
    def sample(self) -> dict[str, Any]:
        """Return the answer in the form that an evaluator takes."""
        return {
            "question": self.question,
            "answer": self.answer,
            "contexts": list(self.contexts),
        }


def _read(row: Mapping[str, Any]) -> Answer:
    lists = {name: tuple(row[name]) for name in ("contexts", "statements")}
    return Answer(**{**row, **lists})


ANSWERS = tuple(map(_read, rows_of(Path(__file__).with_suffix(".jsonl"))))
"""All answers, in the order of the file."""

STATING = tuple(one for one in ANSWERS if one.states)
"""The answers that state something; half of them are supported."""

EMPTY = tuple(one for one in ANSWERS if not one.states)
"""The answers that state nothing."""


def let_through(found: Evaluation) -> bool:
    """Return whether a guard lets the answer go: it passed, or states nothing to check."""
    return not found.undetermined and (found.passed is True or found.label == "Abstain")


def unchecked(one: Answer, found: Evaluation) -> list[str]:
    """Return the statements of an answer that no claim with a label covers.

    A claim covers every statement that its span overlaps. A claim without a span covers nothing,
    with one exception: if it repeats a short answer, it covers the whole answer.
    """
    labelled = [claim for claim in found.claims if claim.label is not None]
    if one.kind in ("one_word", "short"):
        said = one.answer.strip(" .!。।").casefold()
        if any(claim.span is None and said in claim.text.casefold() for claim in labelled):
            return []
    spans = [claim.span for claim in labelled if claim.span is not None]
    return [
        statement
        for statement, (start, end) in zip(one.statements, one.places, strict=True)
        if not any(span.start < end and start < span.end for span in spans)
    ]
