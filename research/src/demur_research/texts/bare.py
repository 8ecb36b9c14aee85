"""Hold bare answers, of one word to four, and short answers that look like markers of having none.

The texts are our own invention, in five and six languages. Their authors did not know how demur
judges them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from demur_research.texts import FOLDER, rows_of

GROUPS = ("elsewhere", "near", "right")
"""What a context says of the question. "elsewhere": nothing, the answer is wrong. "near": something
else than the answer. "right": the answer."""
FORMS = ("world", "context", "name", "number", "yes-no", "choice", "phrase")
"""What a bare answer is. "world": true in the world; "context": a name from the context, which it
says of something else."""


@dataclass(frozen=True)
class Bare:
    """Hold one bare answer."""

    id: str
    language: str
    """The language of all texts, as a code of two letters."""
    group: str
    """One of `GROUPS`."""
    form: str
    """One of `FORMS`."""
    question: str
    context: str
    answer: str
    right: bool
    """Whether the context supports the answer."""
    held_out: bool
    """Whether the rules were made without it."""


@dataclass(frozen=True)
class Marker:
    """Hold a short answer that states something, or only looks so."""

    id: str
    language: str
    kind: str
    question: str
    answer: str
    states: bool


@cache
def bare_answers() -> tuple[Bare, ...]:
    """Return all bare answers, in the order of the file."""
    rows = rows_of(FOLDER / "bare.jsonl")
    split = [(row.pop("kind").split("/"), row) for row in rows]
    return tuple(Bare(group=group, form=form, **row) for (group, form), row in split)


@cache
def markers() -> tuple[Marker, ...]:
    """Return all short answers that look like markers, in the order of the file."""
    return tuple(Marker(**row) for row in rows_of(FOLDER / "markers.jsonl"))
