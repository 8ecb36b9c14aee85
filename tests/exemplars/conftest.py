"""Give the tests a store of exemplars in every place where a store can be."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from demur import FEWL, ExampleStore
from support.vectors import Told

Open = Callable[..., ExampleStore]
"""A function that opens the same store, with or without a scorer."""


@pytest.fixture(params=["memory", "folder", "server", "client"])
def anywhere(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Open]:
    """Return a function that opens the same store, as often as it is called."""
    kept: list[ExampleStore] = []
    where: dict[str, Any] = {"collection": f"test-{tmp_path.name}"}
    if request.param == "client":
        import chromadb

        where["client"] = chromadb.EphemeralClient()
    elif request.param != "memory":
        served = request.param == "server"
        where["path"] = request.getfixturevalue("chroma") if served else tmp_path / "chroma"

    def open_one(scorer: FEWL | None = None) -> ExampleStore:
        if request.param == "memory" and kept:
            return kept[0]
        kept.append(ExampleStore(**where, embedding=Told(), scorer=scorer))
        return kept[-1]

    yield open_one
    for one in kept:
        one.close()


@pytest.fixture
def store() -> ExampleStore:
    """Return a store in memory, to which the tests give scores."""
    return ExampleStore(embedding=Told())
