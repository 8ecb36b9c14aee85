"""Compute how often one answer is scored higher than another.

Any score works for which higher is better, FEWL's or a baseline's. A score that is None is
undetermined: its comparison is left out and counted, and it is never replaced by a number.
Intervals are percentile bootstrap intervals of 95 %, resampled by question.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Scores = Sequence[float | None]
Interval = tuple[float, float]

RESAMPLES = 2000


@dataclass(frozen=True)
class Preference:
    """Describe how often one answer of a pair is scored higher than the other."""

    wins: int
    """The number of pairs in which the answer that should win is scored higher."""
    ties: int
    """The number of pairs with equal scores; they are not wins ("scored higher": v1, Table 1)."""
    losses: int
    missing: int
    """The number of pairs that are left out, since one of their scores is undetermined."""
    rate: float | None
    """Wins divided by the sum of wins, ties and losses, in [0, 1]; None if that sum is 0."""
    interval: Interval | None
    """The interval of the rate; both ends are equal if all pairs go one way."""


def preference(better: Scores, worse: Scores, seed: int = 0) -> Preference:
    """Return how often better answers are scored higher than worse ones (v1, Tables 1 and 2).

    Args:
        better: One score for each question, of the answer that should win.
        worse: One score for each question, of the answer that should lose.
        seed: The seed of the bootstrap.

    Raises:
        ValueError: The two lists have different lengths, or a score is not a finite number.
    """
    columns = {"better": as_column(better, "better"), "worse": as_column(worse, "worse")}
    same_length(columns)
    return compared(columns["better"], columns["worse"], seed)


def best_of(best: Scores, others: Sequence[Scores], seed: int = 0) -> Preference:
    """Return how often the best answer is scored higher than all others (v1, Table 3).

    Args:
        best: One score for each question, of its best answer.
        others: For each question, the scores of all its other answers, at least one. If one of them
            is undetermined, the question counts as missing.
        seed: The seed of the bootstrap.

    Raises:
        ValueError: The two lists have different lengths, a question has no other answer, or a score
            is not a finite number.
    """
    rivals = [as_column(scores, f"others[{place}]") for place, scores in enumerate(others)]
    for place, column in enumerate(rivals):
        if not column.size:
            raise ValueError(
                f"others[{place}]: expected the score of at least one other answer, got none: "
                "leave the question out"
            )
    highest = np.array([column.max() for column in rivals], dtype=np.float64)  # NaN if any is
    columns = {"best": as_column(best, "best"), "others": highest}
    same_length(columns)
    return compared(columns["best"], highest, seed)


def compared(better: Floats, worse: Floats, seed: int) -> Preference:
    """Return what `preference` does, from arrays of one length with NaN for missing scores."""
    known = ~(np.isnan(better) | np.isnan(worse))
    pairs, interval = int(known.sum()), None
    wins, ties = int(np.sum(better > worse)), int(np.sum(better == worse))  # NaN is neither
    if pairs:
        # Wins in n pairs drawn with replacement are binomial: no need to draw the pairs.
        drawn = np.random.default_rng(seed).binomial(pairs, wins / pairs, size=RESAMPLES)
        interval = percentiles(drawn / pairs)
    return Preference(
        wins=wins,
        ties=ties,
        losses=pairs - wins - ties,
        missing=len(better) - pairs,
        rate=wins / pairs if pairs else None,
        interval=interval,
    )


def percentiles(resampled: Floats) -> Interval:
    """Return the bounds of the middle 95 % of the resampled values."""
    low, high = np.percentile(resampled, [2.5, 97.5])
    return float(low), float(high)


def as_column(scores: Scores, name: str) -> Floats:
    """Return the scores as an array with NaN for None; a NaN among the scores is refused."""
    try:
        column = np.array([np.nan if score is None else score for score in scores], np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name}: expected numbers, or None for no score: {error}") from error
    for place in np.flatnonzero(~np.isfinite(column)).tolist():
        if scores[place] is not None:
            raise ValueError(
                f"{name}[{place}]: expected a finite number, or None for no score, "
                f"got {scores[place]}"
            )
    return column


def same_length(columns: Mapping[str, Floats]) -> None:
    """Raise ValueError if the columns are not equally long."""
    if len({len(column) for column in columns.values()}) > 1:
        counts = ", ".join(f"{name}: {len(column)}" for name, column in columns.items())
        raise ValueError(f"expected as many scores of each, one per question, got {counts}")
