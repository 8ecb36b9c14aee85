"""Chroma as demur uses it: in memory, in a folder, on a server, or by a client the user has."""

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

from demur import _owner_only as private
from demur._forks import in_child, leave, lock
from demur.errors import DemurError, MissingExtraError

T = TypeVar("T")
Row: TypeAlias = Mapping[str, str]
"""Metadata of a record."""

AT_ONCE = 200
"""Entries that one request writes or reads at most."""
_WRITTEN = 4_000_000
"""Characters that one request writes, if it is of more than one entry: a server takes 40 MB."""
_RESULTS = 20_000
"""Ids that one search brings, if it is for more than one vector."""
_SPARE = 8
"""Entries asked for beyond the number wanted, since the nearest may be above the ceiling."""

_NO_INDEX = "Nothing found on disk"
"""What Chroma says of an index that is not written yet."""
_PAUSES = (0.01, 0.03, 0.1, 0.3, 1.0)
"""Seconds before a search for it is repeated."""

_URL = re.compile(r"https?://", re.I)
_PORTS = {"http": 8000, "https": 443}

_AFTER_A_FORK = (
    "Open it first in the process that uses it (with gunicorn without --preload, or in post_fork), "
    "or start processes by 'spawn'; several share a server: chroma run"
)

# The folders that this process uses, with how often each is open.
_locks: dict[Path, tuple[Any, int]] = {}
_locks_guard = lock()
_writing = lock()

# Whether this process, and whether the one that it was forked from, has opened a Chroma of its own.
_opened = _parent_opened = False


@dataclass
class Chroma:
    """A Chroma that is open."""

    client: Any
    """A `chromadb.ClientAPI`."""
    name: str
    """How messages speak of it."""
    folder: Path | None = None
    closed: bool = field(default=False, init=False)
    _process: int = field(default_factory=os.getpid, init=False)

    def collection(self, name: str, kind: str, embedding: str) -> Any:
        """The collection of that name, made now if there is none, for vectors of demur's own.

        Vectors are compared by their cosine. Of several that make it at once one succeeds.

        Args:
            name: The collection's name.
            kind: What is kept in it, and in which form.
            embedding: The fingerprint of the model that computes the vectors.

        Raises:
            ValueError: What has this name is of another kind, or holds another model's vectors.
            DemurError: Chroma failed; the message says how.
        """
        metadata = {"demur": kind, "embedding": embedding}
        with self.use():
            # Of a collection that is there, Chroma leaves metadata and configuration as they are.
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
            DemurError: Something failed, this was closed, or the process was forked since.
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
        """Write rows of metadata by id, and vectors where there are none yet.

        A vector that is there is not written again: Chroma's index may lose sight of others then.
        An interrupt leaves some rows written, each of those whole.

        Args:
            collection: Where to write.
            rows: The metadata. Of what is there, the keys that are not given stay.
            vectors_of: From ids to their vectors; what it raises is raised.

        Raises:
            DemurError: As `use`.
        """
        for part in _requests(rows):
            lacking = self._lacking(collection, list(part))
            vectors = vectors_of(lacking) if lacking else {}
            with _writing:
                # Asked again: another thread may have written some of them meanwhile.
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
        """Which of these are not there."""
        if not ids:
            return []
        with self.use():
            there = set(collection.get(ids=ids, include=[])["ids"])
        return [id_ for id_ in ids if id_ not in there]

    def search(self, ask: Callable[[], T]) -> T:
        """What a request that reads vectors returns.

        While the very first vectors of a folder are being written, such a request finds no index
        there and fails. It is repeated for a while.

        Raises:
            DemurError: As `use`.
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
        """Delete a collection that nobody uses any more; never in a process that was forked."""
        if self._process == os.getpid():
            self.client.delete_collection(name)

    def close(self) -> None:
        """Let go of a folder, so that another process can have it."""
        if self.folder is not None and not self.closed and self._process == os.getpid():
            self.closed = True
            self.client.close()
            _release(self.folder)


def open_client(where: Any, purpose: str) -> Chroma:
    """Open Chroma.

    A folder belongs to one process at a time: of two that write to one, Chroma loses vectors.
    Several processes share a server: `chroma run --path FOLDER`.

    Args:
        where: A folder, made for its owner only if there is none; a server's URL,
            "http://host:port"; a client; or None: in memory, where all of one process see the same
            collections.
        purpose: What it is for, in an error's words.

    Raises:
        MissingExtraError: Chroma is not installed.
        ValueError: The URL says more than Chroma's address.
        DemurError: The folder or the server cannot be used; or this process was forked from one
            that had opened Chroma in a folder or in memory, and is to open such a one itself.
    """
    global _opened
    try:
        import chromadb
        from filelock import FileLock
    except ImportError as error:
        raise MissingExtraError(error.name or "chromadb", "chroma", purpose) from error
    # With Chroma's own settings: a client of the user's with others for the same place would be
    # refused. Telemetry need not be turned off, there is none from 1.5.3 on.
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
        private.make_folder(folder)
        folder = folder.resolve()
        _acquire(folder, FileLock)
        try:
            return Chroma(chromadb.PersistentClient(str(folder)), str(folder), folder)
        except BaseException:
            _release(folder)
            raise


@cache
def _settings() -> Any:
    """Chroma's own, read once: that takes longer than all else of a store in memory."""
    import chromadb

    return chromadb.Settings()


# --- Writing and searching ------------------------------------------------------------------------


def parts(ids: Sequence[T], size: int = AT_ONCE) -> Iterator[list[T]]:
    """Ids in parts that one request can read."""
    return (list(ids[start : start + size]) for start in range(0, len(ids), size))


def _requests(rows: Mapping[str, Row]) -> Iterator[dict[str, Row]]:
    """Rows of metadata in parts that one request can write."""
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
    """The `k` entries nearest to each vector, with the cosine, from the nearest on.

    Chroma is asked for more until there are enough, or no more.

    Args:
        collection: Where to search.
        vectors: By id; what has the same id is not told.
        k: How many to find.
        ceiling: Only what has a cosine below it counts.
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
    """Turn what Chroma, SQLite, disk or network raise into an error that names the place."""
    try:
        yield
    except DemurError:
        raise
    except Exception as error:  # they have no base in common
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
                f"{folder} is in use by another process, and Chroma keeps a folder whole for one "
                f"at a time only. Close it there, or run a server for both (chroma run --path "
                f"{folder}) and give its URL, http://localhost:8000"
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
    """Leave to the parent process what is open there: threads, connections, and folders' locks.

    Chroma would give what it keeps to whoever opens the same place again, and both Chroma's objects
    and the locks are not to be destroyed here.
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
