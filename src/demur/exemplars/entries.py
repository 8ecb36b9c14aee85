"""What is kept of a question: candidate answers, each with its score and where that came from."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

import numpy as np

from demur._jsonl import as_json
from demur._text import replace_surrogates
from demur.storage import question_id

KIND = "exemplars-2"
"""Changes when candidates take another form."""


@dataclass(frozen=True)
class Candidate:
    """An answer that competes to be the question's exemplar.

    Raises:
        ValueError: A field is not what it is said to be.
    """

    answer: str
    score: float
    """Finite; more is better. Only scores of one scorer can be compared."""
    scorer: str
    """Whose score it is: a key of `ExampleStore.scorers()`, which tells models and prompts."""
    scored_at: str
    """When it was scored, or given: ISO 8601, UTC."""
    source: str | None = None
    """Where the answer came from, as the caller named it: a run, a model, a file."""
    parts: Mapping[str, Any] = field(default_factory=dict)
    """What the score is made of, FEWL's `details` in numbers; empty for a score that was given."""

    def __post_init__(self) -> None:
        # A file or a collection may hold anything.
        texts = {"answer": self.answer, "scorer": self.scorer, "scored_at": self.scored_at}
        for name, text in texts.items():
            if not is_text(text):
                raise ValueError(f"expected a text as {name}, got {text!r}")
        if not is_score(self.score):
            raise ValueError(f"expected a finite number as score, got {self.score!r}")
        if datetime.fromisoformat(self.scored_at).tzinfo is None:
            raise ValueError(f"expected a time with a zone as scored_at, got {self.scored_at!r}")
        if not isinstance(self.source, str | None):
            raise ValueError(f"expected a text or None as source, got {self.source!r}")
        if not isinstance(self.parts, Mapping):
            raise ValueError(f"expected an object as parts, got {self.parts!r}")


@dataclass(frozen=True)
class Entry:
    """A question with its candidates, best first."""

    question: str
    candidates: tuple[Candidate, ...]
    """Those of the scorer whose scores count, best first; equal ones in an order that stays."""
    stale: tuple[Candidate, ...] = ()
    """Scored by another scorer: they do not compete until `rescore`."""

    @property
    def all(self) -> tuple[Candidate, ...]:
        """All candidates, the stale ones too."""
        return (*self.candidates, *self.stale)

    @property
    def best(self) -> Candidate | None:
        """The one with the highest score; None where all are stale."""
        return self.candidates[0] if self.candidates else None


def entry_of(question: str, candidates: Iterable[Candidate], scorer: str) -> Entry:
    """The entry of a question, for the scorer whose scores count."""
    ranked = sorted(candidates, key=lambda candidate: (-candidate.score, candidate.answer))
    return Entry(
        question,
        tuple(candidate for candidate in ranked if candidate.scorer == scorer),
        tuple(candidate for candidate in ranked if candidate.scorer != scorer),
    )


def is_text(text: object) -> bool:
    """Whether it is a text that says something."""
    return isinstance(text, str) and bool(text.strip())


def is_score(score: object) -> bool:
    """Whether it is a finite number: of numpy too, but neither a text nor True."""
    if isinstance(score, str | bool | np.bool_) or not hasattr(score, "__float__"):
        return False
    try:
        return math.isfinite(float(score))
    except (OverflowError, TypeError, ValueError):  # an integer beyond all floats, an array
        return False


# --- As a record of Chroma's ----------------------------------------------------------------------
# One for each candidate, with the question's vector. Its metadata are two texts, since a search
# takes time by the number of values that it brings: of 42 records with six each it took 4.6 ms,
# with two 2.5 ms.


def candidate_id(question: str, answer: str, scorer: str) -> str:
    """The id of a candidate's record: it begins with its question's part."""
    text = "\0".join((replace_surrogates(answer), scorer))
    return f"{group_of(question)}-{hashlib.sha256(text.encode()).hexdigest()[:32]}"


def group_of(question: str) -> str:
    """What the ids of all candidates of a question begin with, and what they have as "group"."""
    return question_id(question)[:32]


def to_metadata(question: str, candidate: Candidate) -> dict[str, str]:
    """A candidate as Chroma's metadata."""
    kept = {"question": question, **asdict(candidate)}
    return {"group": group_of(question), "kept": replace_surrogates(as_json(kept))}


def from_metadata(metadata: Mapping[str, Any]) -> tuple[str, Candidate]:
    """The question and the candidate that Chroma's metadata hold.

    Raises:
        KeyError, TypeError, ValueError: They hold none.
    """
    fields = json.loads(metadata["kept"])
    return fields.pop("question"), Candidate(**fields)


# --- As a line of a file --------------------------------------------------------------------------


def as_line(entry: Entry) -> dict[str, Any]:
    """The entry as a JSON object."""
    return {"question": entry.question, "candidates": [asdict(one) for one in entry.all]}


def from_line(line: Any) -> list[tuple[str, Candidate]]:
    """The candidates in `as_line`'s object, each with the question.

    Raises:
        ValueError: There are none.
    """
    try:
        question, rows = line["question"], line["candidates"]
        candidates = [(question, Candidate(**row)) for row in rows]
    except (KeyError, TypeError) as error:
        raise ValueError(f"expected a question with its candidates: {error!r}") from error
    if not is_text(question) or not candidates:
        raise ValueError(f"expected a question with its candidates, got {line!r}")
    return candidates
