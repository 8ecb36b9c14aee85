"""What is kept of a question: candidate answers, each with its score and where that came from."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

import numpy as np

from demur._jsonl import as_json
from demur._text import replace_surrogates

KIND = "exemplars-1"
"""Changes when entries take another form."""

_WRITER = "candidates-"
"""Under keys that begin so stands what a writer put there."""
_QUESTION = "question"


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
    """Those of the store's scorer, best first; equal ones in an order that stays."""
    stale: tuple[Candidate, ...] = ()
    """Scored by another scorer than the store's: they do not compete until `rescore`."""

    @property
    def all(self) -> tuple[Candidate, ...]:
        """All candidates, the stale ones too."""
        return (*self.candidates, *self.stale)

    @property
    def best(self) -> Candidate | None:
        """The one with the highest score; None where all are stale."""
        return self.candidates[0] if self.candidates else None


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


def candidate_key(answer: str) -> str:
    """The key by which an answer is known among those to its question: the hash of its text."""
    return hashlib.sha256(replace_surrogates(answer).encode()).hexdigest()[:32]


# --- As Chroma's metadata -------------------------------------------------------------------------
# A question's metadata have one value for each writer, with all candidates that it put there.
# Chroma leaves the values that an update does not give, so of processes that add to one question
# at once none takes another's away. A value for each candidate would do that too, but every request
# to a collection takes time by the number of different keys that were ever used in it.


def to_metadata(
    question: str, candidates: Mapping[str, Candidate], writer: str, there: Mapping[str, Any]
) -> dict[str, str]:
    """What a writer has to put where metadata are, for these candidates to be kept.

    Args:
        question: The question.
        candidates: By their keys; they take the place of what the writer put there before.
        writer: Its name.
        there: The question's metadata; empty where there are none.

    Raises:
        ValueError: What the writer put there before cannot be read.
    """
    name = f"{_WRITER}{writer}"
    kept = _read(there, name) if name in there else {}
    kept |= {key: asdict(candidate) for key, candidate in candidates.items()}
    return {_QUESTION: replace_surrogates(question), name: as_json(kept)}


def without(metadata: Mapping[str, Any], keys: Collection[str]) -> dict[str, str | None]:
    """What has to be changed for candidates to be gone, whoever wrote them; None: the whole value.

    Raises:
        ValueError: The metadata cannot be read.
    """
    changed: dict[str, str | None] = {}
    for name in _names(metadata):
        kept = _read(metadata, name)
        left = {key: candidate for key, candidate in kept.items() if key not in keys}
        if len(left) < len(kept):
            changed[name] = as_json(left) if left else None
    return changed


def keys_of(metadata: Mapping[str, Any]) -> set[str]:
    """The keys of the candidates that metadata hold.

    Raises:
        ValueError: The metadata cannot be read.
    """
    return {key for name in _names(metadata) for key in _read(metadata, name)}


def from_metadata(metadata: Mapping[str, Any], scorer: str | None) -> tuple[Entry, bool]:
    """The entry that metadata hold, for the scorer whose scores count.

    Of a candidate that several writers put there the scorer's own counts, and then the latest.

    Returns:
        The entry, and whether the latest score of some candidate is another scorer's: then other
        scores may count by now.

    Raises:
        KeyError, TypeError, ValueError: They hold none.
    """
    candidates: dict[str, Candidate] = {}
    latest: dict[str, tuple[datetime, bool]] = {}
    for name in _names(metadata):
        for key, fields in _read(metadata, name).items():
            candidate = Candidate(**fields)
            own, time = candidate.scorer == scorer, datetime.fromisoformat(candidate.scored_at)
            if key not in candidates or (own, time) > _weight(candidates[key], scorer):
                candidates[key] = candidate
            latest[key] = max(latest.get(key, (time, own)), (time, own))
    ranked = sorted(candidates.items(), key=lambda kept: (-kept[1].score, kept[0]))
    entry = Entry(
        metadata[_QUESTION],
        tuple(candidate for _, candidate in ranked if candidate.scorer == scorer),
        tuple(candidate for _, candidate in ranked if candidate.scorer != scorer),
    )
    return entry, not all(own for _, own in latest.values())


def _names(metadata: Mapping[str, Any]) -> list[str]:
    return sorted(name for name in metadata if name.startswith(_WRITER))


def _read(metadata: Mapping[str, Any], name: str) -> dict[str, Any]:
    kept = json.loads(metadata[name])
    if not isinstance(kept, dict):
        raise ValueError(f"expected candidates by their keys under {name}, got {kept!r}")
    return kept


def _weight(candidate: Candidate, scorer: str | None) -> tuple[bool, datetime]:
    return candidate.scorer == scorer, datetime.fromisoformat(candidate.scored_at)


# --- As a line of a file --------------------------------------------------------------------------


def as_line(entry: Entry) -> dict[str, Any]:
    """The entry as a JSON object."""
    return {_QUESTION: entry.question, "candidates": [asdict(candidate) for candidate in entry.all]}


def from_line(line: Any) -> tuple[str, dict[str, Candidate]]:
    """The question of `as_line`'s object, and the candidates by their keys.

    Raises:
        ValueError: It is none.
    """
    try:
        question, candidates = line[_QUESTION], [Candidate(**row) for row in line["candidates"]]
    except (KeyError, TypeError) as error:
        raise ValueError(f"expected a question with its candidates: {error!r}") from error
    if not is_text(question) or not candidates:
        raise ValueError(f"expected a question with its candidates, got {line!r}")
    return question, {candidate_key(candidate.answer): candidate for candidate in candidates}
