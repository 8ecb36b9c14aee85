"""A FEWL for stores of exemplars: it scores an answer by the number that it begins with."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from demur import FEWL, ExampleStore
from demur.evaluators import Fitted
from demur.exemplars import Entry
from demur.similarity import Similarity
from support.fewl import fewl


def graded(pairs: Sequence[tuple[str, str]]) -> list[float]:
    """ "0.8 it is" has 0.8, whatever it is held against; what begins with no number fails."""
    return [float(answer.split()[0]) for answer, _ in pairs]


def contrary(pairs: Sequence[tuple[str, str]]) -> list[float]:
    """The other way round."""
    return [1 - grade for grade in graded(pairs)]


def scorer(score: Any = graded, reference_models: Any = None, **options: Any) -> FEWL:
    """An evaluator that asks the references once for a question; no answer's failure is another's.

    Its `similarity.asked` counts pairs: an answer makes two.
    """
    made = Similarity(score, score.__name__, score.__name__, batch_size=1, kept=0)
    return fewl(reference_models, similarity=made, weighting="uniform", **options)


def scored(grade: float) -> float:
    """FEWL's score of an answer with this grade, by `graded`."""
    return math.tanh(grade) / 2


def best(store: ExampleStore, question: str) -> str | None:
    """The question's best answer."""
    entry = store.get(question)
    return entry.best.answer if entry and entry.best else None


def answers(entry: Entry | None) -> list[str]:
    """An entry's answers, the best first."""
    return [one.answer for one in entry.all] if entry else []


def interrupted(now: Fitted) -> None:
    """What a scoring anew reports to, which ends it before the first question."""
    raise KeyboardInterrupt


def stale(store: ExampleStore) -> int:
    """How many candidates wait to be scored anew."""
    return sum(len(entry.stale) for entry in store.entries())
