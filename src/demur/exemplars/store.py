"""ExampleStore: past questions in Chroma, with candidate answers that compete by their scores."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from langchain_core.embeddings import Embeddings

from demur._jsonl import read_lines, write_lines
from demur.errors import DemurError
from demur.evaluators import FEWL, Fitted, Learned, afit, fit
from demur.exemplars.candidates import Candidates, Kept
from demur.exemplars.entries import (
    KIND,
    Entry,
    as_line,
    from_line,
    is_text,
)
from demur.exemplars.offers import Offer, Offered, read_offer, read_offers
from demur.exemplars.scorer import Scored, Scorer
from demur.exemplars.selection import Exemplar, check_limits
from demur.runtime import Costs, adrive, drive
from demur.storage import AT_ONCE, Questions, question_id

_AT_ONCE = 16

Progress = Callable[[Fitted], None]


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

    Examples:
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
        self._candidates = Candidates(self._questions, self._scorer)

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
        self._candidates.keep((offer.question, candidate) for candidate in scored.candidates)
        return scored

    async def _aadd(self, offer: Offer) -> Scored:
        new = await asyncio.to_thread(self._new, offer)
        scored, _ = await adrive(self._scorer.score(new), {}, None)
        kept = [(offer.question, candidate) for candidate in scored.candidates]
        await asyncio.to_thread(self._candidates.keep, kept)
        return scored

    def _begin(self, given: Sequence[Offer], open_: Sequence[Offer], at_once: int) -> Fitted:
        """Keep what has scores, and tell of how many questions that is all that was offered."""
        if at_once < 1:
            raise ValueError(f"at_once must be at least 1, got {at_once}")
        self._candidates.claim()
        for offer in open_:
            self._scorer.check(offer)
        for start in range(0, len(given), AT_ONCE):
            some = self._candidates.beside_known(given[start : start + AT_ONCE])
            self._candidates.keep(
                (one.question, kept) for one in some for kept in self._scorer.given(one)
            )
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
        self._candidates.claim()
        (new,) = self._candidates.beside_known([offer])
        self._scorer.check(new)
        return new

    def _kept(self, offer: Offer, scored: Scored) -> Entry:
        """The answers that were offered, as they are kept.

        Raises:
            DemurError: An answer could not be scored.
        """
        if scored.failed:
            raise DemurError(f"of the answers to {offer.question!r} {'; '.join(scored.failed)}")
        return self._candidates.offered(offer)

    def _take_over(self) -> list[str]:
        """Have this scorer's scores count, and tell the questions that lack some.

        Raises:
            DemurError: There is no scorer, or Chroma failed.
        """
        if self._scorer.fewl is None:
            raise DemurError("rescore() needs a scorer: ExampleStore(..., scorer=FEWL(...))")
        return self._candidates.take_over()

    def _stale(self, question: str) -> Offer:
        """The stale answers of a question, offered anew; none where it was removed meanwhile."""
        entry = self.get(question)
        stale = {one.answer: one.source for one in entry.stale} if entry else {}
        return Offer(question, stale)

    # --- Reading ----------------------------------------------------------------------------------

    def __len__(self) -> int:
        """How many questions there are; the ids of all candidates are read."""
        return len(self._candidates)

    def get(self, question: str) -> Entry | None:
        """What is kept of this very question; None if nothing is."""
        return self._candidates.get(question)

    def entries(self) -> Iterator[Entry]:
        """All questions with their candidates, in an order that stays the same, read in parts."""
        return self._candidates.entries()

    def scorers(self) -> dict[str, Mapping[str, str]]:
        """What the names in `Candidate.scorer` stand for: references, prompts, similarity, formula.

        Each of these in words that tell it from others, see `FEWL.fingerprints`.
        """
        return self._candidates.scorers()

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
        return self._candidates.nearest(question, k, max_similarity, min_score, vectors)

    def remove(self, question: str, answer: str | None = None) -> int:
        """Take an answer of a question away, or all of them; how many records that was.

        Raises:
            DemurError: Chroma failed.
        """
        return self._candidates.remove(question, answer)

    # --- Files ------------------------------------------------------------------------------------

    def export(self, path: str | Path) -> None:
        """Write all that is kept to a file, without vectors: JSON lines, whole or not at all.

        Compressed where the name ends in ".gz".
        """
        header = {"kind": KIND, **self._candidates.header()}
        write_lines(Path(path), chain([header], map(as_line, self.entries())))

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
        self._candidates.adopt(header)
        self._candidates.keep(chain.from_iterable(read))
        return len(read)


def _question(offer: Offer) -> str:
    return offer.question


def _question_id(offer: Offer) -> str:
    return question_id(offer.question)


def _learned(question: str, scored: Scored) -> Learned:
    return question, "; ".join(scored.failed) or None, Costs({"scoring": scored.usage})


def _both(begun: Fitted, now: Fitted) -> Fitted:
    return replace(now, questions=begun.questions + now.questions, done=begun.done + now.done)


def _told(progress: Progress | None, beside: Callable[[Fitted], Fitted]) -> Progress | None:
    """Progress that tells of what was done before, too."""
    return None if progress is None else lambda now: progress(beside(now))
