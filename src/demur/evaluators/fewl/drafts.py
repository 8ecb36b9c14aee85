"""Keep replies of some references, until the other references have answered the question too."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

import numpy as np
from pydantic import TypeAdapter

from demur._system import as_json
from demur.evaluators.fewl.parsing import Pairs
from demur.storage import Chroma, question_id

_KIND = "fewl-drafts-1"
_ANSWERS = TypeAdapter(tuple[str, ...])
_PAIRS = TypeAdapter(Pairs)
_ANY = np.ones(1, np.float32)
"""Chroma requires a vector, although drafts are found by their id only."""


@dataclass(frozen=True)
class Draft:
    """Hold the replies that have arrived."""

    answers: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    """The answers, by the place of the reference model: one answer of each of several models, or
    all answers of a single model."""
    pairs: Pairs | None = None


class Drafts:
    """Keep drafts by question, in a collection of their own that no search reads."""

    def __init__(self, chroma: Chroma, name: str) -> None:
        """Open or make the collection with this name."""
        self._chroma = chroma
        self._collection = chroma.collection(name, _KIND, "none")

    def get(self, question: str) -> Draft:
        """Return the draft of a question; it is empty if nothing is kept."""
        with self._chroma.use():
            rows = self._collection.get(ids=[question_id(question)], include=["metadatas"])
        if not rows["metadatas"]:
            return Draft()
        kept = dict(rows["metadatas"][0])
        pairs = kept.pop("pairs", None)
        return Draft(
            {int(place): _ANSWERS.validate_json(answers) for place, answers in kept.items()},
            None if pairs is None else _PAIRS.validate_json(pairs),
        )

    def keep(self, question: str, draft: Draft) -> None:
        """Keep replies, together with the replies that are already kept of the question."""
        row = {str(place): as_json(answers) for place, answers in draft.answers.items()}
        if draft.pairs is not None:
            row["pairs"] = as_json(asdict(draft.pairs))
        with self._chroma.use():
            # An update leaves the keys unchanged that it does not contain.
            self._collection.upsert([question_id(question)], embeddings=[_ANY], metadatas=[row])

    def drop(self, question: str) -> None:
        """Delete the draft of a question, since everything about it is known."""
        with self._chroma.use():
            self._collection.delete([question_id(question)])
