"""What each order of premise and hypothesis misses, by similarities that tell them apart."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias, get_args

import numpy as np

from demur._text import words
from demur.evaluators.fewl.terms import Premise, Texts
from demur.similarity import Pair, SimilarityLike, resolve_similarity

Sides: TypeAlias = tuple[str, str]
"""A right answer to a question, and a wrong one."""

ANSWERS: dict[str, Callable[[Sides], str]] = {
    "the right one": lambda sides: sides[0],
    "the right one, then a wrong one": " ".join,
    "the right one's first half": lambda sides: _half(sides[0]),
    "a wrong one": lambda sides: sides[1],
}
"""What is held against the right answer."""


def share_of_words(pairs: Sequence[Pair]) -> list[float]:
    """The share of the hypothesis' words that the premise has: entailment without any sense."""
    found = []
    for premise, hypothesis in pairs:
        known, said = set(_words(premise)), _words(hypothesis)
        found.append(sum(word in known for word in said) / len(said) if said else 0.0)
    return found


def table(rows: Sequence[Sides]) -> str:
    """The mean similarity to the right answer, in both orders.

    Args:
        rows: At least one. The right answer of each is the reference.
    """
    similarities: dict[str, SimilarityLike] = {"words": share_of_words, "bleu": "bleu"}
    orders: tuple[Premise, ...] = get_args(Premise)
    columns = [(name, order) for name in similarities for order in orders]
    lines = [
        f"{len(rows)} questions; mean similarity to the right answer, by premise",
        "",
        f"| answer | {' | '.join(f'{name}: {order}' for name, order in columns)} |",
        f"|---|{'---|' * len(columns)}",
    ]
    for told, answer in ANSWERS.items():
        cells = []
        for name, order in columns:
            pairs = [Texts(answer(row), (row[0],), premise=order).pairs()[0] for row in rows]
            scores = resolve_similarity(similarities[name]).scores(pairs)
            cells.append(f"{np.mean(scores):.3f}")
        lines.append(f"| {told} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _half(text: str) -> str:
    parts = text.split()
    return " ".join(parts[: (len(parts) + 1) // 2])


def _words(text: str) -> list[str]:
    return [word for word, _, _ in words(text)]
