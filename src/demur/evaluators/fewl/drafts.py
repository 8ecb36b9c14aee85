"""What some references said of a question that others could not answer: kept until those do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

import numpy as np
from pydantic import TypeAdapter

from demur._jsonl import as_json
from demur.evaluators.fewl.parsing import Pairs
from demur.storage import Chroma, question_id

_KIND = "fewl-drafts-1"
_ANSWERS = TypeAdapter(tuple[str, ...])
_PAIRS = TypeAdapter(Pairs)
_ANY = np.ones(1, np.float32)
"""Chroma wants a vector; drafts are found by their id alone."""


@dataclass(frozen=True)
class Draft:
    """The replies that came."""

    answers: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    """By the place of the reference model: one of each of several, or all of a lone one."""
    pairs: Pairs | None = None


class Drafts:
    """Drafts by question, in a collection of their own, where no search finds them."""

    def __init__(self, chroma: Chroma, name: str) -> None:
        """Open or make the collection of that name."""
        self._chroma = chroma
        self._collection = chroma.collection(name, _KIND, "none")

    def get(self, question: str) -> Draft:
        """What is kept of a question; an empty draft if nothing is."""
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
        """Keep replies, beside those that are kept of the question."""
        row = {str(place): as_json(answers) for place, answers in draft.answers.items()}
        if draft.pairs is not None:
            row["pairs"] = as_json(asdict(draft.pairs))
        with self._chroma.use():
            # An update leaves the keys that it does not give.
            self._collection.upsert([question_id(question)], embeddings=[_ANY], metadatas=[row])

    def drop(self, question: str) -> None:
        """Forget a question: all of it is known."""
        with self._chroma.use():
            self._collection.delete([question_id(question)])
