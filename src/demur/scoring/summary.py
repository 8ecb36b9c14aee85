"""Summarise a scored data set: figures for each evaluator, and which answers are scored higher."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter

from demur.schema import Usage
from demur.scoring.ledger import Ledger
from demur.scoring.preferences import Preference, best_of, preference

_NORMAL_95 = 1.959964

_FIGURES = """
select count(*), sum(undetermined), sum(nothing_to_check), count(score), sum(score), sum(passed),
    count(passed), sum(calls), sum(cached), sum(input_tokens), sum(output_tokens), sum(seconds)
from found where evaluator = ?
"""
_SPENT = """
select sum(calls), sum(cached), sum(input_tokens), sum(output_tokens), sum(seconds) from spent
"""
# Answers of one row are not independent, because rows are sampled. The mean is therefore a ratio of
# sums over rows, and this query gives the linearised variance of that ratio.
_SPREAD = """
select count(*), sum(excess * excess) from (
    select sum(score) - ? * count(score) as excess
    from found join answers using (key) where evaluator = ? and score is not null group by row
)
"""
_BY_ROW = """
select line, name, score from answers
left join found on found.key = answers.key and evaluator = ?
where name is not null order by line, place
"""


@dataclass(frozen=True)
class Figures:
    """Hold the figures of one evaluator over all answers."""

    evaluator: str
    answers: int
    undetermined: int
    nothing_to_check: int
    """The number of answers that state nothing to check."""
    mean: float | None
    """The mean of all scores; None if there are no scores."""
    interval: tuple[float, float] | None
    """The 95 % interval of the mean, by the normal approximation over rows; None for fewer than two
    rows."""
    passed: int
    decided: int
    """The number of answers that passed or failed; 0 without a threshold."""
    usage: Usage


@dataclass(frozen=True)
class Above:
    """Hold how often the first answer of a row is scored above another one, or above all."""

    evaluator: str
    first: str
    other: str | None
    """The name of the other answer; None stands for all other answers of the row."""
    preference: Preference


@dataclass(frozen=True)
class Summary:
    """Hold the figures of a scored data set."""

    rows: int
    answers: int
    figures: tuple[Figures, ...]
    spent: Usage
    """The cost that belongs to no single answer, such as the cost of references. No figure includes
    it."""
    above: tuple[Above, ...]
    """How named answers compare; empty if no row has several answers."""


def summarise(ledger: Ledger, evaluators: Iterable[str]) -> Summary:
    """Return the figures of a scored data set, for each evaluator."""
    names = tuple(evaluators)
    return Summary(
        rows=ledger.count("select count(distinct line) from answers"),
        answers=ledger.count("select count(*) from answers"),
        figures=tuple(_figures(ledger, name) for name in names),
        spent=_usage(*next(ledger.select(_SPENT))),
        above=tuple(above for name in names for above in _above(ledger, name)),
    )


def _figures(ledger: Ledger, evaluator: str) -> Figures:
    ((answers, undetermined, nothing, scored, total, passed, decided, *usage),) = ledger.select(
        _FIGURES, evaluator
    )
    mean = total / scored if scored else None
    return Figures(
        evaluator=evaluator,
        answers=answers,
        undetermined=undetermined or 0,
        nothing_to_check=nothing or 0,
        mean=mean,
        interval=None if mean is None else _interval(ledger, evaluator, mean, scored),
        passed=passed or 0,
        decided=decided,
        usage=_usage(*usage),
    )


def _usage(*sums: float | None) -> Usage:
    calls, cached, input_tokens, output_tokens, seconds = (value or 0 for value in sums)
    return Usage(
        calls=int(calls),
        cached=int(cached),
        input_tokens=int(input_tokens),
        output_tokens=int(output_tokens),
        seconds=seconds,
    )


def _interval(
    ledger: Ledger, evaluator: str, mean: float, scored: int
) -> tuple[float, float] | None:
    ((rows, squares),) = ledger.select(_SPREAD, mean, evaluator)
    if rows < 2:
        return None
    half = _NORMAL_95 * math.sqrt(squares * rows / (rows - 1)) / scored
    return mean - half, mean + half


def _above(ledger: Ledger, evaluator: str) -> Iterator[Above]:
    pairs: dict[tuple[str, str], list[tuple[float | None, float | None]]] = defaultdict(list)
    rows: dict[str, list[tuple[float | None, list[float | None]]]] = defaultdict(list)
    for _, answers in groupby(ledger.select(_BY_ROW, evaluator), key=itemgetter(0)):
        (_, first, score), *others = answers
        if others:
            rows[first].append((score, [score_of_other for _, _, score_of_other in others]))
        for _, name, other_score in others:
            pairs[first, name].append((score, other_score))
    for (first, name), scores in pairs.items():
        better, worse = zip(*scores, strict=True)
        yield Above(evaluator, first, name, preference(better, worse))
    for first, compared in rows.items():
        if any(len(others) > 1 for _, others in compared):
            best, rest = zip(*compared, strict=True)
            yield Above(evaluator, first, None, best_of(best, rest))
