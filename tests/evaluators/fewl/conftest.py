"""Give the tests a neighbour store in memory and in a folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from demur.evaluators import NeighborStore
from support.vectors import Told


@pytest.fixture(params=["memory", "folder"])
def anywhere(
    request: pytest.FixtureRequest, tmp_path: Path
) -> Iterator[Callable[[], NeighborStore]]:
    """Return a function that opens the same store, as often as it is called."""
    kept: list[NeighborStore] = []

    def open_one() -> NeighborStore:
        if request.param == "memory":
            kept[1:] = kept or [NeighborStore(embedding=Told())]
            return kept[0]
        kept.append(NeighborStore(tmp_path, embedding=Told()))
        return kept[-1]

    yield open_one
    for one in kept:
        one.close()
