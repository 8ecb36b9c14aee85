"""ExampleStore: past questions in Chroma, with candidate answers that compete by their scores."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import chain, groupby
from pathlib import Path
from typing import Any

import numpy as np
from langchain_core.embeddings import Embeddings
from numpy.typing import NDArray

from demur._jsonl import read_lines, write_lines
from demur._text import replace_surrogates
from demur.errors import DemurError
from demur.evaluators import FEWL, Fitted, Learned, afit, fit, normalized_text
from demur.exemplars.entries import (
    KIND,
    Candidate,
    Entry,
    as_line,
    candidate_id,
    entry_of,
    from_line,
    from_metadata,
    group_of,
    is_text,
    to_metadata,
)
from demur.exemplars.offers import Offer, Offered, read_offer, read_offers
from demur.exemplars.scorer import Scored, Scorer
from demur.exemplars.selection import Exemplar, check_limits
from demur.runtime import Costs, adrive, drive
from demur.storage import AT_ONCE, Questions, parts, question_id

_AT_ONCE = 16
_PER_QUESTION = 3
"""Candidates that a search expects of each question: it goes on where there are more."""
_SPARE = 8
"""Questions asked for beyond the number wanted, where some may not do."""
_COUNTS, _SCORER = "scorer", "scorer-"
"""Under this key the collection says whose scores count; under keys that begin so, who that is."""

Progress = Callable[[Fitted], None]
Kept = tuple[str, Candidate]
"""A candidate with its question."""


class ExampleStore:
    """Past questions with candidate answers, of which the best-scored one is the exemplar.

    Each candidate is a record of its own in Chroma, with its score, what that is made of, whose it
    is, when and where it came from. It is known by question, answer and scorer: to add what is
    there changes nothing, and a new answer to a known question competes with those that are there.
    The best one is found when a question is read.

    Scores of different scorers (other reference models, prompts, similarity or formula) cannot be
    compared. The first who adds decides whose scores count; opened with another scorer, a store
    adds nothing and finds nothing near until `rescore`.

    Safe in threads. A folder belongs to one process at a time, until `close` or its end. Several
    processes share a server, and lose nothing by adding at once.

    Example:
        >>> store = ExampleStore("exemplars", scorer=FEWL("openai:gpt-4o-mini"))
        >>> store.add("Who painted Guernica?", ["Pablo Picasso, in 1937.", "Joan Miro."]).best

    Raises:
        MissingExtraError: Chroma is not installed.
        TypeError: `scorer` is no FEWL.
        ValueError: The collection was made with another embedding model, or for something else.
        DemurError: The folder or the server cannot be used.
    """

    def __init__(
        self,
        path: str | Path | None = None,
        *,
        collection: str = "exemplars",
        client: Any = None,
        embedding: Embeddings | None = None,
        scorer: FEWL | None = None,
    ) -> None:
        """Open or make a store.

        Args:
            path: A folder, or the URL of a Chroma server ("http://host:port"). Without it, and
                without a client, the store is in memory and its own, and is gone with it.
            collection: The collection's name, where several share a place.
            client: A Chroma client that you have, instead of a path.
            embedding: What computes the questions' vectors: all-MiniLM-L6-v2 in this process by
                default.
            scorer: What scores answers that are added without scores. None: all scores are given,
                and whoever gives them vouches that they can be compared.
        """
        self._scorer = Scorer(scorer)  # before anything is opened
        self._questions = Questions(
            path, client, collection, embedding, KIND, "a store of exemplars"
        )
        self._counts: str | None = self._questions.metadata().get(_COUNTS)
        self._others: list[str] = []
        """Scorers whose scores do not count any more."""

    def __repr__(self) -> str:
        place, name = self._questions.chroma.name, self._questions.name
        return f"ExampleStore({place!r}, collection={name!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return self._questions.again(ExampleStore, scorer=self._scorer.fewl)

    def close(self) -> None:
        """Let go of the folder, so that another process can open it; the store is then done."""
        self._questions.chroma.close()

    # --- Adding -----------------------------------------------------------------------------------

    def add(
        self,
        question: str,
        answers: Sequence[str],
        scores: Sequence[float] | None = None,
        *,
        source: str | None = None,
    ) -> Entry:
        """Have answers compete to be a question's exemplar.

        Args:
            question: The question.
            answers: One or more; those that are known already are not scored again.
            scores: One finite number per answer, more is better; they replace those of known
                answers. Without them the scorer is asked.
            source: Where the answers come from, as you name it: a run, a model, a file.

        Returns:
            These answers as they are kept, best first; `get` tells all of the question's.

        Raises:
            ValueError: Something is blank, or the numbers do not fit.
            DemurError: Another scorer's scores count here; there is no scorer; an answer could not
                be scored (the others are kept); or Chroma failed.
        """
        offer = read_offer((question, answers, scores), source, "add")
        return self._kept(offer, self._add(offer))

    async def aadd(
        self,
        question: str,
        answers: Sequence[str],
        scores: Sequence[float] | None = None,
        *,
        source: str | None = None,
    ) -> Entry:
        """As `add`, natively asynchronous."""
        offer = read_offer((question, answers, scores), source, "aadd")
        scored = await self._aadd(offer)
        return await asyncio.to_thread(self._kept, offer, scored)

    def add_many(
        self,
        offers: Iterable[Offered],
        *,
        source: str | None = None,
        at_once: int = _AT_ONCE,
        progress: Progress | None = None,
    ) -> Fitted:
        """Add many questions; what is known is not scored again, also after an interrupt or a kill.

        Args:
            offers: (question, answers) or (question, answers, scores), as `add` takes them. Of a
                question that comes several times all answers compete.
            source: As `add`.
            at_once: How many questions are scored at a time; the policy's limit on calls holds
                beside it.
            progress: Told after each question that is scored. Those with scores come first, and
                are told of together.

        Returns:
            How many questions are kept now, of which ones an answer could not be scored and why,
            and what it cost. What could be scored is kept.

        Raises:
            ValueError: As `add`, and then nothing is added.
            DemurError: Another scorer's scores count here; answers come without scores, and there
                is no scorer; or Chroma failed.
        """
        given, open_ = read_offers(offers, source)
        begun = self._begin(given, open_, at_once)
        find = {offer.question: offer for offer in open_}.__getitem__
        learn, beside = partial(self._learn, find), partial(_both, begun)
        return beside(fit(learn, map(_question, open_), at_once, _told(progress, beside)))

    async def aadd_many(
        self,
        offers: Iterable[Offered],
        *,
        source: str | None = None,
        at_once: int = _AT_ONCE,
        progress: Progress | None = None,
    ) -> Fitted:
        """As `add_many`, natively asynchronous."""
        given, open_ = read_offers(offers, source)
        begun = await asyncio.to_thread(self._begin, given, open_, at_once)
        find = {offer.question: offer for offer in open_}.__getitem__
        learn, beside = partial(self._alearn, find), partial(_both, begun)
        return beside(await afit(learn, map(_question, open_), at_once, _told(progress, beside)))

    def rescore(self, *, at_once: int = _AT_ONCE, progress: Progress | None = None) -> Fitted:
        """Have the scorer score what another one scored: from now on its scores count.

        Answers that are not scored yet do not compete in the meantime, so that scores are never
        mixed. After an interrupt or a kill call it again: it goes on where it was.

        Args:
            at_once: How many questions are scored at a time.
            progress: Told after each question.

        Returns:
            Of how many questions all answers were scored, which ones could not be and why, and
            what it cost.

        Raises:
            ValueError: `at_once` is less than 1.
            DemurError: The store was opened without a scorer, or Chroma failed.
        """
        return fit(partial(self._learn, self._stale), self._take_over(), at_once, progress)

    async def arescore(
        self, *, at_once: int = _AT_ONCE, progress: Progress | None = None
    ) -> Fitted:
        """As `rescore`, natively asynchronous."""
        questions = await asyncio.to_thread(self._take_over)
        return await afit(partial(self._alearn, self._stale), questions, at_once, progress)

    def _add(self, offer: Offer) -> Scored:
        scored, _ = drive(self._scorer.score(self._new(offer)), {}, None)
        self._keep((offer.question, candidate) for candidate in scored.candidates)
        return scored

    async def _aadd(self, offer: Offer) -> Scored:
        new = await asyncio.to_thread(self._new, offer)
        scored, _ = await adrive(self._scorer.score(new), {}, None)
        kept = [(offer.question, candidate) for candidate in scored.candidates]
        await asyncio.to_thread(self._keep, kept)
        return scored

    def _begin(self, given: Sequence[Offer], open_: Sequence[Offer], at_once: int) -> Fitted:
        """Keep what has scores, and tell of how many questions that is all that was offered."""
        if at_once < 1:
            raise ValueError(f"at_once must be at least 1, got {at_once}")
        self._claim()
        for offer in open_:
            self._scorer.check(offer)
        for start in range(0, len(given), AT_ONCE):
            some = self._beside_known(given[start : start + AT_ONCE])
            self._keep((one.question, kept) for one in some for kept in self._scorer.given(one))
        done = len({*map(_question_id, given)} - {*map(_question_id, open_)})
        return Fitted(done, done)

    def _learn(self, find: Callable[[str], Offer], question: str) -> Learned:
        """One of many questions: what fails is told and stops none of the others."""
        try:
            return _learned(question, self._add(find(question)))
        except DemurError as error:
            return question, str(error), Costs()

    async def _alearn(self, find: Callable[[str], Offer], question: str) -> Learned:
        try:
            return _learned(question, await self._aadd(await asyncio.to_thread(find, question)))
        except DemurError as error:
            return question, str(error), Costs()

    def _new(self, offer: Offer) -> Offer:
        """What of an offer changes what is kept."""
        self._claim()
        (new,) = self._beside_known([offer])
        self._scorer.check(new)
        return new

    def _beside_known(self, offers: Sequence[Offer]) -> list[Offer]:
        """Of each offer the answers that are new, or have another score."""
        known = self._questions.read(
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

    def _id(self, offer: Offer, answer: str) -> str:
        return candidate_id(offer.question, answer, self._scorer.name)

    def _keep(self, kept: Iterable[Kept]) -> None:
        """Write candidates; each takes the place of the same answer's with another's score."""
        rows, questions, replaced = {}, {}, []
        for question, candidate in kept:
            id_ = candidate_id(question, candidate.answer, candidate.scorer)
            rows[id_], questions[id_] = to_metadata(question, candidate), question
            replaced += [candidate_id(question, candidate.answer, one) for one in self._others]
        self._questions.write(rows, questions)
        self._questions.delete(replaced)

    def _kept(self, offer: Offer, scored: Scored) -> Entry:
        """The answers that were offered, as they are kept.

        Raises:
            DemurError: An answer could not be scored.
        """
        if scored.failed:
            raise DemurError(f"of the answers to {offer.question!r} {'; '.join(scored.failed)}")
        rows = self._questions.read([self._id(offer, answer) for answer in offer.answers])
        kept = [self._candidate(row)[1] for row in rows.values()]
        return entry_of(offer.question, kept, self._scorer.name)

    # --- Whose scores count -----------------------------------------------------------------------

    def scorers(self) -> dict[str, Mapping[str, str]]:
        """What the names in `Candidate.scorer` stand for: references, prompts, similarity, formula.

        Each of these in words that tell it from others, see `FEWL.fingerprints`.
        """
        return {
            key.removeprefix(_SCORER): json.loads(basis)
            for key, basis in self._header().items()
            if key.startswith(_SCORER)
        }

    def _header(self) -> dict[str, str]:
        """Whose scores count, and who that is and was, read anew."""
        known = self._questions.metadata()
        header = {key: known[key] for key in sorted(known) if key.startswith(_COUNTS)}
        self._counts = header.get(_COUNTS)
        return header

    def _own_header(self) -> dict[str, str]:
        return {_COUNTS: self._scorer.name, f"{_SCORER}{self._scorer.name}": self._scorer.basis}

    def _claim(self) -> None:
        """Say that this scorer's scores count, if nobody said so before.

        Raises:
            DemurError: Another scorer's do.
        """
        self._questions.claim(self._own_header())
        header = self._header()  # asked each time: another process may have had all scored anew
        if self._counts != self._scorer.name:
            raise self._refusal(header)
        own = f"{_SCORER}{self._scorer.name}"
        self._others = [key.removeprefix(_SCORER) for key in header if key not in (_COUNTS, own)]

    def _take_over(self) -> list[str]:
        """Say that this scorer's scores count from now on, and tell the questions that lack some.

        Raises:
            DemurError: There is no scorer, or Chroma failed.
        """
        if self._scorer.fewl is None:
            raise DemurError("rescore() needs a scorer: ExampleStore(..., scorer=FEWL(...))")
        self._questions.say(self._own_header())
        return [entry.question for entry in self.entries() if entry.stale]

    def _stale(self, question: str) -> Offer:
        """The stale answers of a question, offered anew; none where it was removed meanwhile."""
        entry = self.get(question)
        stale = {one.answer: one.source for one in entry.stale} if entry else {}
        return Offer(question, stale)

    def _reading(self) -> str:
        """Whose scores are read: those that count.

        Raises:
            DemurError: The store has a scorer, and its scores do not count.
        """
        own = self._scorer.name
        if self._scorer.fewl and self._counts not in (None, own):
            header = self._header()  # another process may have had all scored anew
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
            f"in {self._questions} the scores of another scorer count: "
            f"{header.get(f'{_SCORER}{self._counts}')}, and this one's are of "
            f"{self._scorer.basis}. They cannot be compared: {remedy}, or give another collection"
        )

    # --- Reading ----------------------------------------------------------------------------------

    def __len__(self) -> int:
        """How many questions there are; the ids of all candidates are read."""
        return len({_group(id_) for id_ in self._questions.all_ids()})

    def get(self, question: str) -> Entry | None:
        """What is kept of this very question; None if nothing is."""
        self._header()
        rows = self._questions.where({"group": group_of(question)})
        return next(iter(self._entries(rows)), None)

    def entries(self) -> Iterator[Entry]:
        """All questions with their candidates, in an order that stays the same, read in parts."""
        self._header()
        groups = [list(ids) for _, ids in groupby(self._questions.all_ids(), _group)]
        for some in parts(groups):
            yield from self._entries(self._questions.read([id_ for ids in some for id_ in ids]))

    def nearest(
        self,
        question: str,
        k: int,
        *,
        max_similarity: float | None = None,
        min_score: float | None = None,
        vectors: bool = False,
    ) -> list[Exemplar]:
        """The questions that are most alike, each with its best answer.

        Args:
            question: The question, which is not told itself, nor what differs from it or from
                another one found in case and marks only.
            k: How many to find, at least 1; fewer are told if there are no more.
            max_similarity: Only questions whose vectors have a cosine below it count.
            min_score: Only questions whose best answer reaches it count.
            vectors: Whether each is to have its `vector`.

        Returns:
            The nearest first. They are found by Chroma's index, which now and then misses one.

        Raises:
            ValueError: The question is blank, or a limit is out of its range.
            DemurError: Another scorer's scores count here (`rescore`), or Chroma failed.
        """
        if not is_text(question):
            raise ValueError(f"expected a question, got {question!r}")
        check_limits(k, max_similarity, min_score)
        own = question_id(question)
        vector = self._questions.new_vectors({own: question})[own]
        picky = max_similarity is not None or min_score is not None
        wide = _PER_QUESTION * (k + 1 + (_SPARE if picky else 0))
        while True:
            scorer = self._reading()
            exemplars, is_all = self._search(vector, wide, scorer, vectors)
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
            elif self._header().get(_COUNTS, scorer) == scorer:
                return fitting
            # Otherwise all was scored anew meanwhile, by another process.

    def _search(
        self, vector: NDArray[np.float32], wide: int, scorer: str, vectors: bool
    ) -> tuple[list[Exemplar], bool]:
        """The best of each question in the `wide` nearest candidates, and whether these are all."""
        include = ["metadatas", "distances", *(["embeddings"] if vectors else [])]
        reply = self._questions.chroma.search(
            partial(
                self._questions.collection.query,
                query_embeddings=[vector],
                n_results=wide,
                include=include,
            )
        )
        metadatas, distances = reply["metadatas"][0], reply["distances"][0]
        found = reply["embeddings"][0] if vectors else [None] * len(distances)
        is_all = len(distances) < wide
        # Of the last question there may be more: it waits for the next search.
        edge = math.inf if is_all else max(distances)
        best: dict[str, Exemplar] = {}
        for metadata, distance, its_vector in zip(metadatas, distances, found, strict=True):
            if metadata is None or distance >= edge:
                continue  # of the first kind: it was removed meanwhile
            with self._readable(metadata):
                kept, group = json.loads(metadata["kept"]), metadata["group"]
                answer, score, known = kept["answer"], kept["score"], best.get(group)
                better = known is None or (-score, answer) < (-known.score, known.answer)
                if better and kept["scorer"] == scorer:
                    near = 1.0 - distance
                    best[group] = Exemplar(group, kept["question"], answer, score, near, its_vector)
        ranked = sorted(best.values(), key=lambda exemplar: (-exemplar.similarity, exemplar.id))
        return ranked, is_all

    def _entries(self, rows: Mapping[str, Mapping[str, Any]]) -> Iterator[Entry]:
        """The entries of candidates' records, of which each question has all."""
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
                f"a record in {self._questions} cannot be read: {error!r} in {metadata!r:.200}. "
                "Delete that record, or give another collection"
            ) from error

    def remove(self, question: str, answer: str | None = None) -> int:
        """Take an answer of a question away, or all of them; how many records that was.

        Raises:
            DemurError: Chroma failed.
        """
        rows = self._questions.where({"group": group_of(question)})
        wanted = None if answer is None else replace_surrogates(answer)
        doomed = [
            id_
            for id_, row in rows.items()
            if wanted is None or self._candidate(row)[1].answer == wanted
        ]
        self._questions.delete(doomed)
        return len(doomed)

    # --- Files ------------------------------------------------------------------------------------

    def export(self, path: str | Path) -> None:
        """Write all that is kept to a file, without vectors: JSON lines, whole or not at all.

        Compressed where the name ends in ".gz".
        """
        write_lines(
            Path(path), chain([{"kind": KIND, **self._header()}], map(as_line, self.entries()))
        )

    def load(self, path: str | Path) -> int:
        """Add what `export` wrote, with its scores, and tell how many lines that are.

        Raises:
            ValueError: The file is another, or damaged: then nothing of it is added.
            DemurError: Other scores count in it than here.
            OSError: The file cannot be read.
        """
        lines = read_lines(Path(path))
        header = next(lines, (0, None))[1]
        if not isinstance(header, dict) or header.pop("kind", None) != KIND:
            raise ValueError(f"{path} holds no exported exemplars ({KIND} in its first line)")
        if unfit := {key: text for key, text in header.items() if not isinstance(text, str)}:
            raise ValueError(f"{path}, line 1: expected texts that say whose scores count: {unfit}")
        read: list[list[Kept]] = []
        for number, line in lines:
            try:
                read.append(from_line(line))
            except ValueError as error:
                raise ValueError(f"{path}, line {number}: {error}") from error
        self._adopt(header)
        self._keep(chain.from_iterable(read))
        return len(read)

    def _adopt(self, header: Mapping[str, str]) -> None:
        """Take in what a file says of its scorers.

        Raises:
            DemurError: Other scores count there than here.
        """
        here = self._header()
        if len({here.get(_COUNTS), header.get(_COUNTS)} - {None}) == 2:
            raise DemurError(
                f"in {self._questions} the scores of {here[_COUNTS]} count, and in the file those "
                f"of {header[_COUNTS]}: load it into another collection, and rescore one of them"
            )
        self._questions.say({**header, **here})
        self._header()


def _question(offer: Offer) -> str:
    return offer.question


def _question_id(offer: Offer) -> str:
    return question_id(offer.question)


def _group(id_: str) -> str:
    """The question's part of a candidate's id."""
    return id_.partition("-")[0]


def _learned(question: str, scored: Scored) -> Learned:
    return question, "; ".join(scored.failed) or None, Costs({"scoring": scored.usage})


def _both(begun: Fitted, now: Fitted) -> Fitted:
    return replace(now, questions=begun.questions + now.questions, done=begun.done + now.done)


def _told(progress: Progress | None, beside: Callable[[Fitted], Fitted]) -> Progress | None:
    """Progress that tells of what was done before, too."""
    return None if progress is None else lambda now: progress(beside(now))
