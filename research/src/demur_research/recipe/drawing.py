"""Draw the rows of a pass by their weights, among other passages, in batches of like length."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from demur_research.recipe.rows import Label, TrainingRow

DISTRACTED = 0.25
"""The share of short rows that are shown among passages of other rows."""
_SHORT = 150
"""The most words of passages that others are put around, and that are put around others."""
_LIKE = 64
"""Lengths that differ by fewer tokens are alike."""
SORTED = 4096
"""The rows among which batches of like length are made. They are tokenised together, so that
tokenising a whole pass takes nothing of the budget before the first step."""


@dataclass(frozen=True)
class Item:
    """Hold the tokens of a row and its label."""

    tokens: Sequence[int]
    label: Label
    claim: int = 0
    """The number of tokens up to the passages. Only an encoder needs it, which reads the claim
    first."""


def drawn(rows: Sequence[TrainingRow], rng: random.Random) -> list[TrainingRow]:
    """Return the rows of one pass in random order.

    A row with a weight of 1.3 is drawn once, and in 3 of 10 passes twice. A quarter of the rows
    with short passages get passages of one to three other rows around them. These do not change the
    label, since they are about something else.
    """
    short = [row for row in rows if len(row.passages.split()) <= _SHORT]
    found = []
    for row in rows:
        times = int(row.weight) + (rng.random() < row.weight % 1)
        for _ in range(times):
            if len(row.passages.split()) <= _SHORT and rng.random() < DISTRACTED:
                others = [rng.choice(short) for _ in range(rng.randint(1, 3))]
                found.append(_among(row, others, rng))
            else:
                found.append(row)
    rng.shuffle(found)
    return found


def _among(row: TrainingRow, others: Sequence[TrainingRow], rng: random.Random) -> TrainingRow:
    # Rows about the same claim or passages would say something about it.
    foreign = [
        one.passages for one in others if one.claim != row.claim and one.passages != row.passages
    ]
    parts = list(dict.fromkeys((row.passages, *foreign)))
    rng.shuffle(parts)
    return replace(row, passages="\n\n".join(parts))


def _like(item: Item) -> tuple[int, list[int]]:
    return len(item.tokens) // _LIKE, [*item.tokens]


def batches(
    items: Sequence[Item], most_tokens: int, rng: random.Random
) -> Iterator[Sequence[Item]]:
    """Yield all items in batches, in random order.

    Items of like length are together, since all are filled up to the longest. Among these, items
    that begin alike are together, such as claims about the same passages.

    Args:
        items: The items.
        most_tokens: The most tokens of a batch, filled up. A longer item is a batch of its own.
        rng: The generator of the order.
    """
    found: list[list[Item]] = []
    for item in sorted(rng.sample(items, len(items)), key=_like):
        together = [*found[-1], item] if found else []
        if found and len(together) * max(len(one.tokens) for one in together) <= most_tokens:
            found[-1] = together
        else:
            found.append([item])
    rng.shuffle(found)
    yield from found
