"""What a store of exemplars holds, in numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from demur.exemplars.entries import Entry


@dataclass(frozen=True)
class Statistics:
    """Counts of questions and candidates, and the scores of the best ones."""

    questions: int
    candidates: int
    """Answers whose scores count."""
    stale: int
    """Answers that were scored by another scorer, and wait for `rescore`."""
    without_best: int
    """Questions that have stale answers only."""
    contested: int
    """Questions with several answers whose scores count: in the others there was no choice."""
    lowest: float | None
    """Of the best answers' scores; None, as the two others, where there are none."""
    mean: float | None
    highest: float | None
    scorers: Mapping[str, int]
    """Candidates by whose score they have."""


def statistics(entries: Iterable[Entry]) -> Statistics:
    """The numbers of some entries, which are read once."""
    counts: Counter[str] = Counter()
    scorers: Counter[str] = Counter()
    total, lowest, highest = 0.0, float("inf"), float("-inf")
    for entry in entries:
        counts["questions"] += 1
        counts["candidates"] += len(entry.candidates)
        counts["stale"] += len(entry.stale)
        counts["contested"] += len(entry.candidates) > 1
        scorers.update(candidate.scorer for candidate in entry.all)
        if entry.best is None:
            counts["without_best"] += 1
        else:
            score = entry.best.score
            total, lowest, highest = total + score, min(lowest, score), max(highest, score)
    best = counts["questions"] - counts["without_best"]
    return Statistics(
        questions=counts["questions"],
        candidates=counts["candidates"],
        stale=counts["stale"],
        without_best=counts["without_best"],
        contested=counts["contested"],
        lowest=lowest if best else None,
        mean=total / best if best else None,
        highest=highest if best else None,
        scorers=dict(scorers),
    )
