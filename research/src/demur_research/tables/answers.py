"""Measure by which score of their claims answers of several sentences are ranked best.

Each run of up to five sentences of a biography in WikiBio-GPT3 is an answer. It is right if people
call all its sentences accurate. Each sentence is judged once, alone, against the article.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

from demur_research.bench import Bench, Column, Result, Row, Table, mean_cost, place
from demur_research.datasets.rows import LabelledRow
from demur_research.resampling import area, drawn
from demur_research.tables.claims import Claimed, overlap
from demur_research.tables.judges import JUDGE_OPTION, Judge, judge_of

_DATA = "wikibio-gpt3"
_LENGTHS = {"1 to 5": range(1, 6), "2": (2,), "3": (3,), "5": (5,)}
"""The numbers of sentences that the columns are of, by their names."""


@dataclass(frozen=True)
class _Answer:
    """Hold the supports of an answer's sentences."""

    group: str
    supports: tuple[float, ...]
    overlaps: tuple[float, ...]
    """The share of each sentence's words that stand in the article."""
    right: bool


def _sentences(row: LabelledRow) -> list[Claimed]:
    (answer,) = row.answers
    return [
        Claimed(
            f"{row.key} {at}",
            row.key,
            None,
            answer.text[part.start : part.end],
            row.contexts,
            not part.hallucinated,
        )
        for at, part in enumerate(answer.parts)
    ]


def _answers(sentences: Sequence[Claimed], supports: Sequence[float | None]) -> Iterator[_Answer]:
    """Yield the runs of a biography's sentences all of which were judged."""
    for length in _LENGTHS["1 to 5"]:
        for start in range(len(sentences) - length + 1):
            run = sentences[start : start + length]
            known = [one for one in supports[start : start + length] if one is not None]
            if len(known) == length:
                words = tuple(map(overlap, run))
                right = all(one.supported for one in run)
                yield _Answer(run[0].group, tuple(known), words, right)


_FLOORS: dict[str, Callable[[_Answer], float]] = {
    "fewer sentences": lambda of: -len(of.supports),
    "least overlap of a sentence with the article": lambda of: min(of.overlaps),
}


def _scores(limit: float | None) -> dict[str, Callable[[_Answer], float]]:
    """Return the scores to compare, by name; those in `_FLOORS` ask no judge."""
    least = 0.5 if limit is None else limit
    return {
        "least support": lambda of: min(of.supports),
        "product of the supports": lambda of: math.prod(of.supports),
        "mean support": lambda of: fmean(of.supports),
        f"share of sentences from {least} on": lambda of: fmean(
            one >= least for one in of.supports
        ),
        **_FLOORS,
    }


def _make(bench: Bench) -> Result:
    name = judge_of(bench)
    judge = Judge(bench, name)
    ordered = sorted(bench.read(_DATA), key=lambda row: place(bench.seed, row.key))
    by_biography = [_sentences(row) for row in ordered[: bench.limit] if row.contexts]
    done = bench.each(name, [one for of in by_biography for one in of], judge)
    supports = iter([one.value.score for one in done])
    answers = [
        answer for of in by_biography for answer in _answers(of, [next(supports) for _ in of])
    ]
    rows = []
    for named, score in _scores(judge.least).items():
        figures = []
        for lengths in _LENGTHS.values():
            chosen = [one for one in answers if len(one.supports) in lengths]
            scored = [*map(score, chosen)]
            right = [one.right for one in chosen]
            times = drawn([one.group for one in chosen], bench.seed)
            figures.append(area(scored, right, times))
        floor = named in _FLOORS
        spent = None if floor else mean_cost(done)
        rows.append(Row(named, tuple(figures), items=len(answers), spent=spent, floor=floor))
    unjudged = sum(one.value.score is None for one in done)
    return Result(
        tuple(Column(f"AUROC, {of} sentences", 3) for of in _LENGTHS),
        tuple(rows),
        (
            f'The judge is "{name}". {sum(one.right for one in answers)} of {len(answers)} answers '
            f"are right; {unjudged} of {len(done)} sentences could not be judged.",
            "An answer is a run of sentences, so answers share sentences. Those of one biography "
            "are drawn together.",
        ),
    )


TABLE = Table(
    "judges-answers",
    "demur",
    "How well scores that are made of the support of each claim rank answers of several sentences.",
    (_DATA,),
    _make,
    options={"judge": JUDGE_OPTION},
)

TABLES = (TABLE,)
