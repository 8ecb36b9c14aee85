"""Keep the passages of the demonstration in an embedded Chroma, beside the models' files."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings

from demur.errors import DemurError, needs

if TYPE_CHECKING:
    from langchain_chroma import Chroma

_AT_ONCE = 256
"""The number of passages between two reports. An interrupt loses at most this many."""


def open_index(
    passages: Sequence[Document],
    embeddings: Embeddings,
    model: str,
    folder: Path,
    report: Callable[[int, int], None],
) -> Chroma:
    """Return the passages in an index; vectors that `folder` lacks are computed.

    Other passages, from another Python for example, and other embeddings have their own
    collections.

    Args:
        passages: The passages to search, each with an id.
        embeddings: The embeddings that compute the vectors.
        model: A text that identifies the embeddings, such as a hash of their weights.
        folder: The folder of the index.
        report: A function that is called with the number of finished passages and the number of all
            passages, while vectors are computed.

    Raises:
        MissingExtraError: Chroma is not installed.
        DemurError: The folder cannot be used.
    """
    with needs(None, "demo", "the demonstration"):
        import chromadb
        from langchain_chroma import Chroma
    key = hashlib.sha256(repr((model, [passage.id for passage in passages])).encode()).hexdigest()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        client = chromadb.PersistentClient(folder, chromadb.Settings(anonymized_telemetry=False))
        index = Chroma(f"demo-{key[:32]}", embeddings, client=client)
        known = set(index.get(include=[])["ids"])
        lacking = [passage for passage in passages if passage.id not in known]
        for start in range(0, len(lacking), _AT_ONCE):
            report(len(passages) - len(lacking) + start, len(passages))
            index.add_documents(lacking[start : start + _AT_ONCE])
    except Exception as error:  # errors of Chroma, SQLite and the disk have no common base class
        raise DemurError(
            f"the index in {folder} cannot be used: {error}. Delete the folder: the next run "
            "makes it again"
        ) from error
    if lacking:
        report(len(passages), len(passages))
    return index
