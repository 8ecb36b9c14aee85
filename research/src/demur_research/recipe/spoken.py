"""Put sentences that speak to the judge into rows, with the label unchanged."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

from demur_research.recipe.rows import TrainingRow
from demur_research.texts.injections import INJECTIONS

FAMILIES = ("order", "role", "labels", "language", "authority", "verdict")
"""The families of `injections` that are trained on. Measure a judge with the other families:
whoever knows a text resists it."""
_TEXTS = tuple(one.text for one in INJECTIONS if one.family in FAMILIES)
_LONGEST = 300
"""The most words of the passages that a text is put into."""


def with_texts(
    rows: Sequence[TrainingRow], number: int, rng: random.Random, weight: float = 0.3
) -> list[TrainingRow]:
    """Return copies of some rows, each with a text that asks the judge for a label.

    The text stands before or behind the passages or, in half of the rows that are not supported,
    behind the claim. It is never put into a supported claim, since nothing supports the text.

    Args:
        rows: The rows to draw from.
        number: The number of rows to draw, at most.
        rng: The generator of all choices.
        weight: The weight of each row.
    """
    short = [row for row in rows if len(row.passages.split()) <= _LONGEST]
    found = []
    for row in rng.sample(short, min(number, len(short))):
        text = rng.choice(_TEXTS)
        copy = replace(row, source="spoken", weight=weight)
        if row.label != "support" and rng.random() < 0.5:
            found.append(replace(copy, claim=f"{row.claim} {' '.join(text.split())}"))
        else:
            parts = [row.passages, text]
            rng.shuffle(parts)
            found.append(replace(copy, passages=rng.choice((" ", "\n\n")).join(parts)))
    return found
