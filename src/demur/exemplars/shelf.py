"""Entries in Chroma, and whose scores count among them."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from demur._forks import lock
from demur.errors import DemurError
from demur.evaluators import normalized_text
from demur.exemplars.entries import Candidate, Entry, from_metadata, keys_of, to_metadata, without
from demur.exemplars.scorer import Scorer
from demur.exemplars.selection import Exemplar
from demur.exemplars.writers import Writer
from demur.storage import Questions, parts, question_id

COUNTS = "scorer"
"""Under this key the collection says whose scores count."""
_SCORER = "scorer-"
"""Under keys that begin so, who a scorer is."""
_SPARE = 8
"""Questions asked for beyond the number wanted, where some may not do."""
_TRIES = 5

_writing = lock()
"""One for all shelves, since those that have one folder open write under one name."""

Kept = Mapping[str, tuple[str, Mapping[str, Candidate]]]
"""By the question's id its text, and candidates by their keys."""


class Shelf:
    """What a store of exemplars keeps; it knows its scorer's name and never asks it."""

    def __init__(self, questions: Questions, scorer: Scorer) -> None:
        """Stand on a collection of questions."""
        self.questions = questions
        self._scorer = scorer
        self._writer = Writer(questions)
        self._counts: str | None = questions.metadata().get(COUNTS)

    def close(self) -> None:
        """Let go of the name that is written under, and of the folder."""
        self._writer.close()
        self.questions.chroma.close()

    # --- Whose scores count -----------------------------------------------------------------------

    def claim(self) -> None:
        """Say that this scorer's scores count, if nobody said so before.

        Raises:
            DemurError: Another scorer's do.
        """
        # Asked each time: another process may have had all scored anew.
        self._counts = self.questions.claim(self._own_header()).get(COUNTS)
        if self._counts != self._scorer.name:
            self._refuse()

    def check(self) -> None:
        """Refuse to choose by scores that are not the scorer's, if there is one.

        Raises:
            DemurError: Another scorer's scores count.
        """
        if self._scorer.fewl and self._counts not in (None, self._scorer.name):
            self._refuse()

    def take_over(self) -> None:
        """Say that this scorer's scores count from now on."""
        self.questions.say(self._own_header())
        self._counts = self._scorer.name

    def header(self) -> dict[str, str]:
        """Whose scores count, and who that is and was, as the collection says it, in order."""
        known = sorted(self.questions.metadata().items())
        return {key: text for key, text in known if key == COUNTS or key.startswith(_SCORER)}

    def scorers(self) -> dict[str, Mapping[str, str]]:
        """By the names of scorers, what they are."""
        scorers = {key: text for key, text in self.header().items() if key != COUNTS}
        return {key.removeprefix(_SCORER): json.loads(text) for key, text in scorers.items()}

    def adopt(self, header: Mapping[str, str]) -> None:
        """Have the scores count that count in a file.

        Raises:
            DemurError: Others count here.
        """
        self._counts = self.questions.claim(header).get(COUNTS) if header else self._counts
        if header and self._counts != header.get(COUNTS):
            raise DemurError(
                f"in the file the scores of {header.get(COUNTS)} count, and in {self.questions} "
                f"those of {self._counts}: load it into another collection, and rescore one of them"
            )

    def _own_header(self) -> dict[str, str]:
        return {COUNTS: self._scorer.name, f"{_SCORER}{self._scorer.name}": self._scorer.basis}

    def _refuse(self) -> None:
        header = self.header()
        self._counts = header.get(COUNTS)
        if self._counts == self._scorer.name:  # another process had all scored anew
            return
        remedy = (
            "call rescore() to have all answers scored anew"
            if self._scorer.fewl
            else "open it with that scorer"
        )
        raise DemurError(
            f"in {self.questions} the scores of another scorer count: "
            f"{header.get(f'{_SCORER}{self._counts}')}, and this one's are of "
            f"{self._scorer.basis}. They cannot be compared: {remedy}, or give another collection"
        )

    # --- Entries ----------------------------------------------------------------------------------

    def read(self, ids: Sequence[str]) -> dict[str, Entry]:
        """The entries that are there of these; a question without candidates is on its way out."""
        rows = self.questions.read(ids)
        entries = {id_: self._entry(id_, rows[id_]) for id_ in ids if id_ in rows}
        if any(others for _, others in entries.values()) and self._moved():
            entries = {id_: self._entry(id_, rows[id_]) for id_ in entries}
        return {id_: entry for id_, (entry, _) in entries.items() if entry.all}

    def all(self) -> Iterator[dict[str, Entry]]:
        """All entries in an order that stays the same, in parts."""
        return map(self.read, parts(self.questions.all_ids()))

    def keep(self, kept: Kept) -> dict[str, Entry]:
        """Write candidates, beside those that are there, and read what is then kept.

        Raises:
            DemurError: What is written is taken away again and again.
        """
        texts = {id_: question for id_, (question, _) in kept.items()}
        there = self.questions.read(list(kept))
        # Now, since it may take a call, and others wait while this writes.
        self.questions.new_vectors({id_: texts[id_] for id_ in texts if id_ not in there})
        with _writing:
            for _ in range(_TRIES):
                there = self.questions.read(list(kept))
                rows = {id_: self._row(id_, *kept[id_], there.get(id_, {})) for id_ in kept}
                # Chroma writes nothing, and says nothing, where another process deletes: so it is
                # done once nothing is left to be written.
                lacking = {
                    id_: row
                    for id_, row in rows.items()
                    if not row.items() <= there.get(id_, {}).items()
                }
                if not lacking:
                    return {id_: self._entry(id_, there[id_])[0] for id_ in kept}
                self.questions.write(lacking, texts)
        raise DemurError(f"{len(lacking)} questions that were written to {self.questions} are gone")

    def forget(self, doomed: Mapping[str, Sequence[str]]) -> None:
        """Take candidates away by their keys, and questions without any."""
        with _writing:
            there = self.questions.read(list(doomed))
            self.questions.amend({id_: without(row, doomed[id_]) for id_, row in there.items()})
            # Read again: other processes may have added to one of them.
            left = self.questions.read(list(doomed))
            self.questions.delete([id_ for id_, row in left.items() if not keys_of(row)])

    def nearest(
        self,
        question: str,
        k: int,
        max_similarity: float | None,
        min_score: float | None,
        vectors: bool,
    ) -> list[Exemplar]:
        """See `ExampleStore.nearest`."""
        own = question_id(question)
        vector = self.questions.new_vectors({own: question})[own]
        picky = max_similarity is not None or min_score is not None
        wide = k + 1 + (_SPARE if picky else 0)
        least = -math.inf if min_score is None else min_score
        while True:
            self.check()
            exemplars: list[Exemplar] = []
            texts, others = {normalized_text(question)}, False
            for id_, cosine, metadata in self.questions.by_nearness(vector, wide, vectors):
                if max_similarity is not None and cosine >= max_similarity:
                    continue
                entry, moved = self._entry(id_, metadata)
                text, best = normalized_text(entry.question), entry.best
                others |= moved
                if best is None or text in texts or best.score < least:
                    continue
                texts.add(text)
                exemplars.append(Exemplar(id_, entry.question, best.answer, best.score, cosine))
                if len(exemplars) == k:
                    break
            # Other scores may count since a rescore elsewhere: then all is looked up again.
            if not others or not self._moved():
                return sorted(exemplars, key=lambda exemplar: (-exemplar.similarity, exemplar.id))

    def _row(
        self, id_: str, question: str, candidates: Mapping[str, Candidate], there: Mapping[str, Any]
    ) -> dict[str, str]:
        try:
            return to_metadata(question, candidates, self._writer.name(), there)
        except ValueError as error:
            raise self._unreadable(id_, error) from error

    def _entry(self, id_: str, metadata: Mapping[str, Any]) -> tuple[Entry, bool]:
        """See `from_metadata`."""
        try:
            return from_metadata(metadata, self._counts)
        except (KeyError, TypeError, ValueError) as error:
            raise self._unreadable(id_, error) from error

    def _unreadable(self, id_: str, error: Exception) -> DemurError:
        return DemurError(
            f"what {self.questions} keeps under {id_} cannot be read: {error!r}. Delete that "
            "entry, or give another collection"
        )

    def _moved(self) -> bool:
        """Whether other scores count than when that was last asked, by a `rescore` elsewhere."""
        before, self._counts = self._counts, self.questions.metadata().get(COUNTS)
        return self._counts != before
