"""Measure what each order of premise and hypothesis misses, with similarities that depend on it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias, get_args

from demur.evaluators.fewl.terms import Premise, Texts
from demur.similarity import Pair, SimilarityLike, resolve_similarity
from demur_research.bench import Bench, Column, Result, Row, Table
from demur_research.resampling import mean_figure
from demur_research.tables.checkers import share_of_words
from demur_research.tables.fewl.scoring import Question, chosen

Sides: TypeAlias = tuple[str, str]
"""A right and a wrong answer to a question."""

ANSWERS: Mapping[str, Callable[[Sides], str]] = {
    "the right one": lambda sides: sides[0],
    "the right one, then a wrong one": " ".join,
    "the right one's first half": lambda sides: _half(sides[0]),
    "a wrong one": lambda sides: sides[1],
}
"""The texts that are compared with the right answer, by their names in the table."""


def crude_entailment(pairs: Sequence[Pair]) -> list[float]:
    """Return the share of the hypothesis' words that the premise has."""
    return [share_of_words(hypothesis, premise) for premise, hypothesis in pairs]


def _make(bench: Bench) -> Result:
    questions = [Question.of(row, ["non_hallu", "hallu"]) for row in chosen(bench, "chale")]
    sides = [(one.answers[0], one.answers[1]) for one in questions]
    similarities: dict[str, SimilarityLike] = {"words": crude_entailment, "bleu": "bleu"}
    orders: tuple[Premise, ...] = get_args(Premise)
    asked = [
        (resolve_similarity(alike), order) for alike in similarities.values() for order in orders
    ]
    columns = [Column(f"{name}, premise: {order}", 3) for name in similarities for order in orders]
    rows = []
    for told, answer in ANSWERS.items():
        found = [
            alike.scores(
                [Texts(answer(both), (both[0],), premise=order).pairs()[0] for both in sides]
            )
            for alike, order in asked
        ]
        figures = [mean_figure(scores, bench.seed) for scores in found]
        rows.append(Row(told, tuple(figures), items=len(sides)))
    note = "Means of the similarity to the right answer; which text is the premise stands above."
    return Result(tuple(columns), tuple(rows), (note,))


def _half(text: str) -> str:
    parts = text.split()
    return " ".join(parts[: (len(parts) + 1) // 2])


ORDERS = (
    Table(
        "fewl-orders",
        "demur",
        "What each order of premise and hypothesis misses.",
        ("chale",),
        _make,
        asks=False,
    ),
)
