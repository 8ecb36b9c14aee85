"""Keep data about questions in Chroma, and find it by the exact text or by similarity."""

from __future__ import annotations

import hashlib
import unicodedata
import uuid
import weakref
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from langchain_core.embeddings import Embeddings
from numpy.typing import NDArray

from demur._system import Recent, lock
from demur._text import replace_surrogates
from demur.local import MiniLM
from demur.schema.fingerprints import fingerprint
from demur.storage.chroma import Row, nearest, open_client, parts

T = TypeVar("T")
Vector = NDArray[np.float32]

_VECTORS = 2048
"""The most vectors of questions that are kept in memory."""


def question_id(question: str) -> str:
    """Return the SHA-256 by which a question is known.

    It is computed after NFC normalization, with each run of white space as one space.
    """
    text = " ".join(unicodedata.normalize("NFC", replace_surrogates(question)).split())
    return hashlib.sha256(text.encode()).hexdigest()


class Questions:
    """Hold a collection of records with the vectors of questions, as the base of demur's stores.

    You can use it from several threads. Only one process at a time can use a folder, until it calls
    `close` or ends. Several processes can share a server.

    Raises:
        MissingExtraError: Chroma is not installed.
        ValueError: The collection was made with another embedding model or for another purpose, or
            both a path and a client are given.
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
            path: A folder, or the URL of a Chroma server. Without a path and a client, the
                collection is in memory, belongs to this object, and is deleted with it.
            client: A Chroma client of the user, instead of a path.
            collection: The collection's name.
            embedding: The model that computes the questions' vectors; None: all-MiniLM-L6-v2.
            kind: The kind of the records, and their form.
            purpose: What the collection is needed for, as an error message says it.
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
        # In memory, all objects of one process see the same collections: the name must be unique.
        self.name = f"{collection}-{uuid.uuid4().hex}" if self._private else collection
        self.collection = self._open()
        self.gone_with_this(self.name)
        self._vectors: Recent[Vector] = Recent(_VECTORS)
        self._ids: NDArray[np.str_] = np.array([], dtype=np.str_)
        self._claiming = lock()

    def __str__(self) -> str:
        return f"the collection {self.name!r} in {self.chroma.name}"

    def again(self, store: Callable[..., T], **options: Any) -> tuple[Callable[..., T], tuple[str]]:
        """Return how pickle rebuilds a store with this collection: a callable and its arguments.

        Raises:
            TypeError: The collection exists only in this process.
        """
        if self._path is None:
            raise TypeError(
                f"{self} cannot be pickled, since it lives in this process. Give it a folder or "
                "the URL of a Chroma server"
            )
        restore = partial(store, collection=self.name, embedding=self.embedding, **options)
        return restore, (self._path,)

    def gone_with_this(self, name: str) -> None:
        """Delete a collection together with this object, if the collection belongs to it."""
        if self._private:
            weakref.finalize(self, self.chroma.drop, name).atexit = False

    # --- Metadata of the collection ---------------------------------------------------------------

    def metadata(self) -> Mapping[str, str]:
        """Return the collection's metadata, read anew: another process may have changed it."""
        return dict(self._open().metadata)

    def claim(self, values: Mapping[str, str]) -> Mapping[str, str]:
        """Write metadata of the collection, unless it has one of the keys: the first caller wins.

        Returns:
            The metadata as it is now. It is read again: if two processes claim at once, the first
            one may see the values of the other.
        """
        with self._claiming:
            known = self.metadata()
            if values.keys() & known.keys():
                return known
            self.say(values)
        return self.metadata()

    def say(self, values: Mapping[str, str]) -> None:
        """Write metadata of the collection, and replace earlier values of the same keys."""
        with self.chroma.use():
            self.collection.modify(metadata={**self._open().metadata, **values})

    def _open(self) -> Any:
        return self.chroma.collection(self.name, self._kind, fingerprint(self.embedding))

    # --- Records ----------------------------------------------------------------------------------

    def __len__(self) -> int:
        with self.chroma.use():
            return int(self.collection.count())

    def ids(self) -> NDArray[np.str_]:
        """Return all ids in order, read again only if their number has changed.

        Use it where no record is ever deleted.
        """
        if len(self._ids) != len(self):
            self._ids = np.array(self.all_ids(), np.str_)
        return self._ids

    def all_ids(self) -> list[str]:
        """Return all ids in order, read anew."""
        with self.chroma.use():
            return sorted(self.collection.get(include=[])["ids"])

    def read(self, ids: Sequence[str]) -> dict[str, Mapping[str, Any]]:
        """Return the metadata of the given ids, by id; unknown ids are left out."""
        metadata_by_id: dict[str, Mapping[str, Any]] = {}
        for part in parts(ids):
            with self.chroma.use():
                rows = self.collection.get(ids=part, include=["metadatas"])
            metadatas = (metadata or {} for metadata in rows["metadatas"])
            metadata_by_id |= dict(zip(rows["ids"], metadatas, strict=True))
        return metadata_by_id

    def where(self, fields: Mapping[str, str]) -> dict[str, Mapping[str, Any]]:
        """Return the metadata of all records with these fields, by id."""
        with self.chroma.use():
            rows = self.collection.get(where=dict(fields), include=["metadatas"])
        return dict(zip(rows["ids"], rows["metadatas"], strict=True))

    def write(self, rows: Mapping[str, Row], texts: Mapping[str, str]) -> None:
        """Write metadata by id, and the vectors of new records; see `Chroma.write`.

        Args:
            rows: The metadata. An existing record keeps the keys that are not given.
            texts: The questions by the same ids.
        """
        questions = {id_: question_id(text) for id_, text in texts.items()}

        def vectors_of(new: Sequence[str]) -> dict[str, Vector]:
            vectors = self.new_vectors({questions[id_]: texts[id_] for id_ in new})
            return {id_: vectors[questions[id_]] for id_ in new}

        self.chroma.write(self.collection, rows, vectors_of)

    def delete(self, ids: Sequence[str]) -> None:
        """Delete the records with these ids, and ignore unknown ids."""
        for part in parts(ids):
            with self.chroma.use():
                self.collection.delete(part)

    # --- Similarity -------------------------------------------------------------------------------

    def nearest(
        self, texts: Mapping[str, str], k: int, ceiling: float
    ) -> dict[str, list[tuple[str, float]]]:
        """Return the ids of the `k` questions nearest to each text, with their cosines.

        See `chroma.nearest`.
        """
        vectors = self.vectors_of(texts)
        return self.chroma.search(partial(nearest, self.collection, vectors, k, ceiling))

    def vectors_of(self, texts: Mapping[str, str]) -> dict[str, Vector]:
        """Return the vectors of questions by id: used lately, else stored, else computed."""
        vectors = self._vectors.get(texts)
        if lacking := [id_ for id_ in texts if id_ not in vectors]:
            vectors |= self._used(self.stored_vectors(lacking))
        new = {id_: text for id_, text in texts.items() if id_ not in vectors}
        return vectors | self.new_vectors(new)

    def stored_vectors(self, ids: Sequence[str]) -> dict[str, Vector]:
        """Return the stored vectors of the given ids, by id; unknown ids are left out."""
        read = partial(self.collection.get, ids=list(ids), include=["embeddings"])
        rows = self.chroma.search(read)
        return dict(zip(rows["ids"], np.asarray(rows["embeddings"], np.float32), strict=True))

    def new_vectors(self, texts: Mapping[str, str]) -> dict[str, Vector]:
        """Return the vectors of questions that are not stored: used lately, else computed."""
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
