"""What the references said of other questions, in Chroma: the neighbours of FEWL's penalty."""

from __future__ import annotations

import threading
import uuid
import weakref
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from langchain_core.embeddings import Embeddings
from numpy.typing import NDArray

from demur.errors import DemurError
from demur.evaluators.fewl.drafts import Drafts
from demur.evaluators.fewl.entries import (
    KIND,
    Asked,
    as_kept,
    entry_id,
    from_metadata,
    read_entries,
    to_metadata,
    write_entries,
)
from demur.evaluators.fewl.parsing import Pairs
from demur.models.chroma import AT_ONCE, nearest, open_client, parts
from demur.models.embeddings import MiniLM
from demur.models.fingerprints import fingerprint
from demur.models.recent import Recent
from demur.text import replace_surrogates

__all__ = ["Asked", "Neighbor", "NeighborStore"]

_VECTORS = 2048
"""Vectors of questions that are kept in memory."""
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
        if path is not None and client is not None:
            raise ValueError("path and client both say where the store is: give one of them")
        if isinstance(path, Path) or (path is not None and "://" not in path):
            path = str(Path(path).expanduser().absolute())
        self._path = path
        self._embedding = MiniLM() if embedding is None else embedding
        self._chroma = open_client(client if path is None else path, "a store of neighbours")
        self._private = path is None and client is None
        # In memory all of one process see the same collections.
        self._name = f"{collection}-{uuid.uuid4().hex}" if self._private else collection
        self._collection = self._open()
        self._gone_with_this(self._name)
        self._known: Recent[tuple[str, tuple[str, ...]]] = Recent(_CHARACTERS, _SECONDS)
        self._vectors: Recent[NDArray[np.float32]] = Recent(_VECTORS)
        self._binding = threading.Lock()
        self._ids: NDArray[np.str_] = np.array([], dtype=np.str_)

    def __repr__(self) -> str:
        return f"NeighborStore({self._chroma.name!r}, collection={self._name!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        if self._path is None:
            raise TypeError(
                f"{self!r} cannot be pickled, since it lives in this process. Give it a folder or "
                "the URL of a Chroma server"
            )
        again = partial(NeighborStore, collection=self._name, embedding=self._embedding)
        return again, (self._path,)

    def close(self) -> None:
        """Let go of the folder, so that another process can open it; the store is then done."""
        self._chroma.close()

    @cached_property
    def drafts(self) -> Drafts:
        """What some references said of questions that others could not answer yet."""
        name = f"{self._name}-drafts"
        made = Drafts(self._chroma, name)
        self._gone_with_this(name)
        return made

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
        self.add_many([Asked(question, tuple(answers), pairs, kept)])

    def add_many(self, asked: Sequence[Asked]) -> None:
        """Keep several questions at once, which takes a tenth of the time of one by one.

        An interrupt leaves some of them kept, each of those whole.
        """
        entries = {entry_id(one.question): as_kept(one) for one in asked}
        rows = {id_: to_metadata(one) for id_, one in entries.items()}
        self._chroma.write(
            self._collection,
            rows,
            lambda new: self._new_vectors({id_: entries[id_].question for id_ in new}),
        )
        self._remember(entries)

    def bind(self, references: str, prompts: str) -> None:
        """Say whose answers these are; the first to say so decides.

        Args:
            references: What tells this set of reference models from others.
            prompts: What tells the wording of the requests from others.

        Raises:
            ValueError: The store is bound to others; the message says to which.
        """
        wanted = {"references": references, "prompts": prompts}
        with self._binding:
            if not self.binding():
                with self._chroma.use():
                    metadata = self._open().metadata
                    self._collection.modify(metadata={**metadata, **wanted})
            # Read again: of two processes that bind at once, the one that came first may see it.
            found = self.binding()
        for what, wants in wanted.items():
            if found.get(what) != wants:
                raise ValueError(
                    f"the collection {self._name!r} in {self._chroma.name} was made with other "
                    f"{what}: {found.get(what)}, and wanted is {wants}. Answers of different "
                    f"{what} cannot be mixed: give another collection or another path"
                )

    def binding(self) -> dict[str, str]:
        """The `references` and `prompts` that the store is bound to; empty before `bind`."""
        known = self._open().metadata
        return {key: known[key] for key in ("references", "prompts") if key in known}

    # --- Reading ------------------------------------------------------------------------------

    def __len__(self) -> int:
        with self._chroma.use():
            return int(self._collection.count())

    def questions(self) -> list[str]:
        """The questions that are kept, in an order that stays the same."""
        return [one.question for one in self.entries()]

    def entries(self) -> Iterator[Asked]:
        """All that is kept, in an order that stays the same, read in parts."""
        for part in parts(self._all_ids().tolist()):
            found = self._read(part)
            yield from (found[id_] for id_ in part if id_ in found)

    def get(self, question: str) -> Asked | None:
        """What is kept of this question, without computing a vector; None if nothing is."""
        return self.get_many([question])[0]

    def get_many(self, questions: Sequence[str]) -> list[Asked | None]:
        """What is kept of each of these questions."""
        ids = [entry_id(question) for question in questions]
        found: dict[str, Asked] = {}
        for part in parts(list(dict.fromkeys(ids))):
            found |= self._read(part)
        return [found.get(id_) for id_ in ids]

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
        asked = {entry_id(question): question for question in questions}
        found: dict[str, list[Neighbor]] = {}
        for ids in parts(list(asked)):
            vectors = self._vectors_of({id_: asked[id_] for id_ in ids})
            near = self._chroma.search(
                partial(nearest, self._collection, vectors, k, max_similarity)
            )
            said = self._said(list({other for ranked in near.values() for other, _ in ranked}))
            for id_ in ids:
                found[id_] = [Neighbor(*said[other], score) for other, score in near[id_]]
        return [found[entry_id(question)] for question in questions]

    def random(self, question: str, k: int, max_similarity: float, seed: int = 0) -> list[Neighbor]:
        """`k` questions drawn at random under the same ceiling; fewer if there are no more.

        The same for the same question, seed and content, in whichever order that was added.
        """
        _check(k, max_similarity)
        own = entry_id(question)
        vector = self._vectors_of({own: question})[own]
        ids = self._all_ids()
        order = np.random.default_rng([seed, int(own, 16)]).permutation(len(ids))
        found: list[Neighbor] = []
        for start in range(0, len(order), 2 * k):
            drawn = ids[order[start : start + 2 * k]].tolist()
            vectors, said = self._stored_vectors(drawn), self._said(drawn)
            for id_ in drawn:
                if id_ != own:
                    similarity = _cosine(vector, vectors[id_])
                    if similarity < max_similarity:
                        found.append(Neighbor(*said[id_], similarity))
            if len(found) >= k:
                break
        return found[:k]

    # --- Files --------------------------------------------------------------------------------

    def export(self, path: str | Path) -> None:
        """Write all that is kept to a file, without vectors: JSON lines, whole or not at all.

        Compressed where the name ends in ".gz". The same content gives the same bytes.
        """
        write_entries(Path(path), self.binding(), self.entries())

    def load(self, path: str | Path) -> int:
        """Add what `export` wrote, and tell how many questions that are.

        Raises:
            ValueError: The file is of other references or prompts, or damaged: what stands before
                the damage is then added.
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

    def _gone_with_this(self, name: str) -> None:
        """Drop the collection when this store goes, if it is in memory and its own."""
        if self._private:
            drop = partial(self._chroma.client.delete_collection, name)
            weakref.finalize(self, drop).atexit = False

    def _open(self) -> Any:
        return self._chroma.collection(self._name, KIND, fingerprint(self._embedding))

    def _all_ids(self) -> NDArray[np.str_]:
        """All ids in order. They are read again when there are more or fewer than before."""
        if len(self._ids) != len(self):
            with self._chroma.use():
                self._ids = np.array(sorted(self._collection.get(include=[])["ids"]), np.str_)
        return self._ids

    def _read(self, ids: list[str]) -> dict[str, Asked]:
        with self._chroma.use():
            rows = self._collection.get(ids=ids, include=["metadatas"])
        found = {}
        for id_, row in zip(rows["ids"], rows["metadatas"], strict=True):
            try:
                found[id_] = from_metadata(row)
            except (KeyError, TypeError, ValueError) as error:
                raise DemurError(
                    f"what {self!r} keeps under {id_} cannot be read: {error}. Delete that entry, "
                    "or give another collection"
                ) from error
        self._remember(found)
        return found

    def _said(self, ids: Sequence[str]) -> dict[str, tuple[str, tuple[str, ...]]]:
        """Question and answers of each id, from memory where they were read lately."""
        said = self._known.get(ids)
        for part in parts([id_ for id_ in ids if id_ not in said]):
            said |= {id_: (one.question, one.answers) for id_, one in self._read(part).items()}
        return said

    def _remember(self, entries: Mapping[str, Asked]) -> None:
        for id_, one in entries.items():
            size = len(one.question) + sum(map(len, one.answers))
            self._known.put(id_, (one.question, one.answers), size)

    def _vectors_of(self, questions: Mapping[str, str]) -> dict[str, NDArray[np.float32]]:
        """The vectors of questions by their ids: used lately, else stored, else computed."""
        found = self._vectors.get(questions)
        if lacking := [id_ for id_ in questions if id_ not in found]:
            found |= self._used(self._stored_vectors(lacking))
        new = {id_: question for id_, question in questions.items() if id_ not in found}
        return found | self._new_vectors(new)

    def _new_vectors(self, questions: Mapping[str, str]) -> dict[str, NDArray[np.float32]]:
        """The same of questions that are not stored: used lately, else computed."""
        found = self._vectors.get(questions)
        if lacking := {id_: questions[id_] for id_ in questions if id_ not in found}:
            found |= self._used(self._computed(lacking))
        return found

    def _used(self, vectors: dict[str, NDArray[np.float32]]) -> dict[str, NDArray[np.float32]]:
        for id_, vector in vectors.items():
            self._vectors.put(id_, vector, 1)
        return vectors

    def _stored_vectors(self, ids: list[str]) -> dict[str, NDArray[np.float32]]:
        read = partial(self._collection.get, ids=ids, include=["embeddings"])
        rows = self._chroma.search(read)
        return dict(zip(rows["ids"], np.asarray(rows["embeddings"], np.float32), strict=True))

    def _computed(self, questions: Mapping[str, str]) -> dict[str, NDArray[np.float32]]:
        texts = [replace_surrogates(text) for text in questions.values()]
        vectors = np.asarray(self._embedding.embed_documents(texts), np.float32)
        if vectors.ndim != 2 or len(vectors) != len(texts) or not np.isfinite(vectors).all():
            raise ValueError(
                f"expected a vector of finite numbers for each of {len(texts)} questions from "
                f"{fingerprint(self._embedding)}, got an array of shape {vectors.shape}"
            )
        return dict(zip(questions, vectors, strict=True))


def _check(k: int, max_similarity: float) -> None:
    if k < 1:
        raise ValueError(f"k must be at least 1, got {k}")
    if not -1 <= max_similarity <= 1:
        raise ValueError(f"max_similarity is a cosine, from -1 to 1, got {max_similarity}")


def _cosine(first: NDArray[np.float32], second: NDArray[np.float32]) -> float:
    lengths = np.linalg.norm(first) * np.linalg.norm(second)
    return float(first @ second / lengths) if lengths else 0.0
