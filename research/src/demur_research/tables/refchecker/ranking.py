"""Rank seven models by the labels that people gave their claims."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import TypeAlias

import numpy as np

from demur.evaluators.refchecker import summarize
from demur.schema import Share
from demur_research.bench import Bench, Column, Figure, Result, Row, Table
from demur_research.ranking import kendall_tau
from demur_research.resampling import Floats, drawn, figure, mean
from demur_research.tables.refchecker.responses import SETTINGS, Response, chosen, response

EVERY = "all settings"
FLOORS: dict[str, Callable[[Response], float]] = {
    "length of the responses": lambda one: len(one.text),
    "number of claims": lambda one: len(one.claims),
}
LABELS = ("entailment", "neutral", "contradiction")

Means: TypeAlias = tuple[Floats, Floats]
"""The mean of each model's responses, and the means in draws of the questions, (draws, models)."""


class Standing:
    """Hold each model's responses that state something, and their counts in draws of questions."""

    def __init__(self, responses: Sequence[Response], models: Sequence[str], seed: int) -> None:
        stating = [one for one in responses if one.claims]
        self.responses = {name: [r for r in stating if r.model == name] for name in models}
        times = drawn([one.group for one in stating], seed)
        self._times = {
            name: times[:, [at for at, one in enumerate(stating) if one.model == name]]
            for name in models
        }

    def means(self, of: Callable[[Response], float]) -> Means:
        """Return the means of a number of each response; NaN for a model that always abstained."""
        every = {name: [of(one) for one in found] for name, found in self.responses.items()}
        values = [np.mean(found) if found else np.nan for found in every.values()]
        resampled = [mean(found, self._times[name]) for name, found in every.items()]
        return np.array(values), np.stack(resampled, axis=1)


def by_setting(responses: Sequence[Response]) -> dict[str, list[Response]]:
    """Return the responses of each setting that has some, and those of all settings."""
    of_setting = {name: [r for r in responses if r.setting == name] for name in SETTINGS}
    return {name: found for name, found in of_setting.items() if found} | {EVERY: [*responses]}


def share_of(label: str) -> Callable[[Response], float]:
    """Return a function to the share of a response's claims with one of `LABELS`, in [0, 1]."""
    return lambda one: float(getattr(one.summary, label))


def models_ranked(setting: str, responses: Sequence[Response], standing: Standing) -> list[Row]:
    """Return the rows of the models by the macro average of the entailed share, highest first."""
    summaries = {
        name: summarize(one.evaluation for one in responses if one.model == name)
        for name in standing.responses
    }
    draws = {label: standing.means(share_of(label))[1] for label in LABELS}
    every = [summary.entailment or 0 for summary in summaries.values()]
    rows = []
    for at, (name, summary) in enumerate(summaries.items()):
        own = summary.entailment
        rank = None if own is None else Figure(1 + sum(other > own for other in every))
        shares = [
            figure(None if own is None else 100 * getattr(summary, label), 100 * of[:, at])
            for label, of in draws.items()
        ]
        abstained = Figure.of_share(Share(summary.nothing_to_check, summary.answers))
        figures = (rank, *shares, abstained, None)
        rows.append(Row(f"{setting}: {name}", figures, items=summary.answers))
    rows.sort(key=lambda row: (row.figures[0] and row.figures[0].value) or len(rows) + 1)
    return rows


def agreement(first: Means, second: Means) -> Figure:
    """Return Kendall's tau of two orders of the models."""

    def tau(one: Floats, two: Floats) -> float:
        known = np.isfinite(one) & np.isfinite(two)
        found = kendall_tau(one[known], two[known])
        return np.nan if found is None else found

    draws = [tau(one, two) for one, two in zip(first[1], second[1], strict=True)]
    return figure(tau(first[0], second[0]), np.array(draws))


def _ranking(bench: Bench) -> Result:
    responses = chosen([*map(response, bench.read("refchecker"))], bench.limit, bench.seed)
    models = [*dict.fromkeys(one.model for one in responses)]
    parts = by_setting(responses)
    standings = {name: Standing(found, models, bench.seed) for name, found in parts.items()}
    rows = [
        row for name, found in parts.items() for row in models_ranked(name, found, standings[name])
    ]

    def tau(name: str, value: Figure, floor: bool = False) -> Row:
        return Row(name, (*[None] * 5, value), items=len(models), floor=floor)

    orders = {name: one.means(share_of(LABELS[0])) for name, one in standings.items()}
    for one, two in combinations(parts, 2):
        if two != EVERY:
            rows.append(tau(f"{one} against {two}", agreement(orders[one], orders[two])))
    for name, order in orders.items():
        for floor, of in FLOORS.items():
            value = agreement(standings[name].means(of), order)
            rows.append(tau(f"{name}: {floor} against the labels", value, floor=True))
    return Result(
        (
            Column("rank", 0),
            Column("Entailment, %"),
            Column("Neutral, %"),
            Column("Contradiction, %"),
            Column("Abstain, %"),
            Column("Kendall's tau", 2),
        ),
        tuple(rows),
        (
            "The shares are macro averages of the people's labels over the responses that state "
            "something, by demur's summarize. The rank is by Entailment.",
            "Intervals are of questions drawn with replacement, the same for all models.",
        ),
    )


RANKING = Table(
    "refchecker-ranking",
    "RefChecker, ranking of seven models",
    "Which models hallucinate least by the claims that people labelled, in each setting.",
    ("refchecker",),
    _ranking,
    asks=False,
)
