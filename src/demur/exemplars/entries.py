"""Define what is kept of a question: candidate answers with their scores and origins."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

import numpy as np

from demur._system import as_json
from demur._text import replace_surrogates
from demur.storage import question_id

KIND = "exemplars-2"
"""The version of the candidates' form; it changes when the form changes."""


@dataclass(frozen=True)
class Candidate:
    """Hold an answer that competes to be the exemplar of its question.

    Raises:
        ValueError: A field has a wrong type or value.
    """

    answer: str
    score: float
    """A finite number, higher is better. Only scores of the same scorer can be compared."""
    scorer: str
    """The scorer of the score: a key of `ExampleStore.scorers()`, which describes its models and
    prompts."""
    scored_at: str
    """The time when the answer was scored, or its score was given: ISO 8601, UTC."""
    source: str | None = None
    """Where the answer came from, in the caller's words: a run, a model, a file."""
    parts: Mapping[str, Any] = field(default_factory=dict)
    """The numbers that the score is made of, from FEWL's `details`; empty for a given score."""

    def __post_init__(self) -> None:
        # The values may come from a file or a collection, which may contain anything.
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
    """Hold a question with its candidates, best first."""

    question: str
    candidates: tuple[Candidate, ...]
    """The candidates of the scorer whose scores count, best first; ties have a fixed order."""
    stale: tuple[Candidate, ...] = ()
    """The candidates of other scorers; they do not compete until `rescore`."""

    @property
    def all(self) -> tuple[Candidate, ...]:
        """Return all candidates, including the stale ones."""
        return (*self.candidates, *self.stale)

    @property
    def best(self) -> Candidate | None:
        """Return the candidate with the highest score, or None if all are stale."""
        return self.candidates[0] if self.candidates else None


def entry_of(question: str, candidates: Iterable[Candidate], scorer: str) -> Entry:
    """Return the entry of a question, for the scorer whose scores count."""
    ranked = sorted(candidates, key=lambda candidate: (-candidate.score, candidate.answer))
    return Entry(
        question,
        tuple(candidate for candidate in ranked if candidate.scorer == scorer),
        tuple(candidate for candidate in ranked if candidate.scorer != scorer),
    )


def is_text(text: object) -> bool:
    """Return whether the value is a text that is not blank."""
    return isinstance(text, str) and bool(text.strip())


def is_score(score: object) -> bool:
    """Return whether the value is a finite number, numpy's included, but not a text or a bool."""
    if isinstance(score, str | bool | np.bool_) or not hasattr(score, "__float__"):
        return False
    try:
        return math.isfinite(float(score))
    except (OverflowError, TypeError, ValueError):  # an integer beyond all floats, an array
        return False


# --- As a record of Chroma's ----------------------------------------------------------------------
# There is one record for each candidate, with the question's vector. The metadata of a record are
# two texts, since the time of a search depends on the number of values that it returns: 42 records
# took 4.6 ms with six values each, and 2.5 ms with two.


def candidate_id(question: str, answer: str, scorer: str) -> str:
    """Return the id of a candidate's record, which begins with the part of its question."""
    text = "\0".join((replace_surrogates(answer), scorer))
    return f"{group_of(question)}-{hashlib.sha256(text.encode()).hexdigest()[:32]}"


def group_of(question: str) -> str:
    """Return the beginning of the ids of a question's candidates, which is also their "group"."""
    return question_id(question)[:32]


def to_metadata(question: str, candidate: Candidate) -> dict[str, str]:
    """Return a candidate as Chroma's metadata."""
    kept = {"question": question, **asdict(candidate)}
    return {"group": group_of(question), "kept": replace_surrogates(as_json(kept))}


def from_metadata(metadata: Mapping[str, Any]) -> tuple[str, Candidate]:
    """Return the question and the candidate that Chroma's metadata contain.

    Raises:
        KeyError, TypeError, ValueError: The metadata contain no candidate.
    """
    fields = json.loads(metadata["kept"])
    return fields.pop("question"), Candidate(**fields)


# --- As a line of a file --------------------------------------------------------------------------


def as_line(entry: Entry) -> dict[str, Any]:
    """Return the entry as a JSON object."""
    return {"question": entry.question, "candidates": [asdict(one) for one in entry.all]}


def from_line(line: Any) -> list[tuple[str, Candidate]]:
    """Return the candidates in an object of `as_line`, each with the question.

    Raises:
        ValueError: The object has no question or no candidates, or a candidate is not valid.
    """
    try:
        question, rows = line["question"], line["candidates"]
        candidates = [(question, Candidate(**row)) for row in rows]
    except (KeyError, TypeError) as error:
        raise ValueError(f"expected a question with its candidates: {error!r}") from error
    if not is_text(question) or not candidates:
        raise ValueError(f"expected a question with its candidates, got {line!r}")
    return candidates
