"""How answers become candidates: what is new of an offer is scored, and kept."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial

from demur.errors import DemurError
from demur.evaluators import Fitted, Learned, afit, fit
from demur.exemplars.entries import Entry, candidate_key
from demur.exemplars.offers import Offer
from demur.exemplars.scorer import Scored, Scorer
from demur.exemplars.shelf import Shelf
from demur.runtime import Costs, adrive, drive
from demur.storage import parts, question_id

Progress = Callable[[Fitted], None]
_Find = Callable[[str], Offer]
"""From a question to what is offered for it."""


@dataclass(frozen=True)
class Adding:
    """Offers that go to a shelf by way of a scorer."""

    shelf: Shelf
    scorer: Scorer

    # --- One question -----------------------------------------------------------------------------

    def add(self, offer: Offer) -> tuple[Entry, Scored]:
        """Have answers compete, and tell what is then kept and what the scoring brought.

        Raises:
            DemurError: As `ExampleStore.add`, but for answers that could not be scored.
        """
        known, new = self._known(offer)
        scored, _ = drive(self.scorer.score(new), {}, None)
        return self._kept(known, offer, scored), scored

    async def aadd(self, offer: Offer) -> tuple[Entry, Scored]:
        """As `add`, natively asynchronous."""
        known, new = await asyncio.to_thread(self._known, offer)
        scored, _ = await adrive(self.scorer.score(new), {}, None)
        return await asyncio.to_thread(self._kept, known, offer, scored), scored

    def _known(self, offer: Offer) -> tuple[Entry, Offer]:
        """What is kept of a question, and of what is offered that which changes it."""
        self.shelf.claim()
        id_ = question_id(offer.question)
        known = self.shelf.read([id_]).get(id_, Entry(offer.question, ()))
        return known, offer.beside(known)

    def _kept(self, known: Entry, offer: Offer, scored: Scored) -> Entry:
        if not scored.candidates:
            return known
        id_ = question_id(offer.question)
        return self.shelf.keep({id_: (offer.question, scored.candidates)})[id_]

    # --- Many -------------------------------------------------------------------------------------

    def add_many(
        self,
        scored: Mapping[str, Offer],
        open_: Mapping[str, Offer],
        at_once: int,
        progress: Progress | None,
    ) -> Fitted:
        """Have many answers compete.

        Args:
            scored: Offers with scores, by the question's id.
            open_: Those that are still to be scored; their questions are done only then.
            at_once: How many questions are scored at a time.
            progress: Told after each part of those with scores, and after each of the others.

        Raises:
            ValueError: `at_once` is less than 1.
            DemurError: Another scorer's scores count here; there is no scorer for `open_`; or
                Chroma failed.
        """
        _check(at_once)
        steps = self._keep_given(scored, open_)
        before = next(steps)
        for before in steps:
            _report(progress, before)
        learn = partial(self._learn, _finder(open_))
        return _both(before, fit(learn, _texts(open_), at_once, _beside(before, progress)))

    async def aadd_many(
        self,
        scored: Mapping[str, Offer],
        open_: Mapping[str, Offer],
        at_once: int,
        progress: Progress | None,
    ) -> Fitted:
        """As `add_many`, natively asynchronous."""
        _check(at_once)
        steps = self._keep_given(scored, open_)
        before = await asyncio.to_thread(next, steps)
        while (after := await asyncio.to_thread(next, steps, None)) is not None:
            before = after
            _report(progress, before)
        learn = partial(self._alearn, _finder(open_))
        fitted = await afit(learn, _texts(open_), at_once, _beside(before, progress))
        return _both(before, fitted)

    def rescore(self, at_once: int, progress: Progress | None) -> Fitted:
        """Have all scored that another scorer scored; see `ExampleStore.rescore`."""
        _check(at_once)
        return fit(partial(self._learn, self._again), self.take_over(), at_once, progress)

    async def arescore(self, at_once: int, progress: Progress | None) -> Fitted:
        """As `rescore`, natively asynchronous."""
        _check(at_once)
        questions = await asyncio.to_thread(self.take_over)
        return await afit(partial(self._alearn, self._again), questions, at_once, progress)

    def _keep_given(
        self, scored: Mapping[str, Offer], open_: Mapping[str, Offer]
    ) -> Iterator[Fitted]:
        """Keep what has scores, in parts: that takes a tenth of the time of one by one.

        Yields:
            How far that is, before the first part and after each.
        """
        self.shelf.claim()
        for offer in open_.values():
            self.scorer.check(offer)
        now = Fitted(len(scored.keys() | open_.keys()))
        yield now
        for ids in parts(list(scored)):
            known = self.shelf.read(ids)
            new = {id_: scored[id_].beside(known.get(id_)) for id_ in ids}
            self.shelf.keep(
                {
                    id_: (offer.question, self.scorer.given(offer).candidates)
                    for id_, offer in new.items()
                    if offer.answers
                }
            )
            now = replace(now, done=now.done + sum(id_ not in open_ for id_ in ids))
            yield now

    def _learn(self, find: _Find, question: str) -> Learned:
        """One of many questions: what fails is told and stops none of the others."""
        try:
            return _learned(question, self.add(find(question))[1])
        except DemurError as error:
            return question, str(error), Costs()

    async def _alearn(self, find: _Find, question: str) -> Learned:
        try:
            offer = await asyncio.to_thread(find, question)
            return _learned(question, (await self.aadd(offer))[1])
        except DemurError as error:
            return question, str(error), Costs()

    def take_over(self) -> list[str]:
        """Have this scorer's scores count, and tell the questions that lack some.

        Raises:
            DemurError: There is no scorer, or Chroma failed.
        """
        if self.scorer.fewl is None:
            raise DemurError("rescore() needs a scorer: ExampleStore(..., scorer=FEWL(...))")
        self.shelf.take_over()
        return [
            entry.question for part in self.shelf.all() for entry in part.values() if entry.stale
        ]

    def _again(self, question: str) -> Offer:
        """The stale answers of a question, offered anew; none where it was evicted meanwhile."""
        entries = self.shelf.read([question_id(question)]).values()
        stale = {
            candidate_key(candidate.answer): candidate
            for entry in entries
            for candidate in entry.stale
        }
        answers = {key: candidate.answer for key, candidate in stale.items()}
        return Offer(
            question, answers, sources={key: candidate.source for key, candidate in stale.items()}
        )


def whole(entry: Entry, scored: Scored) -> Entry:
    """The entry.

    Raises:
        DemurError: An answer could not be scored.
    """
    if scored.failed:
        raise DemurError(f"of the answers to {entry.question!r} {'; '.join(scored.failed)}")
    return entry


def _learned(question: str, scored: Scored) -> Learned:
    return question, "; ".join(scored.failed) or None, Costs({"scoring": scored.usage})


def _check(at_once: int) -> None:
    if at_once < 1:
        raise ValueError(f"at_once must be at least 1, got {at_once}")


def _finder(offers: Mapping[str, Offer]) -> _Find:
    return lambda question: offers[question_id(question)]


def _texts(offers: Mapping[str, Offer]) -> list[str]:
    return [offer.question for offer in offers.values()]


def _report(progress: Progress | None, now: Fitted) -> None:
    if progress is not None:
        progress(now)


def _beside(before: Fitted, progress: Progress | None) -> Progress:
    """Progress that tells of those before, too."""
    return lambda now: _report(progress, _both(before, now))


def _both(before: Fitted, now: Fitted) -> Fitted:
    return replace(now, questions=before.questions, done=before.done + now.done)
