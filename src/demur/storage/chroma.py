"""Open and use Chroma in memory, in a folder, on a server, or through a client of the user."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias, TypeVar
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from demur._system import in_child, leave, lock, make_private_folder
from demur.errors import DemurError, needs

T = TypeVar("T")
Row: TypeAlias = Mapping[str, str]
"""The metadata of a record."""

AT_ONCE = 200
"""The most entries that one request writes or reads."""
_WRITTEN = 4_000_000
"""The most characters that a request for several entries writes: a server takes 40 MB."""
_RESULTS = 20_000
"""The most ids that a search for several vectors returns."""
_SPARE = 8
"""The entries asked for beyond the number wanted, since the nearest may be above the ceiling."""

_NO_INDEX = "Nothing found on disk"
"""Chroma's message about an index that is not written yet."""
_PAUSES = (0.01, 0.03, 0.1, 0.3, 1.0)
"""The seconds before each repetition of a search that found no index."""

_URL = re.compile(r"https?://", re.I)
_PORTS = {"http": 8000, "https": 443}

_AFTER_A_FORK = (
    "Open it first in the process that uses it (with gunicorn without --preload, or in post_fork), "
    "or start processes by 'spawn'; several share a server: chroma run"
)

# The locks of the folders that this process uses, with how often each folder is open.
_locks: dict[Path, tuple[Any, int]] = {}
_locks_guard = lock()
_writing = lock()

# Whether this process has opened Chroma in memory or in a folder, and whether its parent had done
# so before the fork.
_opened = _parent_opened = False


@dataclass
class Chroma:
    """Represent an open Chroma."""

    client: Any
    """The client, a `chromadb.ClientAPI`."""
    name: str
    """The place, as error messages name it."""
    folder: Path | None = None
    closed: bool = field(default=False, init=False)
    _process: int = field(default_factory=os.getpid, init=False)

    def collection(self, name: str, kind: str, embedding: str) -> Any:
        """Return the collection of that name, made first if there is none, for demur's own vectors.

        Vectors are compared by their cosine. If several callers make it at once, one succeeds.

        Args:
            name: The collection's name.
            kind: The kind of its entries, and their form.
            embedding: The fingerprint of the model that computes the vectors.

        Raises:
            ValueError: A collection of this name is of another kind, or holds vectors of another
                model.
            DemurError: Chroma failed; the message says how.
        """
        metadata = {"demur": kind, "embedding": embedding}
        with self.use():
            # If the collection exists, Chroma leaves its metadata and configuration as they are.
            collection = self.client.get_or_create_collection(
                name,
                metadata=metadata,
                configuration={"hnsw": {"space": "cosine"}},
                embedding_function=None,
            )
        known = collection.metadata or {}
        if known.get("demur") != kind:
            raise ValueError(
                f"the collection {name!r} in {self.name} holds something else "
                f"({known.get('demur', 'nothing of demur')}, where {kind} was expected). "
                "Give another collection"
            )
        if known.get("embedding") != embedding:
            raise ValueError(
                f"the collection {name!r} in {self.name} was made with another embedding model: "
                f"{known.get('embedding')}, and this one is {embedding}. Vectors of different "
                "models cannot be compared: give that model, or another collection"
            )
        return collection

    @contextmanager
    def use(self) -> Iterator[None]:
        """Turn what Chroma raises in the block into an error that names the place.

        Raises:
            DemurError: Chroma failed, this object was closed, or the process was forked after it
                was opened.
        """
        if self._process != os.getpid():
            raise DemurError(
                f"Chroma in {self.name} was opened before this process was forked, and its threads "
                f"and connections are the parent's. {_AFTER_A_FORK}"
            )
        if self.closed:
            raise DemurError(f"Chroma in {self.name} was closed here: open it again")
        with _naming(self.name):
            yield

    def write(
        self,
        collection: Any,
        rows: Mapping[str, Row],
        vectors_of: Callable[[list[str]], Mapping[str, NDArray[np.float32]]],
    ) -> None:
        """Write rows of metadata by id, and the vectors of ids that have none yet.

        An existing vector is not written again: Chroma's index could then lose other vectors. If
        an interrupt ends the call, some rows are written, each of them completely.

        Args:
            collection: The collection to write to.
            rows: The metadata. An existing entry keeps the keys that are not given.
            vectors_of: A function from ids to their vectors. Its exceptions are raised.

        Raises:
            DemurError: As in `use`.
        """
        for part in _requests(rows):
            lacking = self._lacking(collection, list(part))
            vectors = vectors_of(lacking) if lacking else {}
            with _writing:
                # Asked again: another thread may have written some of them in the meantime.
                new = self._lacking(collection, list(vectors))
                with self.use():
                    if new:
                        collection.upsert(
                            new,
                            embeddings=[vectors[id_] for id_ in new],
                            metadatas=[part[id_] for id_ in new],
                        )
                    if old := [id_ for id_ in part if id_ not in new]:
                        collection.update(old, metadatas=[part[id_] for id_ in old])

    def _lacking(self, collection: Any, ids: list[str]) -> list[str]:
        """Return the ids that are not in the collection."""
        if not ids:
            return []
        with self.use():
            there = set(collection.get(ids=ids, include=[])["ids"])
        return [id_ for id_ in ids if id_ not in there]

    def search(self, ask: Callable[[], T]) -> T:
        """Make a request that reads vectors, and return its result.

        While the very first vectors of a folder are being written, such a request finds no index
        and fails. It is then repeated for about 1.5 seconds.

        Raises:
            DemurError: As in `use`.
        """
        for pause in _PAUSES:
            try:
                with self.use():
                    return ask()
            except DemurError as error:
                if _NO_INDEX not in str(error):
                    raise
            time.sleep(pause)
        with self.use():
            return ask()

    def drop(self, name: str) -> None:
        """Delete a collection that is no longer used, unless this process was forked."""
        if self._process == os.getpid():
            self.client.delete_collection(name)

    def close(self) -> None:
        """Release the folder, so that another process can open it."""
        if self.folder is not None and not self.closed and self._process == os.getpid():
            self.closed = True
            self.client.close()
            _release(self.folder)


def open_client(where: Any, purpose: str) -> Chroma:
    """Open Chroma.

    Only one process at a time can use a folder: if two write to it, Chroma loses vectors. Several
    processes can share a server: `chroma run --path FOLDER`.

    Args:
        where: A folder; a server's URL, "http://host:port"; a client; or None for memory. A folder
            is made if there is none, readable by its owner only. In memory, all callers in one
            process see the same collections.
        purpose: What Chroma is needed for, as an error message says it.

    Raises:
        MissingExtraError: Chroma is not installed.
        ValueError: The URL holds more than a server's address.
        DemurError: The folder or the server cannot be used. Or Chroma cannot be opened in a folder
            or in memory, since this process was forked from one that had done so.
    """
    global _opened
    with needs(None, "chroma", purpose):
        import chromadb
        from filelock import FileLock
    # With Chroma's own settings: Chroma refuses two clients with different settings for one place,
    # and the user may have one there. Chroma has no telemetry from 1.5.3 on.
    if isinstance(where, str) and _URL.match(where):
        host, port, tls = _address(where)
        with _naming(where):
            return Chroma(chromadb.HttpClient(host, port, tls), where)
    if not isinstance(where, str | Path | None):
        return Chroma(where, "the given client")
    if _parent_opened:
        raise DemurError(
            f"Chroma in {where or 'memory'} cannot be opened: this process was forked from one "
            f"that had opened Chroma, whose native parts may wait for ever here. {_AFTER_A_FORK}"
        )
    _opened = True
    if where is None:
        with _naming("memory"):
            return Chroma(chromadb.EphemeralClient(_settings()), "memory")
    folder = Path(where).expanduser().absolute()
    with _naming(str(folder)):
        make_private_folder(folder)
        folder = folder.resolve()
        _acquire(folder, FileLock)
        try:
            return Chroma(chromadb.PersistentClient(str(folder)), str(folder), folder)
        except BaseException:
            _release(folder)
            raise


@cache
def _settings() -> Any:
    """Return Chroma's own settings, read only once.

    Reading them takes longer than everything else about a store in memory.
    """
    import chromadb

    return chromadb.Settings()


# --- Writing and searching ------------------------------------------------------------------------


def parts(ids: Sequence[T], size: int = AT_ONCE) -> Iterator[list[T]]:
    """Yield the ids in parts that one request can read."""
    return (list(ids[start : start + size]) for start in range(0, len(ids), size))


def _requests(rows: Mapping[str, Row]) -> Iterator[dict[str, Row]]:
    """Yield the rows of metadata in parts that one request can write."""
    part: dict[str, Row] = {}
    size = 0
    for id_, row in rows.items():
        more = sum(map(len, row.values()))
        if part and (len(part) == AT_ONCE or size + more > _WRITTEN):
            yield part
            part, size = {}, 0
        part[id_] = row
        size += more
    if part:
        yield part


def nearest(
    collection: Any, vectors: Mapping[str, NDArray[np.float32]], k: int, ceiling: float
) -> dict[str, list[tuple[str, float]]]:
    """Return the `k` entries nearest to each vector with their cosines, the nearest first.

    Chroma is asked for more entries until there are enough, or no more.

    Args:
        collection: The collection to search.
        vectors: The vectors by id. An entry with the id of the vector itself is left out.
        k: The number of entries to find.
        ceiling: The cosine below which an entry counts.
    """
    neighbors: dict[str, list[tuple[str, float]]] = {}
    waiting, wide = list(vectors), k + 1 + _SPARE
    while waiting:
        short = []
        for part in parts(waiting, max(1, _RESULTS // wide)):
            reply = collection.query(
                query_embeddings=[vectors[id_] for id_ in part],
                n_results=wide,
                include=["distances"],
            )
            for id_, *row in zip(part, reply["ids"], reply["distances"], strict=True):
                ranked = [
                    (neighbor, 1.0 - float(distance))
                    for neighbor, distance in zip(*row, strict=True)
                    if neighbor != id_ and 1.0 - distance < ceiling
                ]
                neighbors[id_] = sorted(ranked, key=lambda hit: (-hit[1], hit[0]))[:k]
                if len(ranked) < k and len(row[0]) == wide:
                    short.append(id_)
        waiting, wide = short, wide * 4
    return neighbors


# --- Opening --------------------------------------------------------------------------------------


@contextmanager
def _naming(name: str) -> Iterator[None]:
    """Turn errors of Chroma, SQLite, disk and network into an error that names the place."""
    try:
        yield
    except DemurError:
        raise
    except Exception as error:  # these errors have no base class in common
        reason = " ".join(str(error).split()) or type(error).__name__
        raise DemurError(f"Chroma in {name} cannot be used: {reason}") from error


def _address(url: str) -> tuple[str, int, bool]:
    parts = urlsplit(url)
    if not parts.hostname or parts.username or parts.path.strip("/") or parts.query:
        raise ValueError(
            f"expected a Chroma server's URL as http://host:port, got {url!r}. For anything else, "
            "make the client yourself (chromadb.HttpClient) and give that"
        )
    return parts.hostname, parts.port or _PORTS[parts.scheme], parts.scheme == "https"


def _acquire(folder: Path, make: Any) -> None:
    with _locks_guard:
        lock, uses = _locks.get(folder) or (make(folder / ".demur.lock", thread_local=False), 0)
        try:
            lock.acquire(timeout=0)
        except TimeoutError as error:
            raise DemurError(
                f"{folder} is in use by another process, and Chroma allows only one process at a "
                f"time to use a folder. Close it there, or run a server for both (chroma run "
                f"--path {folder}) and give its URL, http://localhost:8000"
            ) from error
        _locks[folder] = lock, uses + 1


def _release(folder: Path) -> None:
    with _locks_guard:
        lock, uses = _locks.pop(folder)
        lock.release()
        if uses > 1:
            _locks[folder] = lock, uses - 1


# --- Forks ----------------------------------------------------------------------------------------


def _forked() -> None:
    """Leave to the parent process what it has open: threads, connections, and locks of folders.

    Chroma would reuse the parent's objects for the same place. Neither these objects nor the locks
    may be destroyed here.
    """
    global _parent_opened
    _parent_opened = _opened
    leave(dict(_locks))
    _locks.clear()
    if "chromadb" in sys.modules:
        from chromadb.api.shared_system_client import SharedSystemClient

        leave(dict(SharedSystemClient._identifier_to_system))
        SharedSystemClient.clear_system_cache()


in_child(_forked)
