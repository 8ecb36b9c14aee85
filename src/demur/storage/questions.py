"""What is kept of questions in Chroma, found by their exact text or by likeness."""

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

from demur._fingerprints import fingerprint
from demur._forks import lock
from demur._recent import Recent
from demur._text import replace_surrogates
from demur.local import MiniLM
from demur.storage.chroma import Row, nearest, open_client, parts

T = TypeVar("T")
Vector = NDArray[np.float32]

_VECTORS = 2048
"""Vectors of questions that are kept in memory."""


def question_id(question: str) -> str:
    """The hash by which a question is known: of its text after NFC, with white space made one."""
    text = " ".join(unicodedata.normalize("NFC", replace_surrogates(question)).split())
    return hashlib.sha256(text.encode()).hexdigest()


class Questions:
    """A collection of records with questions' vectors: what demur's stores stand on.

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

    def where(self, fields: Mapping[str, str]) -> dict[str, Mapping[str, Any]]:
        """The metadata of all that have these fields, by id."""
        with self.chroma.use():
            rows = self.collection.get(where=dict(fields), include=["metadatas"])
        return dict(zip(rows["ids"], rows["metadatas"], strict=True))

    def write(self, rows: Mapping[str, Row], texts: Mapping[str, str]) -> None:
        """Write metadata by id, and the vectors of what is new; see `Chroma.write`.

        Args:
            rows: The metadata. Of what is there, the keys that are not given stay.
            texts: The questions by the same ids.
        """
        questions = {id_: question_id(text) for id_, text in texts.items()}

        def vectors_of(new: Sequence[str]) -> dict[str, Vector]:
            vectors = self.new_vectors({questions[id_]: texts[id_] for id_ in new})
            return {id_: vectors[questions[id_]] for id_ in new}

        self.chroma.write(self.collection, rows, vectors_of)

    def delete(self, ids: Sequence[str]) -> None:
        """Forget what has these ids; what is not there counts for nothing."""
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
