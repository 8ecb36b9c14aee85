"""Measure how far a judge agrees with people, and people with each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations

import numpy as np

from demur._text import words
from demur.comparing.figures import Estimate, estimates, kappa
from demur.evaluators import likely
from demur.guard import Attempt
from demur.guard.edits import title_of

FEW, RARE = 20, 5
"""The fewest answers, and the fewest with the rarer label, for which kappa has an interval."""


@dataclass(frozen=True)
class Agreed:
    """Describe how far two raters agree on the answers that both decided."""

    slice: str
    """What these answers have in common."""
    raters: tuple[str, str]
    answers: int
    same: int
    """The number of answers of which they say the same."""
    kappa: Estimate
    why: str | None
    """Why there is no kappa, or no interval; None if there are both."""


def agreements(
    raters: Mapping[str, Mapping[str, bool]],
    groups: Mapping[str, str],
    slices: Mapping[str, Sequence[str]],
) -> Iterator[Agreed]:
    """Yield how far each two raters agree, in each slice in which both decided an answer.

    `raters` has whether answers are hallucinated, by the rater and the answer's id. The bootstrap
    draws whole `groups`, such as the answers to one question.
    """
    for name, every in slices.items():
        for pair in combinations(raters, 2):
            if not (ids := [id for id in every if all(id in raters[who] for who in pair)]):
                continue
            one, other = (np.array([raters[who][id] for id in ids], dtype=np.bool_) for who in pair)
            few = len(ids) < FEW or min((x == y).sum() for x in (one, other) for y in (0, 1)) < RARE
            grouped = ["" if few else groups[id] for id in ids]  # one group has no interval
            found = estimates([partial(kappa, one, other)], grouped, 0)[0]
            why = None if found.interval else "both always say the same, so kappa is not defined"
            if found.value is not None and found.interval is None:
                why = f"no interval: below {FEW} answers, {RARE} of a label or 2 questions"
            yield Agreed(name, pair, len(ids), int(np.sum(one == other)), found, why)


def slices(attempts: Mapping[str, Attempt]) -> dict[str, list[str]]:
    """Return the ids of answers by language, by length in three bins, and by each source."""
    found = dict[str, list[str]]()
    for id, one in attempts.items():
        known = likely(one.answer)
        name = known[0].data["name"] if len(known) == 1 else "not recognised"
        found.setdefault(f"language: {name}", []).append(id)
    lengths = sorted((sum(1 for _ in words(one.answer)), id) for id, one in attempts.items())
    low, high = (lengths[len(lengths) * part // 3][0] if lengths else 0 for part in (1, 2))
    bins = (f"below {low}", f"{low} to {high - 1}", f"from {high}")
    for length, id in lengths:
        found.setdefault(f"words: {bins[(length >= low) + (length >= high)]}", []).append(id)
    for id, one in attempts.items():
        for name in dict.fromkeys(title_of(text, 0) for text in one.contexts):
            found.setdefault(f"source: {name}", []).append(id)
    found.pop("source: document 0", None)  # contexts without a title
    return found
