"""Under which name a store writes: one that no other store has while this one lives."""

from __future__ import annotations

import atexit
import os
import uuid
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import count
from typing import Any

import numpy as np

from demur.storage import Questions

_KIND = "exemplar-writers-1"
_ANY = np.ones(1, np.float32)
"""Chroma wants a vector; names are found by their id alone."""


class Writer:
    """A name in a collection: the lowest that is free, claimed when first asked for.

    Chroma keeps all names of metadata that were ever used, and each request takes time by their
    number. So names are used again: one is given back by `close`, else when the process ends, and
    not when the object goes: that may be in the middle of a request, whose locks are then held. A
    kill leaves it taken.
    """

    def __init__(self, questions: Questions) -> None:
        """Claim nothing yet."""
        self._questions = questions
        self._claimed: str | None = None
        self._back: Callable[[], None] | None = None

    def name(self) -> str:
        """The name.

        Raises:
            DemurError: Chroma failed.
        """
        if self._questions.alone:
            return "1"
        if self._claimed is None:
            self._claimed = self._claim()
        return self._claimed

    def close(self) -> None:
        """Give the name back; another is claimed if one is asked for again."""
        if self._back is not None:
            atexit.unregister(self._back)
            self._back()
        self._claimed = self._back = None

    def _claim(self) -> str:
        chroma, mine = self._questions.chroma, uuid.uuid4().hex
        taken = chroma.collection(f"{self._questions.name}-writers", _KIND, "none")
        for number in count(1):
            name = str(number)
            with chroma.use():
                # Of several that add one id the first succeeds, and the others change nothing.
                taken.add([name], embeddings=[_ANY], metadatas=[{"writer": mine}])
                (row,) = taken.get(ids=[name], include=["metadatas"])["metadatas"] or [{}]
            if row.get("writer") == mine:
                break
        self._back = partial(_give_back, taken, name, os.getpid())
        atexit.register(self._back)
        return name


def _give_back(taken: Any, name: str, process: int) -> None:
    if os.getpid() == process:  # one that was forked has no say
        with suppress(Exception):  # the server may be gone: then the name stays taken
            taken.delete([name])
