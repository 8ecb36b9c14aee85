"""Keep candidates in Chroma, know whose scores count, and find near questions."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from demur._text import replace_surrogates
from demur.errors import DemurError
from demur.evaluators import normalized_text
from demur.exemplars.entries import (
    Candidate,
    Entry,
    candidate_id,
    entry_of,
    from_metadata,
    group_of,
    to_metadata,
)
from demur.exemplars.exemplar import Exemplar
from demur.exemplars.offers import Offer
from demur.exemplars.scorer import Scorer
from demur.storage import Questions, parts, question_id

_PER_QUESTION = 3
"""The number of candidates that a search expects for each question; it goes on if there are more.
"""
_SPARE = 8
"""The number of extra questions that a search with limits requests, since some may not fit."""
_COUNTS, _SCORER = "scorer", "scorer-"
"""The keys of the collection's metadata: `_COUNTS` names the scorer whose scores count, and keys
that begin with `_SCORER` describe each scorer."""

Kept = tuple[str, Candidate]
"""A question and one of its candidates."""


class Candidates:
    """Keep the candidates of a store; the scorer's name is used, but no answer is scored here."""

    def __init__(self, questions: Questions, scorer: Scorer) -> None:
        """Use a collection of questions for the candidates."""
        self.questions, self._scorer = questions, scorer
        self._counts: str | None = questions.metadata().get(_COUNTS)
        self._others: list[str] = []
        """The scorers whose scores do not count any more."""

    # --- Keeping ----------------------------------------------------------------------------------

    def beside_known(self, offers: Sequence[Offer]) -> list[Offer]:
        """Return each offer with only the answers that are new or have another score."""
        known = self.questions.read(
            [self._id(one, answer) for one in offers for answer in one.answers]
        )

        def changes(offer: Offer, answer: str) -> bool:
            there = known.get(self._id(offer, answer))
            if there is None or offer.scores is None:
                return there is None
            return self._candidate(there)[1].score != offer.scores[answer]

        return [
            replace(
                offer,
                answers={
                    answer: source
                    for answer, source in offer.answers.items()
                    if changes(offer, answer)
                },
            )
            for offer in offers
        ]

    def keep(self, kept: Iterable[Kept]) -> None:
        """Write candidates; each replaces the candidate of another scorer with the same answer."""
        rows, questions, replaced = {}, {}, []
        for question, candidate in kept:
            id_ = candidate_id(question, candidate.answer, candidate.scorer)
            rows[id_], questions[id_] = to_metadata(question, candidate), question
            if candidate.scorer == self._scorer.name:
                replaced += [candidate_id(question, candidate.answer, one) for one in self._others]
        self.questions.write(rows, questions)
        self.questions.delete(replaced)

    def offered(self, offer: Offer) -> Entry:
        """Return the offered answers as they are kept."""
        rows = self.questions.read([self._id(offer, answer) for answer in offer.answers])
        kept = [self._candidate(row)[1] for row in rows.values()]
        return entry_of(offer.question, kept, self._scorer.name)

    def remove(self, question: str, answer: str | None = None) -> int:
        """Remove an answer of a question, or all its answers, and return how many records that was.

        Raises:
            DemurError: Chroma failed.
        """
        rows = self.questions.where({"group": group_of(question)})
        wanted = None if answer is None else replace_surrogates(answer)
        doomed = [
            id_
            for id_, row in rows.items()
            if wanted is None or self._candidate(row)[1].answer == wanted
        ]
        self.questions.delete(doomed)
        return len(doomed)

    def _id(self, offer: Offer, answer: str) -> str:
        return candidate_id(offer.question, answer, self._scorer.name)

    # --- Whose scores count -----------------------------------------------------------------------

    def scorers(self) -> dict[str, Mapping[str, str]]:
        """Return what each name in `Candidate.scorer` stands for: texts that describe the scorer.

        The texts are those of `FEWL.fingerprints`: references, prompts, similarity and formula.
        """
        return {
            key.removeprefix(_SCORER): json.loads(basis)
            for key, basis in self.header().items()
            if key.startswith(_SCORER)
        }

    def header(self) -> dict[str, str]:
        """Return whose scores count and the descriptions of all scorers, read again."""
        return self._noted(self.questions.metadata())

    def _noted(self, known: Mapping[str, str]) -> dict[str, str]:
        header = {key: known[key] for key in sorted(known) if key.startswith(_COUNTS)}
        self._counts = header.get(_COUNTS)
        return header

    def _own_header(self) -> dict[str, str]:
        return {_COUNTS: self._scorer.name, f"{_SCORER}{self._scorer.name}": self._scorer.basis}

    def claim(self) -> None:
        """Declare that this scorer's scores count, unless another scorer was declared before.

        Raises:
            DemurError: Another scorer's scores count.
        """
        # It is read each time, since another process may have called `rescore`.
        header = self._noted(self.questions.claim(self._own_header()))
        if self._counts != self._scorer.name:
            raise self._refusal(header)
        own = f"{_SCORER}{self._scorer.name}"
        self._others = [key.removeprefix(_SCORER) for key in header if key not in (_COUNTS, own)]

    def take_over(self) -> list[str]:
        """Make this scorer's scores count from now on, and return the questions that lack some."""
        self.questions.say(self._own_header())
        return [entry.question for entry in self.entries() if entry.stale]

    def adopt(self, header: Mapping[str, str]) -> None:
        """Adopt the scorers that a file describes.

        Raises:
            DemurError: Another scorer's scores count in the file than here.
        """
        here = self.header()
        if len({here.get(_COUNTS), header.get(_COUNTS)} - {None}) == 2:
            raise DemurError(
                f"in {self.questions} the scores of {here[_COUNTS]} count, and in the file those "
                f"of {header[_COUNTS]}: load it into another collection, and rescore one of them"
            )
        self.questions.say({**header, **here})
        self.header()

    def _reading(self) -> str:
        """Return the name of the scorer whose scores are read, which are those that count.

        Raises:
            DemurError: The store has a scorer whose scores do not count.
        """
        own = self._scorer.name
        if self._scorer.fewl and self._counts not in (None, own):
            header = self.header()  # another process may have called `rescore`
            if self._counts not in (None, own):
                raise self._refusal(header)
        return self._counts or own

    def _refusal(self, header: Mapping[str, str]) -> DemurError:
        remedy = (
            "call rescore() to have all answers scored anew"
            if self._scorer.fewl
            else "open it with that scorer"
        )
        return DemurError(
            f"in {self.questions} the scores of another scorer count: "
            f"{header.get(f'{_SCORER}{self._counts}')}, and this one's are of "
            f"{self._scorer.basis}. They cannot be compared: {remedy}, or give another collection"
        )

    # --- Reading ----------------------------------------------------------------------------------

    def __len__(self) -> int:
        """Return the number of questions; this reads the ids of all candidates."""
        return len({_group(id_) for id_ in self.questions.all_ids()})

    def get(self, question: str) -> Entry | None:
        """Return the entry of exactly this question, or None."""
        self.header()
        rows = self.questions.where({"group": group_of(question)})
        return next(iter(self._entries(rows)), None)

    def entries(self) -> Iterator[Entry]:
        """Yield all questions with their candidates, always in the same order, read in parts."""
        self.header()
        groups = [list(ids) for _, ids in groupby(self.questions.all_ids(), _group)]
        for some in parts(groups):
            yield from self._entries(self.questions.read([id_ for ids in some for id_ in ids]))

    def nearest(
        self, question: str, k: int, max_similarity: float | None, min_score: float | None
    ) -> list[Exemplar]:
        """Return the most similar questions; `ExampleStore.nearest` describes the arguments."""
        own = question_id(question)
        vector = self.questions.new_vectors({own: question})[own]
        picky = max_similarity is not None or min_score is not None
        wide = _PER_QUESTION * (k + 1 + (_SPARE if picky else 0))
        while True:
            scorer = self._reading()
            exemplars, is_all = self._search(vector, wide, scorer)
            texts, fitting = {normalized_text(question)}, list[Exemplar]()
            for exemplar in exemplars:
                if not exemplar.fits(max_similarity, min_score):
                    continue
                text = normalized_text(exemplar.question)
                if text not in texts:
                    texts.add(text)
                    fitting.append(exemplar)
                if len(fitting) == k:
                    return fitting
            if not is_all:
                wide *= 4
            elif self.header().get(_COUNTS, scorer) == scorer:
                return fitting
            # Otherwise, another process called `rescore` meanwhile, and the search is repeated.

    def _search(
        self, vector: NDArray[np.float32], wide: int, scorer: str
    ) -> tuple[list[Exemplar], bool]:
        """Return each question's best of the `wide` nearest candidates, and if these are all."""
        reply = self.questions.chroma.search(
            partial(
                self.questions.collection.query,
                query_embeddings=[vector],
                n_results=wide,
                include=["metadatas", "distances"],
            )
        )
        metadatas, distances = reply["metadatas"][0], reply["distances"][0]
        is_all = len(distances) < wide
        # The last question may have more candidates, so it waits for the next search.
        edge = math.inf if is_all else max(distances)
        best: dict[str, Exemplar] = {}
        for metadata, distance in zip(metadatas, distances, strict=True):
            if metadata is None or distance >= edge:
                continue  # without metadata, it was removed meanwhile
            with self._readable(metadata):
                kept, group = json.loads(metadata["kept"]), metadata["group"]
                answer, score, known = kept["answer"], kept["score"], best.get(group)
                better = known is None or (-score, answer) < (-known.score, known.answer)
                if better and kept["scorer"] == scorer:
                    best[group] = Exemplar(group, kept["question"], answer, score, 1.0 - distance)
        ranked = sorted(best.values(), key=lambda exemplar: (-exemplar.similarity, exemplar.id))
        return ranked, is_all

    def _entries(self, rows: Mapping[str, Mapping[str, Any]]) -> Iterator[Entry]:
        """Yield the entries of records that contain all candidates of each question."""
        for _, ids in groupby(sorted(rows), _group):
            kept = [self._candidate(rows[id_]) for id_ in ids]
            candidates = (candidate for _, candidate in kept)
            yield entry_of(kept[0][0], candidates, self._counts or self._scorer.name)

    def _candidate(self, metadata: Mapping[str, Any]) -> Kept:
        with self._readable(metadata):
            return from_metadata(metadata)

    @contextmanager
    def _readable(self, metadata: Mapping[str, Any]) -> Iterator[None]:
        try:
            yield
        except (KeyError, TypeError, ValueError) as error:
            raise DemurError(
                f"a record in {self.questions} cannot be read: {error!r} in {metadata!r:.200}. "
                "Delete that record, or give another collection"
            ) from error


def _group(id_: str) -> str:
    """Return the part of a candidate's id that identifies its question."""
    return id_.partition("-")[0]
