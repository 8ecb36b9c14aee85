"""Where the chain of the demonstration looks: an embedded Chroma beside the models' files."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings

from demur.errors import DemurError, MissingExtraError

if TYPE_CHECKING:
    from langchain_chroma import Chroma

_AT_ONCE = 256
"""Passages between two reports, and what an interrupt loses at most."""


def open_index(
    passages: Sequence[Document],
    embeddings: Embeddings,
    model: str,
    folder: Path,
    report: Callable[[int, int], None],
) -> Chroma:
    """The passages, searchable by their vectors: what `folder` lacks of them is computed.

    Other passages, as another Python has, and other embeddings have collections of their own.

    Args:
        passages: What to search, each with an id.
        embeddings: What computes the vectors.
        model: What tells those embeddings from all others, such as a hash of their weights.
        folder: Where they are kept.
        report: Told how many of the passages are done while vectors are computed.

    Raises:
        MissingExtraError: Chroma is not installed.
        DemurError: The folder cannot be used.
    """
    try:
        import chromadb
        from langchain_chroma import Chroma
    except ImportError as error:
        raise MissingExtraError(error.name or "chromadb", "demo", "the demonstration") from error
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
    except Exception as error:  # of Chroma, SQLite or the disk, without a base in common
        raise DemurError(
            f"the index in {folder} cannot be used: {error}. Delete the folder to have it made anew"
        ) from error
    if lacking:
        report(len(passages), len(passages))
    return index
