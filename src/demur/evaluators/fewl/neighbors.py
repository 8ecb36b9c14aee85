"""Keep what the references said of other questions, in Chroma: the neighbours of the penalty."""

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

from demur._system import Recent
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
from demur.schema.fingerprints import differences_between, told
from demur.storage import AT_ONCE, Questions, parts, question_id

__all__ = ["KnownQuestion", "Neighbor", "NeighborStore"]

_CHARACTERS = 64_000_000
"""The number of characters of entries that are kept in memory."""
_SECONDS = 300.0
"""How long an entry is served from memory, before a change by another process counts."""


@dataclass(frozen=True)
class Neighbor:
    """Hold another question, with what the references said of it."""

    question: str
    answers: tuple[str, ...]
    similarity: float
    """The cosine of the vectors of the two questions."""


class NeighborStore:
    """Keep questions with the references' answers, and find them by exact text or by similarity.

    A question is identified by the hash of its text, after Unicode normalization (NFC) and with
    each run of white space as one space. Texts are kept as they are, except for lone surrogates.

    The store is safe to use from several threads. Only one process at a time can use a folder,
    until it calls `close` or ends. Several processes can share a server:

    - The answers that were added last for a question count.
    - Pairs count for the answers that they were added with.
    - `nearest` and `random` may return answers that another process replaced up to five minutes
      ago.

    After `add` has returned, the question is on disk and survives a kill. Searches may miss the
    last question until the store is opened again.

    Raises:
        MissingExtraError: Chroma is not installed.
        ValueError: The collection was made with another embedding model or for another purpose.
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
        """Open a store, or make it if it does not exist.

        Args:
            path: A folder, or the URL of a Chroma server ("http://host:port"). Without a path and a
                client, the store is in memory, is not shared, and ends with this object.
            collection: The name of the collection, since several collections can share a folder or
                a server.
            embedding: The model that computes the vectors of questions. By default, this is
                all-MiniLM-L6-v2 in this process.
            client: Your own Chroma client, instead of a path.
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
        """Release the folder, so that another process can open it; the store is unusable then."""
        self._questions.chroma.close()

    @cached_property
    def drafts(self) -> Drafts:
        """Return the replies to questions that not all references have answered yet."""
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

        An entry of the same question is replaced. Without `pairs` or `agreement`, the earlier
        values stay if they were kept with the same answers.

        Args:
            question: The question.
            answers: One answer for each reference, in their order.
            pairs: The wrong and corrected answers.
            agreement: One number for each reference answer.

        Raises:
            ValueError: The question is blank, there is no answer, or there are not as many numbers
                as answers.
        """
        if isinstance(answers, str):
            raise ValueError(f"expected a list of answers, one per reference, got {answers!r}")
        kept = None if agreement is None else tuple(map(float, agreement))
        self.add_many([KnownQuestion(question, tuple(answers), pairs, kept)])

    def add_many(self, questions: Sequence[KnownQuestion]) -> None:
        """Keep several questions at once, in about a tenth of the time of adding them one by one.

        After an interrupt, some of the questions are kept, and each of them is complete.
        """
        entries = {question_id(known.question): as_kept(known) for known in questions}
        rows = {id_: to_metadata(entry) for id_, entry in entries.items()}
        self._questions.write(rows, {id_: entry.question for id_, entry in entries.items()})
        self._remember(entries)

    def bind(self, reference_models: str, prompts: str) -> None:
        """Declare which reference models and prompts the answers come from; the first call decides.

        Args:
            reference_models: A text that identifies the set of reference models.
            prompts: A text that identifies the wording of the requests.

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
        """Return the `reference_models` and `prompts` of `bind`, or an empty dict before it."""
        known = self._questions.metadata()
        return {key: known[key] for key in ("reference_models", "prompts") if key in known}

    # --- Reading ------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._questions)

    def questions(self) -> list[str]:
        """Return the questions that are kept, always in the same order."""
        return [entry.question for entry in self.entries()]

    def entries(self) -> Iterator[KnownQuestion]:
        """Yield every entry, always in the same order; the entries are read in parts."""
        for part in parts(self._questions.ids().tolist()):
            entries = self._read(part)
            yield from (entries[id_] for id_ in part if id_ in entries)

    def get(self, question: str) -> KnownQuestion | None:
        """Return the entry of exactly this question, or None; no vector is computed."""
        return self.get_many([question])[0]

    def get_many(self, questions: Sequence[str]) -> list[KnownQuestion | None]:
        """Return the entry of each of these questions, or None where there is no entry."""
        ids = [question_id(question) for question in questions]
        entries = self._read(list(dict.fromkeys(ids)))
        return [entries.get(id_) for id_ in ids]

    def nearest(self, question: str, k: int, max_similarity: float) -> list[Neighbor]:
        """Return the `k` most similar questions without paraphrases, or fewer if there are no more.

        Args:
            question: The question, which is never its own neighbour.
            k: How many questions to find, at least 1.
            max_similarity: A ceiling: only questions whose vectors have a cosine below it count.

        Returns:
            The nearest question first. Chroma's index is approximate and occasionally misses a
            question.

        Raises:
            ValueError: `k` or `max_similarity` is out of its range.
        """
        return self.nearest_many([question], k, max_similarity)[0]

    def nearest_many(
        self, questions: Sequence[str], k: int, max_similarity: float
    ) -> list[list[Neighbor]]:
        """Return the neighbours of each question, as `nearest` does, in a third of the time."""
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

    def random(self, question: str, k: int, max_similarity: float) -> list[Neighbor]:
        """Return `k` random questions under the same ceiling, or fewer if there are no more.

        The result depends only on the question and the content of the store. The order in which the
        content was added does not matter.
        """
        _check(k, max_similarity)
        own = question_id(question)
        vector = self._questions.vectors_of({own: question})[own]
        ids = self._questions.ids()
        order = np.random.default_rng([0, int(own, 16)]).permutation(len(ids))
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
        """Write all entries to a file of JSON lines, without vectors.

        The file is written completely or not at all. The file is compressed if its name ends in
        ".gz". The same content gives the same bytes.
        """
        write_entries(Path(path), self.binding(), self.entries())

    def load(self, path: str | Path) -> int:
        """Add the entries of a file that `export` wrote, and return how many there are.

        Raises:
            ValueError: The file belongs to other references or prompts, or it is damaged. In the
                second case, some of the entries before the damage have been added.
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
                    f"the entry {id_} of {self!r} cannot be read: {error}. Delete that entry, "
                    "or give another collection"
                ) from error
        self._remember(entries)
        return entries

    def _texts(self, ids: Sequence[str]) -> dict[str, tuple[str, tuple[str, ...]]]:
        """Return the question and the answers of each id, from memory if they were read lately."""
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
