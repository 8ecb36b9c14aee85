"""Test drafts: replies that wait for the other replies to their question."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from demur.evaluators import NeighborStore, Pairs
from demur.evaluators.fewl.drafts import Draft

pytest.importorskip("chromadb")

QUESTION = "1 0 | who lit it?"
PAIRS = Pairs(usable=(("A fox.", "Nö, no fox."), ("A\ncat.", 'No "cat".')), same=1)


def test_what_comes_bit_by_bit_is_kept_until_it_is_dropped(
    anywhere: Callable[[], NeighborStore],
) -> None:
    store = anywhere()
    assert store.drafts.get(QUESTION) == Draft()
    store.drafts.keep(QUESTION, Draft({2: ("Ada.",)}))
    store.drafts.keep(QUESTION, Draft({0: ("Bo.", "Cy\ud800.")}, PAIRS))
    store.drafts.keep("another?", Draft({1: ("Di.",)}))
    store.drafts.keep(f" {QUESTION} ", Draft({2: ("Eve.",)}))  # The last draft counts.
    again = anywhere()
    assert again.drafts.get(QUESTION) == Draft({0: ("Bo.", "Cy\ufffd."), 2: ("Eve.",)}, PAIRS)
    again.drafts.drop(QUESTION)
    again.drafts.drop("never heard of?")
    assert again.drafts.get(QUESTION) == Draft()
    assert again.drafts.get("another?") == Draft({1: ("Di.",)})
