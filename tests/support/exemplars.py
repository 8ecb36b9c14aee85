"""Provide a FEWL for stores of exemplars that scores an answer by the number at its start."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from demur import FEWL, ExampleStore
from demur.exemplars import Entry
from demur.similarity import Similarity
from support.fewl import fewl


def graded(pairs: Sequence[tuple[str, str]]) -> list[float]:
    """Give the answer "0.8 it is" the similarity 0.8 to any text; fail without a number."""
    return [float(answer.split()[0]) for answer, _ in pairs]


def contrary(pairs: Sequence[tuple[str, str]]) -> list[float]:
    """Give each answer one minus the similarity of `graded`."""
    return [1 - grade for grade in graded(pairs)]


def scorer(score: Any = graded, reference_models: Any = None, **options: Any) -> FEWL:
    """Return a FEWL that asks the references once for each question.

    It scores in batches of one, so the failure of one answer does not affect another. Its
    `similarity.asked` counts pairs: an answer makes two.
    """
    made = Similarity(score, score.__name__, score.__name__, batch_size=1, kept=0)
    return fewl(reference_models, similarity=made, weighting="uniform", **options)


def scored(grade: float) -> float:
    """Return FEWL's score of an answer with this grade, with the similarity `graded`."""
    return math.tanh(grade) / 2


def best(store: ExampleStore, question: str) -> str | None:
    """Return the question's best answer, or None without an answer."""
    entry = store.get(question)
    return entry.best.answer if entry and entry.best else None


def answers(entry: Entry | None) -> list[str]:
    """Return the entry's answers, with the best first."""
    return [one.answer for one in entry.all] if entry else []


def stale(store: ExampleStore) -> int:
    """Return how many candidates wait to be scored again."""
    return sum(len(entry.stale) for entry in store.entries())
