"""ExampleStore: past questions in Chroma, with candidate answers that compete by their scores."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
from langchain_core.embeddings import Embeddings
from numpy.typing import NDArray

from demur.evaluators import FEWL, Fitted
from demur.exemplars.adding import Adding, Progress, whole
from demur.exemplars.entries import KIND, Candidate, Entry, is_text
from demur.exemplars.eviction import Eviction
from demur.exemplars.files import read_entries, write_entries
from demur.exemplars.offers import Offered, read_offer, read_offers
from demur.exemplars.scorer import Scorer
from demur.exemplars.selection import Exemplar, check_limits
from demur.exemplars.shelf import Shelf
from demur.exemplars.statistics import Statistics, statistics
from demur.storage import AT_ONCE, Questions, question_id

_AT_ONCE = 16


class ExampleStore:
    """Past questions with candidate answers, of which the best-scored one is the exemplar.

    A question is known by the hash of its text, an answer by the hash of its own: to add what is
    there changes nothing, and a new answer to a known question competes with those that are there.
    Each candidate keeps its score, what that is made of, whose it is, when and where it came from.

    Scores of different scorers (other reference models, prompts, similarity or formula) cannot be
    compared. The first who adds decides whose scores count; opened with another scorer, a store
    adds nothing and finds nothing near until `rescore`.

    Safe in threads. A folder belongs to one process at a time, until `close` or its end. Several
    share a server, and lose nothing by adding at once; an eviction of a question may take with it
    what another process, or another store object, adds to it in that moment.

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
        self._shelf = Shelf(self._questions, self._scorer)
        self._adding = Adding(self._shelf, self._scorer)

    def __repr__(self) -> str:
        place, name = self._questions.chroma.name, self._questions.name
        return f"ExampleStore({place!r}, collection={name!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return self._questions.again(ExampleStore, scorer=self._scorer.fewl)

    def close(self) -> None:
        """Let go of the folder, so that another process can open it; the store is then done.

        On a server, give back the name that the store writes under, as the end of the process does.
        """
        self._shelf.close()

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
            What is kept of the question now.

        Raises:
            ValueError: Something is blank, or the numbers do not fit.
            DemurError: Another scorer's scores count here; there is no scorer; an answer could not
                be scored (the others are kept); or Chroma failed.
        """
        offer = read_offer((question, answers, scores), source, "add")
        return whole(*self._adding.add(offer))

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
        return whole(*await self._adding.aadd(offer))

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
            progress: Told after each question that is scored, and after each two hundred others.

        Returns:
            How many questions are kept now, of which ones an answer could not be scored and why,
            and what it cost. What could be scored is kept.

        Raises:
            ValueError: As `add`, and then nothing is added.
            DemurError: Another scorer's scores count here; answers come without scores, and there
                is no scorer; or Chroma failed.
        """
        return self._adding.add_many(*read_offers(offers, source), at_once, progress)

    async def aadd_many(
        self,
        offers: Iterable[Offered],
        *,
        source: str | None = None,
        at_once: int = _AT_ONCE,
        progress: Progress | None = None,
    ) -> Fitted:
        """As `add_many`, natively asynchronous."""
        return await self._adding.aadd_many(*read_offers(offers, source), at_once, progress)

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
        return self._adding.rescore(at_once, progress)

    async def arescore(
        self, *, at_once: int = _AT_ONCE, progress: Progress | None = None
    ) -> Fitted:
        """As `rescore`, natively asynchronous."""
        return await self._adding.arescore(at_once, progress)

    # --- Reading ----------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._questions)

    def get(self, question: str) -> Entry | None:
        """What is kept of this very question; None if nothing is."""
        return next(iter(self._shelf.read([question_id(question)]).values()), None)

    def entries(self) -> Iterator[Entry]:
        """All questions with their candidates, in an order that stays the same, read in parts."""
        return chain.from_iterable(part.values() for part in self._shelf.all())

    def stats(self) -> Statistics:
        """What the store holds, in numbers; all of it is read."""
        return statistics(self.entries())

    def scorers(self) -> dict[str, Mapping[str, str]]:
        """What the names in `Candidate.scorer` stand for: references, prompts, similarity, formula.

        Each of these in words that tell it from others, see `FEWL.fingerprints`.
        """
        return self._shelf.scorers()

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
            vectors: Whether their `vectors` are wanted next: they come by the same request.

        Returns:
            The nearest first. They are found by Chroma's index, which now and then misses one.

        Raises:
            ValueError: The question is blank, or a limit is out of its range.
            DemurError: Another scorer's scores count here (`rescore`), or Chroma failed.
        """
        if not is_text(question):
            raise ValueError(f"expected a question, got {question!r}")
        check_limits(k, max_similarity, min_score)
        return self._shelf.nearest(question, k, max_similarity, min_score, vectors)

    def vectors(self, exemplars: Sequence[Exemplar]) -> NDArray[np.float32]:
        """The vectors of questions that `nearest` found, of shape (exemplars, dimensions).

        Of one that was evicted in the meantime, too.

        Raises:
            ValueError: `exemplars` is empty.
            DemurError: Chroma failed.
        """
        kept = self._questions.vectors_of(
            {exemplar.id: exemplar.question for exemplar in exemplars}
        )
        return np.stack([kept[exemplar.id] for exemplar in exemplars])

    # --- Taking away ------------------------------------------------------------------------------

    def evict(
        self,
        question: str | None = None,
        *,
        answer: str | None = None,
        below: float | None = None,
        before: datetime | None = None,
    ) -> int:
        """Take candidates away that fit all that is said; a question goes with its last one.

        Args:
            question: Candidates of this question.
            answer: This answer.
            below: Candidates that score less, of those whose scores count.
            before: Candidates that were scored earlier; a time with a zone.

        Returns:
            How many were taken away.

        Raises:
            ValueError: Nothing is said, `below` is no finite number, or `before` no time with a
                zone.
            DemurError: Chroma failed.
        """
        if question is None and answer is None and below is None and before is None:
            raise ValueError("expected a question, an answer, a score or a time: all would go")
        eviction = Eviction(answer, below, before)
        known = None if question is None else [self._shelf.read([question_id(question)])]
        gone = 0
        for part in self._shelf.all() if known is None else known:
            keys = {id_: eviction.keys(entry) for id_, entry in part.items()}
            self._shelf.forget({id_: some for id_, some in keys.items() if some})
            gone += sum(map(len, keys.values()))
        return gone

    # --- Files ------------------------------------------------------------------------------------

    def export(self, path: str | Path) -> None:
        """Write all that is kept to a file, without vectors: JSON lines, whole or not at all.

        Compressed where the name ends in ".gz". The same content gives the same bytes.
        """
        write_entries(Path(path), self._shelf.header(), self.entries())

    def load(self, path: str | Path) -> int:
        """Add what `export` wrote, with its scores, and tell how many questions that are.

        Raises:
            ValueError: The file is another, or damaged: then nothing of it is added.
            DemurError: Other scores count in it than here.
            OSError: The file cannot be read.
        """
        header, entries = read_entries(Path(path))
        for _ in entries:
            pass  # all of it can be read
        self._shelf.adopt(header)
        count, (_, entries) = 0, read_entries(Path(path))
        while part := list(islice(entries, AT_ONCE)):
            kept: dict[str, tuple[str, dict[str, Candidate]]] = {}
            for question, candidates in part:
                kept.setdefault(question_id(question), (question, {}))[1].update(candidates)
            self._shelf.keep(kept)
            count += len(part)
        return count
