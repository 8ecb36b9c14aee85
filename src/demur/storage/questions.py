"""Questions in Chroma, each with what is kept of it, found by their exact text or by likeness."""

from __future__ import annotations

import hashlib
import unicodedata
import uuid
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from langchain_core.embeddings import Embeddings
from numpy.typing import NDArray

from demur._fingerprints import fingerprint
from demur._forks import lock
from demur._recent import Recent
from demur._text import replace_surrogates
from demur.local import MiniLM
from demur.storage.chroma import nearest, open_client, parts

T = TypeVar("T")
Vector = NDArray[np.float32]

_VECTORS = 2048
"""Vectors of questions that are kept in memory."""


def question_id(question: str) -> str:
    """The hash by which a question is known: of its text after NFC, with white space made one."""
    text = " ".join(unicodedata.normalize("NFC", replace_surrogates(question)).split())
    return hashlib.sha256(text.encode()).hexdigest()


class Questions:
    """A collection of questions with their vectors and metadata: what demur's stores stand on.

    Safe in threads. A folder belongs to one process at a time, until `close` or its end; several
    share a server.

    Raises:
        MissingExtraError: Chroma is not installed.
        ValueError: The collection was made with another embedding model, or for something else;
            or both a path and a client are given.
        DemurError: The folder or the server cannot be used.
    """

    def __init__(
        self,
        path: str | Path | None,
        client: Any,
        collection: str,
        embedding: Embeddings | None,
        kind: str,
        purpose: str,
    ) -> None:
        """Open or make a collection.

        Args:
            path: A folder, or the URL of a Chroma server. Without it, and without a client, the
                collection is in memory and this object's own, and is gone with it.
            client: A Chroma client of the user's, instead of a path.
            collection: The collection's name.
            embedding: What computes the questions' vectors; None: all-MiniLM-L6-v2.
            kind: What is kept, and in which form.
            purpose: What it is for, in an error's words.
        """
        if path is not None and client is not None:
            raise ValueError("path and client both say where the store is: give one of them")
        if isinstance(path, Path) or (path is not None and "://" not in path):
            path = str(Path(path).expanduser().absolute())
        self._path = path
        self._kind = kind
        self._private = path is None and client is None
        self.embedding = MiniLM() if embedding is None else embedding
        self.chroma = open_client(client if path is None else path, purpose)
        # In memory all of one process see the same collections.
        self.name = f"{collection}-{uuid.uuid4().hex}" if self._private else collection
        self.collection = self._open()
        self.gone_with_this(self.name)
        self._vectors: Recent[Vector] = Recent(_VECTORS)
        self._ids: NDArray[np.str_] = np.array([], dtype=np.str_)
        self._claiming = lock()

    @property
    def alone(self) -> bool:
        """Whether no other process can write here."""
        return self._private or self.chroma.folder is not None

    def __str__(self) -> str:
        return f"the collection {self.name!r} in {self.chroma.name}"

    def again(self, store: Callable[..., T], **options: Any) -> tuple[Callable[..., T], tuple[str]]:
        """How pickle makes a store anew that stands on this.

        Raises:
            TypeError: It lives in this process.
        """
        if self._path is None:
            raise TypeError(
                f"{self} cannot be pickled, since it lives in this process. Give it a folder or "
                "the URL of a Chroma server"
            )
        restore = partial(store, collection=self.name, embedding=self.embedding, **options)
        return restore, (self._path,)

    def gone_with_this(self, name: str) -> None:
        """Drop a collection when this object goes, if that is in memory and its own."""
        if self._private:
            weakref.finalize(self, self.chroma.drop, name).atexit = False

    # --- What is said of the whole ----------------------------------------------------------------

    def metadata(self) -> Mapping[str, str]:
        """What is said of the collection, read anew: another process may have changed it."""
        return dict(self._open().metadata)

    def claim(self, values: Mapping[str, str]) -> Mapping[str, str]:
        """Say something of the whole, unless one of its keys is there: the first to say it decides.

        Returns:
            What is said now. It is read again: of two processes that claim at once, the one that
            came first may see the other's.
        """
        with self._claiming:
            known = self.metadata()
            if values.keys() & known.keys():
                return known
            self.say(values)
        return self.metadata()

    def say(self, values: Mapping[str, str]) -> None:
        """Say something of the whole, in the place of what was said before."""
        with self.chroma.use():
            self.collection.modify(metadata={**self._open().metadata, **values})

    def _open(self) -> Any:
        return self.chroma.collection(self.name, self._kind, fingerprint(self.embedding))

    # --- What is said of each ---------------------------------------------------------------------

    def __len__(self) -> int:
        with self.chroma.use():
            return int(self.collection.count())

    def ids(self) -> NDArray[np.str_]:
        """All ids in order, where none is ever deleted: read again when there are more."""
        if len(self._ids) != len(self):
            self._ids = np.array(self.all_ids(), np.str_)
        return self._ids

    def all_ids(self) -> list[str]:
        """All ids in order, read anew."""
        with self.chroma.use():
            return sorted(self.collection.get(include=[])["ids"])

    def read(self, ids: Sequence[str]) -> dict[str, Mapping[str, Any]]:
        """The metadata of those ids that are there."""
        metadata_by_id: dict[str, Mapping[str, Any]] = {}
        for part in parts(ids):
            with self.chroma.use():
                rows = self.collection.get(ids=part, include=["metadatas"])
            metadatas = (metadata or {} for metadata in rows["metadatas"])
            metadata_by_id |= dict(zip(rows["ids"], metadatas, strict=True))
        return metadata_by_id

    def write(self, rows: Mapping[str, Mapping[str, str]], texts: Mapping[str, str]) -> None:
        """Write metadata by id, and the vectors of what is new; see `Chroma.write`.

        Args:
            rows: The metadata. Of what is there, the keys that are not given stay.
            texts: The questions by their ids.
        """
        self.chroma.write(
            self.collection,
            rows,
            lambda new: self.new_vectors({id_: texts[id_] for id_ in new}),
        )

    def amend(self, rows: Mapping[str, Mapping[str, str | None]]) -> None:
        """Change metadata of questions that are there; None takes a key out."""
        for part in parts([id_ for id_, row in rows.items() if row]):
            with self.chroma.use():
                self.collection.update(part, metadatas=[dict(rows[id_]) for id_ in part])

    def delete(self, ids: Sequence[str]) -> None:
        """Forget questions; those that are not there count for nothing."""
        for part in parts(ids):
            with self.chroma.use():
                self.collection.delete(part)

    # --- Likeness ---------------------------------------------------------------------------------

    def nearest(
        self, texts: Mapping[str, str], k: int, ceiling: float
    ) -> dict[str, list[tuple[str, float]]]:
        """The ids of the `k` questions nearest to each, with the cosine; see `chroma.nearest`."""
        vectors = self.vectors_of(texts)
        return self.chroma.search(partial(nearest, self.collection, vectors, k, ceiling))

    def by_nearness(
        self, vector: Vector, first: int, with_vectors: bool = False
    ) -> Iterator[tuple[str, float, Mapping[str, Any]]]:
        """Ids from the nearest to a vector on, with the cosine and the metadata, as they are read.

        Equal ones come in the order of their ids. The first request is for one more than `first`,
        with their metadata; each further one is for four times as many, so that who stops early
        pays for no more. `with_vectors` has the first request bring these too, for `vectors_of`.
        """
        wide, known = first + 1, set[str]()
        while True:
            wanted = ["metadatas", "embeddings"] if with_vectors else ["metadatas"]
            include = ["distances", *([] if known else wanted)]
            ask = partial(
                self.collection.query, query_embeddings=[vector], n_results=wide, include=include
            )
            reply = self.chroma.search(ask)
            ids, metadatas = reply["ids"][0], reply["metadatas"]
            if reply["embeddings"] is not None:
                self._used(
                    dict(zip(ids, np.asarray(reply["embeddings"][0], np.float32), strict=True))
                )
            cosines = {id_: 1.0 - far for id_, far in zip(ids, reply["distances"][0], strict=True)}
            # Which of equal ones a request still brings is chance: they wait for the next.
            edge = min(cosines.values()) if len(ids) == wide else -np.inf
            near = [id_ for id_, cosine in cosines.items() if cosine > edge and id_ not in known]
            ranked = sorted(near, key=lambda id_: (-cosines[id_], id_))
            for part in parts(ranked):
                rows = self.read(part) if known else dict(zip(ids, metadatas[0], strict=True))
                yield from ((id_, cosines[id_], rows[id_]) for id_ in part if id_ in rows)
            if len(ids) < wide:
                return
            known.update(ranked)
            wide *= 4

    def vectors_of(self, texts: Mapping[str, str]) -> dict[str, Vector]:
        """The vectors of questions by their ids: used lately, else stored, else computed."""
        vectors = self._vectors.get(texts)
        if lacking := [id_ for id_ in texts if id_ not in vectors]:
            vectors |= self._used(self.stored_vectors(lacking))
        new = {id_: text for id_, text in texts.items() if id_ not in vectors}
        return vectors | self.new_vectors(new)

    def stored_vectors(self, ids: Sequence[str]) -> dict[str, Vector]:
        """The vectors of those ids that are there."""
        read = partial(self.collection.get, ids=list(ids), include=["embeddings"])
        rows = self.chroma.search(read)
        return dict(zip(rows["ids"], np.asarray(rows["embeddings"], np.float32), strict=True))

    def new_vectors(self, texts: Mapping[str, str]) -> dict[str, Vector]:
        """The same of questions that are not stored: used lately, else computed."""
        vectors = self._vectors.get(texts)
        if lacking := {id_: texts[id_] for id_ in texts if id_ not in vectors}:
            vectors |= self._used(self._computed(lacking))
        return vectors

    def _used(self, vectors: dict[str, Vector]) -> dict[str, Vector]:
        for id_, vector in vectors.items():
            self._vectors.put(id_, vector, 1)
        return vectors

    def _computed(self, texts: Mapping[str, str]) -> dict[str, Vector]:
        questions = [replace_surrogates(text) for text in texts.values()]
        vectors = np.asarray(self.embedding.embed_documents(questions), np.float32)
        if vectors.ndim != 2 or len(vectors) != len(questions) or not np.isfinite(vectors).all():
            raise ValueError(
                f"expected a vector of finite numbers for each of {len(questions)} questions from "
                f"{fingerprint(self.embedding)}, got an array of shape {vectors.shape}"
            )
        return dict(zip(texts, vectors, strict=True))
