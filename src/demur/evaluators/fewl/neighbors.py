"""What the references said of other questions, in Chroma: the neighbours of FEWL's penalty."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from langchain_core.embeddings import Embeddings
from numpy.typing import NDArray

from demur._fingerprints import differences_between, told
from demur._recent import Recent
from demur.errors import DemurError
from demur.evaluators.fewl.drafts import Drafts
from demur.evaluators.fewl.entries import (
    KIND,
    KnownQuestion,
    as_kept,
    from_metadata,
    read_entries,
    to_metadata,
    write_entries,
)
from demur.evaluators.fewl.parsing import Pairs
from demur.storage import AT_ONCE, Questions, parts, question_id

__all__ = ["KnownQuestion", "Neighbor", "NeighborStore"]

_CHARACTERS = 64_000_000
"""Characters of entries that are kept in memory."""
_SECONDS = 300.0
"""How long an entry that was read serves lookups, before another process's change of it counts."""


@dataclass(frozen=True)
class Neighbor:
    """Another question, with what the references said of it."""

    question: str
    answers: tuple[str, ...]
    similarity: float
    """The cosine of the two questions' vectors."""


class NeighborStore:
    """Questions with the references' answers, found by exact question or by likeness.

    A question is known by the hash of its text after NFC, with white space made one. Texts are
    kept as they are, but for lone surrogates. Safe in threads. A folder belongs to one process at
    a time, until `close` or its end. Several share a server: there the last answers given for a
    question count, pairs count for the answers that they were given with, and answers that another
    process replaced may be told for five minutes more. What `add` has returned for is on disk, also
    after a kill; searches may miss the last question until the store is opened once more.

    Raises:
        MissingExtraError: Chroma is not installed.
        ValueError: The collection was made with another embedding model, or for something else.
        DemurError: The folder or the server cannot be used.
    """

    def __init__(
        self,
        path: str | Path | None = None,
        *,
        collection: str = "fewl-neighbors",
        embedding: Embeddings | None = None,
        client: Any = None,
    ) -> None:
        """Open or make a store.

        Args:
            path: A folder, or the URL of a Chroma server ("http://host:port"). Without it, and
                without a client, the store is in memory and its own, and is gone with it.
            collection: The collection's name, where several share a place.
            embedding: What computes the questions' vectors: all-MiniLM-L6-v2 in this process by
                default.
            client: A Chroma client that you have, instead of a path.
        """
        self._questions = Questions(
            path, client, collection, embedding, KIND, "a store of neighbours"
        )
        self._known: Recent[tuple[str, tuple[str, ...]]] = Recent(_CHARACTERS, _SECONDS)

    def __repr__(self) -> str:
        return (
            f"NeighborStore({self._questions.chroma.name!r}, collection={self._questions.name!r})"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return self._questions.again(NeighborStore)

    def close(self) -> None:
        """Let go of the folder, so that another process can open it; the store is then done."""
        self._questions.chroma.close()

    @cached_property
    def drafts(self) -> Drafts:
        """What some references said of questions that others could not answer yet."""
        name = f"{self._questions.name}-drafts"
        drafts = Drafts(self._questions.chroma, name)
        self._questions.gone_with_this(name)
        return drafts

    # --- Writing ------------------------------------------------------------------------------

    def add(
        self,
        question: str,
        answers: Sequence[str],
        pairs: Pairs | None = None,
        agreement: Sequence[float] | None = None,
    ) -> None:
        """Keep what the references said of a question.

        What is kept already is replaced. Without `pairs` or `agreement`, those that were kept
        with the same answers stay.

        Args:
            question: The question.
            answers: One answer per reference, in their order.
            pairs: Wrong and corrected answers.
            agreement: One number per reference.

        Raises:
            ValueError: The question is blank, there is no answer, or the numbers do not fit.
        """
        if isinstance(answers, str):
            raise ValueError(f"expected a list of answers, one per reference, got {answers!r}")
        kept = None if agreement is None else tuple(map(float, agreement))
        self.add_many([KnownQuestion(question, tuple(answers), pairs, kept)])

    def add_many(self, questions: Sequence[KnownQuestion]) -> None:
        """Keep several questions at once, which takes a tenth of the time of one by one.

        An interrupt leaves some of them kept, each of those whole.
        """
        entries = {question_id(known.question): as_kept(known) for known in questions}
        rows = {id_: to_metadata(entry) for id_, entry in entries.items()}
        self._questions.write(rows, {id_: entry.question for id_, entry in entries.items()})
        self._remember(entries)

    def bind(self, reference_models: str, prompts: str) -> None:
        """Say whose answers these are; the first to say so decides.

        Args:
            reference_models: What tells this set of reference models from others.
            prompts: What tells the wording of the requests from others.

        Raises:
            ValueError: The store is bound to others; the message says to which.
        """
        wanted = {"reference_models": reference_models, "prompts": prompts}
        bound = self._questions.claim(wanted)
        for key, wants in wanted.items():
            if bound.get(key) != wants:
                what = key.replace("_", " ")
                differing = differences_between({what: wants}, {what: bound.get(key, "")})
                raise ValueError(
                    f"{self._questions} was made with other {what}: "
                    f"{told(differing, '{what} was {there} and is {here} here')}. Answers of "
                    f"different {what} cannot be mixed: give another collection or another path"
                )

    def binding(self) -> dict[str, str]:
        """The `reference_models` and `prompts` that the store is bound to; empty before `bind`."""
        known = self._questions.metadata()
        return {key: known[key] for key in ("reference_models", "prompts") if key in known}

    # --- Reading ------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._questions)

    def questions(self) -> list[str]:
        """The questions that are kept, in an order that stays the same."""
        return [entry.question for entry in self.entries()]

    def entries(self) -> Iterator[KnownQuestion]:
        """All that is kept, in an order that stays the same, read in parts."""
        for part in parts(self._questions.ids().tolist()):
            entries = self._read(part)
            yield from (entries[id_] for id_ in part if id_ in entries)

    def get(self, question: str) -> KnownQuestion | None:
        """What is kept of this question, without computing a vector; None if nothing is."""
        return self.get_many([question])[0]

    def get_many(self, questions: Sequence[str]) -> list[KnownQuestion | None]:
        """What is kept of each of these questions."""
        ids = [question_id(question) for question in questions]
        entries = self._read(list(dict.fromkeys(ids)))
        return [entries.get(id_) for id_ in ids]

    def nearest(self, question: str, k: int, max_similarity: float) -> list[Neighbor]:
        """The `k` questions that are most alike, without paraphrases; fewer if there are no more.

        Args:
            question: The question, which is never its own neighbour.
            k: How many to find, at least 1.
            max_similarity: Only questions whose vectors have a cosine below it count.

        Returns:
            The nearest first. They are found by Chroma's index, which now and then misses one.
        """
        return self.nearest_many([question], k, max_similarity)[0]

    def nearest_many(
        self, questions: Sequence[str], k: int, max_similarity: float
    ) -> list[list[Neighbor]]:
        """The neighbours of each question, as `nearest`, which takes a third of the time."""
        _check(k, max_similarity)
        by_id = {question_id(question): question for question in questions}
        neighbors: dict[str, list[Neighbor]] = {}
        for ids in parts(list(by_id)):
            near = self._questions.nearest({id_: by_id[id_] for id_ in ids}, k, max_similarity)
            texts = self._texts(
                list({neighbor_id for ranked in near.values() for neighbor_id, _ in ranked})
            )
            for id_ in ids:
                neighbors[id_] = [
                    Neighbor(*texts[neighbor_id], score) for neighbor_id, score in near[id_]
                ]
        return [neighbors[question_id(question)] for question in questions]

    def random(self, question: str, k: int, max_similarity: float, seed: int = 0) -> list[Neighbor]:
        """`k` questions drawn at random under the same ceiling; fewer if there are no more.

        The same for the same question, seed and content, in whichever order that was added.
        """
        _check(k, max_similarity)
        own = question_id(question)
        vector = self._questions.vectors_of({own: question})[own]
        ids = self._questions.ids()
        order = np.random.default_rng([seed, int(own, 16)]).permutation(len(ids))
        neighbors: list[Neighbor] = []
        for start in range(0, len(order), 2 * k):
            drawn = ids[order[start : start + 2 * k]].tolist()
            vectors, texts = self._questions.stored_vectors(drawn), self._texts(drawn)
            for id_ in drawn:
                if id_ != own:
                    similarity = _cosine(vector, vectors[id_])
                    if similarity < max_similarity:
                        neighbors.append(Neighbor(*texts[id_], similarity))
            if len(neighbors) >= k:
                break
        return neighbors[:k]

    # --- Files --------------------------------------------------------------------------------

    def export(self, path: str | Path) -> None:
        """Write all that is kept to a file, without vectors: JSON lines, whole or not at all.

        Compressed where the name ends in ".gz". The same content gives the same bytes.
        """
        write_entries(Path(path), self.binding(), self.entries())

    def load(self, path: str | Path) -> int:
        """Add what `export` wrote, and tell how many questions that are.

        Raises:
            ValueError: The file is of other references or prompts, or damaged: some of what stands
                before the damage is then added.
            OSError: The file cannot be read.
        """
        binding, entries = read_entries(Path(path))
        if binding:
            self.bind(**binding)
        count = 0
        while part := list(islice(entries, AT_ONCE)):
            self.add_many(part)
            count += len(part)
        return count

    # --- Chroma -------------------------------------------------------------------------------

    def _read(self, ids: Sequence[str]) -> dict[str, KnownQuestion]:
        entries = {}
        for id_, row in self._questions.read(ids).items():
            try:
                entries[id_] = from_metadata(row)
            except (KeyError, TypeError, ValueError) as error:
                raise DemurError(
                    f"what {self!r} keeps under {id_} cannot be read: {error}. Delete that entry, "
                    "or give another collection"
                ) from error
        self._remember(entries)
        return entries

    def _texts(self, ids: Sequence[str]) -> dict[str, tuple[str, tuple[str, ...]]]:
        """Question and answers of each id, from memory where they were read lately."""
        remembered = self._known.get(ids)
        new = self._read([id_ for id_ in ids if id_ not in remembered])
        return remembered | {id_: (known.question, known.answers) for id_, known in new.items()}

    def _remember(self, entries: Mapping[str, KnownQuestion]) -> None:
        for id_, known in entries.items():
            size = len(known.question) + sum(map(len, known.answers))
            self._known.put(id_, (known.question, known.answers), size)


def _check(k: int, max_similarity: float) -> None:
    if k < 1:
        raise ValueError(f"k must be at least 1, got {k}")
    if not -1 <= max_similarity <= 1:
        raise ValueError(f"max_similarity is a cosine, from -1 to 1, got {max_similarity}")


def _cosine(first: NDArray[np.float32], second: NDArray[np.float32]) -> float:
    lengths = np.linalg.norm(first) * np.linalg.norm(second)
    return float(first @ second / lengths) if lengths else 0.0
