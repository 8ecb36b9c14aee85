"""Keep past questions in Chroma, with candidate answers that compete by their scores."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from langchain_core.embeddings import Embeddings

from demur._system import read_lines, write_lines
from demur.errors import DemurError
from demur.evaluators import FEWL, Fitted, Learned, fit
from demur.exemplars.candidates import Candidates, Kept
from demur.exemplars.entries import KIND, Entry, as_line, from_line, is_text
from demur.exemplars.exemplar import Exemplar, check_limits
from demur.exemplars.offers import Offer, Offered, read_offer, read_offers
from demur.exemplars.scorer import Scored, Scorer
from demur.runtime import drive
from demur.schema import Usage
from demur.storage import AT_ONCE, Questions, question_id

_AT_ONCE = 16

Progress = Callable[[Fitted], None]


class ExampleStore:
    """Keep past questions with candidate answers, of which the best-scored one is the exemplar.

    Each candidate is a record of its own in Chroma, with its score, the parts of the score, its
    scorer, its time and its source. A candidate is identified by question, answer and scorer.
    Adding an answer again changes nothing, and a new answer to a known question competes with the
    others. The best answer is found when a question is read.

    Scores of different scorers (other reference models, prompts, similarity or formula) cannot be
    compared. The first caller that adds an answer decides whose scores count. If you open a store
    with another scorer, adding and `nearest` raise an error until you call `rescore`.

    The store is safe to use from several threads. Only one process at a time can use a folder,
    until it calls `close` or ends. Several processes can share a server, and lose nothing by adding
    at the same time.

    Examples:
        >>> store = ExampleStore("exemplars", scorer=FEWL("openai:gpt-4o-mini"))
        >>> store.add("Who painted Guernica?", ["Pablo Picasso, in 1937.", "Joan Miro."]).best

    Raises:
        MissingExtraError: Chroma is not installed.
        TypeError: `scorer` is not a FEWL.
        ValueError: The collection was made with another embedding model or for another purpose.
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
        """Open a store, or make it if it does not exist.

        Args:
            path: A folder, or the URL of a Chroma server ("http://host:port"). Without a path and a
                client, the store is in memory, is not shared, and ends with this object.
            collection: The name of the collection, since several collections can share a folder or
                a server.
            client: Your own Chroma client, instead of a path.
            embedding: The model that computes the vectors of questions. By default, this is
                all-MiniLM-L6-v2 in this process.
            scorer: The FEWL that scores answers which are added without scores. None: all scores
                are given, and the callers are responsible for giving scores that can be compared.
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
        """Release the folder, so that another process can open it; the store is unusable then."""
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
        """Have answers compete to be the exemplar of a question.

        Args:
            question: The question.
            answers: One or more answers. Known answers are not scored again.
            scores: One finite number for each answer, higher is better. The scores replace those of
                known answers. Without scores, the scorer is asked.
            source: Where the answers come from, in your words: a run, a model, a file.

        Returns:
            The entry with these answers as they are kept, best first. `get` returns all answers of
            the question.

        Raises:
            ValueError: The question or an answer is blank, the source is not a text, or there is
                not one finite score for each answer.
            DemurError: Another scorer's scores count in this store; there is no scorer; an answer
                could not be scored (the others are kept); or Chroma failed.
        """
        offer = read_offer((question, answers, scores), source, "add")
        scored = self._add(offer)
        if scored.failed:
            raise DemurError(f"of the answers to {question!r} {'; '.join(scored.failed)}")
        return self._candidates.offered(offer)

    def add_many(
        self,
        offers: Iterable[Offered],
        *,
        source: str | None = None,
        at_once: int = _AT_ONCE,
        progress: Progress | None = None,
    ) -> Fitted:
        """Add many questions.

        Known answers are not scored again, even after an interrupt or a kill.

        Args:
            offers: Pairs (question, answers) or triples (question, answers, scores), as `add` takes
                them. If a question is repeated, all its answers compete.
            source: Where the answers come from, as in `add`.
            at_once: How many questions are scored at the same time. The call policy's own limit
                applies too.
            progress: A function that is called at the start and after each question that is scored.
                The first call reports all questions that came with scores.

        Returns:
            How many questions are kept now, which of them have an answer that could not be scored
            and why, and the usage. The answers that could be scored are kept.

        Raises:
            ValueError: An offer does not fit, as in `add`, or `at_once` is less than 1. Then
                nothing is added.
            DemurError: Another scorer's scores count in this store; answers have no scores, and
                there is no scorer; or Chroma failed.
        """
        given, open_ = read_offers(offers, source)
        done = self._keep_given(given, open_, at_once)
        by_question = {offer.question: offer for offer in open_}

        def with_given(now: Fitted) -> Fitted:
            return replace(now, questions=done + now.questions, done=done + now.done)

        def report(now: Fitted) -> None:
            if progress is not None:
                progress(with_given(now))

        learn = partial(self._learn, by_question.__getitem__)
        return with_given(fit(learn, by_question, at_once, report))

    def rescore(self, *, at_once: int = _AT_ONCE, progress: Progress | None = None) -> Fitted:
        """Score other scorers' answers again by this store's scorer, whose scores then count.

        Answers that are not scored yet do not compete in the meantime, so that scores are never
        mixed. After an interrupt or a kill, call `rescore` again: it continues where it stopped.

        Args:
            at_once: How many questions are scored at the same time.
            progress: A function that is called at the start and after each question.

        Returns:
            The number of questions whose answers were all scored, which questions failed and why,
            and the usage.

        Raises:
            ValueError: `at_once` is less than 1.
            DemurError: The store was opened without a scorer, or Chroma failed.
        """
        return fit(partial(self._learn, self._stale), self._take_over(at_once), at_once, progress)

    def _add(self, offer: Offer) -> Scored:
        """Score and keep the part of an offer that changes what is kept."""
        self._candidates.claim()
        (new,) = self._candidates.beside_known([offer])
        scored, _ = drive(self._scorer.score(new), {}, None)
        self._candidates.keep((offer.question, candidate) for candidate in scored.candidates)
        return scored

    def _keep_given(self, given: Sequence[Offer], open_: Sequence[Offer], at_once: int) -> int:
        """Keep the answers with scores, and return how many questions need nothing else."""
        _refuse_too_few(at_once)
        self._candidates.claim()
        for offer in open_:
            self._scorer.check(offer)
        for start in range(0, len(given), AT_ONCE):
            some = self._candidates.beside_known(given[start : start + AT_ONCE])
            self._candidates.keep(
                (one.question, kept) for one in some for kept in self._scorer.given(one)
            )
        known, waiting = ({question_id(one.question) for one in some} for some in (given, open_))
        return len(known - waiting)

    def _learn(self, find: Callable[[str], Offer], question: str) -> Learned:
        """Score one of many questions; a failure is returned and does not stop the others."""
        try:
            scored = self._add(find(question))
        except DemurError as error:
            return question, str(error), Usage()
        return question, "; ".join(scored.failed) or None, scored.usage

    def _take_over(self, at_once: int) -> list[str]:
        """Make this scorer's scores count, and return the questions that lack some of them.

        Raises:
            ValueError: `at_once` is less than 1. Then the scores that count stay the same.
            DemurError: There is no scorer, or Chroma failed.
        """
        _refuse_too_few(at_once)
        if self._scorer.fewl is None:
            raise DemurError("rescore() needs a scorer: ExampleStore(..., scorer=FEWL(...))")
        return self._candidates.take_over()

    def _stale(self, question: str) -> Offer:
        """Return the stale answers of a question as a new offer.

        The offer is empty if the question was removed in the meantime.
        """
        entry = self.get(question)
        stale = {one.answer: one.source for one in entry.stale} if entry else {}
        return Offer(question, stale)

    # --- Reading ----------------------------------------------------------------------------------

    def __len__(self) -> int:
        """Return the number of questions; this reads the ids of all candidates."""
        return len(self._candidates)

    def get(self, question: str) -> Entry | None:
        """Return the entry of exactly this question, or None."""
        return self._candidates.get(question)

    def entries(self) -> Iterator[Entry]:
        """Yield all questions with their candidates, always in the same order, read in parts."""
        return self._candidates.entries()

    def scorers(self) -> dict[str, Mapping[str, str]]:
        """Return what each name in `Candidate.scorer` stands for: texts that describe the scorer.

        The texts are those of `FEWL.fingerprints`: references, prompts, similarity and formula.
        """
        return self._candidates.scorers()

    def nearest(
        self,
        question: str,
        k: int,
        *,
        max_similarity: float | None = None,
        min_score: float | None = None,
    ) -> list[Exemplar]:
        """Return the most similar questions, each with its best answer.

        Args:
            question: The question. It is never returned itself, nor is a question that differs from
                it, or from another result, only in case and punctuation.
            k: How many questions to find, at least 1. There may be fewer.
            max_similarity: A ceiling: only questions whose vectors have a cosine below it count.
            min_score: A floor: only questions whose best answer has at least this score count.

        Returns:
            The nearest question first. Chroma's index is approximate and occasionally misses a
            question.

        Raises:
            ValueError: The question is blank, or a limit is out of its range.
            DemurError: Another scorer's scores count in this store (call `rescore`), or Chroma
                failed.
        """
        if not is_text(question):
            raise ValueError(f"expected a question, got {question!r}")
        check_limits(k, max_similarity, min_score)
        return self._candidates.nearest(question, k, max_similarity, min_score)

    def remove(self, question: str, answer: str | None = None) -> int:
        """Remove an answer of a question, or all its answers, and return how many records that was.

        Raises:
            DemurError: Chroma failed.
        """
        return self._candidates.remove(question, answer)

    # --- Files ------------------------------------------------------------------------------------

    def export(self, path: str | Path) -> None:
        """Write all entries to a file of JSON lines, without vectors.

        The file is written completely or not at all. It is compressed if its name ends in ".gz".
        """
        header = {"kind": KIND, **self._candidates.header()}
        write_lines(Path(path), chain([header], map(as_line, self.entries())))

    def load(self, path: str | Path) -> int:
        """Add the entries of a file that `export` wrote, and return how many there are.

        The answers keep their scores.

        Raises:
            ValueError: The file is of another kind, or it is damaged; nothing of it is added.
            DemurError: Another scorer's scores count in the file than in this store.
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


def _refuse_too_few(at_once: int) -> None:
    if at_once < 1:
        raise ValueError(f"at_once must be at least 1, got {at_once}")
