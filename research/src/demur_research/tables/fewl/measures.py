"""Measure how often an answer scores above others, beside the papers' figures and floors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from demur import Evaluation
from demur.evaluators import default_configuration, normalized_text
from demur.scoring import Preference
from demur_research.bench import Column, Figure, Result, Row
from demur_research.tables.fewl.scoring import OPTIONS, Question, Scored, Scorer

Scores: TypeAlias = Sequence[Sequence[float | None]]
"""For each question, the scores in the order of its answers; None: undetermined."""

MODELS_OF_V1 = ("GPT-3.5", "GPT-4")
"""The reference models of version 1's tables, and of most of version 2's appendix."""


def overlap(question: str, answer: str) -> float:
    """Return the share of the answer's words that are in the question, in [0, 1]."""
    words = normalized_text(answer).split()
    asked = set(normalized_text(question).split())
    return sum(word in asked for word in words) / len(words) if words else 0.0


FLOORS: Mapping[str, Callable[[str, str], float]] = {
    "words of the question": overlap,
    "the longest answer": lambda question, answer: len(answer),
    "the shortest answer": lambda question, answer: -len(answer),
}
"""Scores that know nothing, as functions of question and answer; higher is better."""


@dataclass(frozen=True)
class Measure:
    """Describe what is counted over the scores of all questions."""

    head: str
    """The heading of the column, without its unit."""
    of: Callable[[Scores, int], Preference]
    """A function from the scores and the seed of the bootstrap to the comparison."""
    counts: bool = False
    """Whether the paper gives a number of questions instead of a share."""


@dataclass(frozen=True)
class Line:
    """Describe a row of a paper's table: a configuration of FEWL."""

    name: str
    """The paper's name for it; empty if the paper does not have it."""
    configuration: str
    paper: tuple[str, ...] = ()
    """The paper's figures for the first measures."""
    similarity: str | None = None
    """The similarity that replaces the setting's; None: the setting's."""


def told(models: Sequence[str], figures: str) -> str:
    """Return a paper's figures, each after the name of its model.

    Args:
        models: The models.
        figures: The figures as the paper prints them, with spaces between, in the models' order.
    """
    return ", ".join(
        f"{model} {figure}" for model, figure in zip(models, figures.split(), strict=True)
    )


def lines(models: Sequence[str], *rows: tuple[str, ...]) -> tuple[Line, ...]:
    """Return lines of a table, each made from a name, a configuration and figures by measure."""
    return tuple(
        Line(name, configuration, tuple(told(models, figures) for figures in given))
        for name, configuration, *given in rows
    )


HHEM_2_1, HHEM_1 = ("HHEM-2.1-Open", "hhem"), ("HHEM-1.0", "hhem-1.0")
"""Two versions of the papers' similarity, each with the papers' name and its name here."""


def by_version(newer: Sequence[Line], older: Sequence[Line]) -> tuple[Line, ...]:
    """Return lines for both versions of HHEM, side by side for each method as in the papers."""
    return tuple(
        replace(line, name=f"{line.name}, {version}", similarity=similarity)
        for pair in zip(newer, older, strict=True)
        for line, (version, similarity) in zip(pair, (HHEM_2_1, HHEM_1), strict=True)
    )


def options_of(given: Sequence[Line]) -> Mapping[str, str]:
    """Return the options of a table with these lines; some name their similarity themselves."""
    if any(line.similarity for line in given):
        return {"wrong": OPTIONS["wrong"]}
    return OPTIONS


OURS = ("multi-weighted", "fewl-mean-one", "multi-weighted-mean-one")
"""The configurations of demur that stand at the end of most tables."""


def ours(*names: str, similarity: str | None = None) -> tuple[Line, ...]:
    """Return lines for configurations that no paper has; without names, for those of `OURS`."""
    return tuple(Line("", name, similarity=similarity) for name in names or OURS)


BY_HHEM = tuple(
    line for _, name in (HHEM_2_1, HHEM_1) for line in ours("fewl-mean-one", similarity=name)
)
"""The lines at the end of a table that uses both versions of HHEM."""


def unlike_others(evaluation: Evaluation) -> float | None:
    """Return the penalty as a score: how unlike an answer is to answers to other questions."""
    penalties: Any = evaluation.details.get("penalties")
    return None if penalties is None else -float(np.mean(penalties))


def measured(
    scorer: Scorer,
    given: Sequence[Line],
    measures: Sequence[Measure],
    alone: str | None,
    notes: Sequence[str] = (),
) -> Result:
    """Return a table of configurations, the penalty alone, and the floors.

    Args:
        scorer: Scores the answers to the questions.
        given: The rows.
        measures: The columns. Each has its ties beside it, which are not wins.
        alone: The configuration whose penalty is also shown alone; None: none.
        notes: The table's own notes, which come before those of the scorer.
    """
    for line in given:
        scorer.similarity(line.similarity)  # fails before any model is asked if it is missing
    rows, seed = [], scorer.bench.seed
    for line in given:
        scored = scorer.scored(line.configuration, line.similarity)
        row = _row(_name(line, scorer), scored.scores, measures, seed, line.paper)
        rows.append(replace(row, spent=scored.spent))
        if line.configuration == alone:
            by = f", {line.similarity}" if line.similarity else ""
            rows.append(_alone(f"the penalty alone{by}", scored, measures, seed))
    rows += [floor(name, scorer.questions, measures, seed) for name in FLOORS]
    columns = []
    for measure in measures:
        if measure.counts:
            columns.append(Column(f"{measure.head}, questions", digits=0))
        columns += [Column(f"{measure.head}, %"), Column(f"{measure.head}: ties", digits=0)]
    tie = "A tie is no win. Intervals are of 95 %, by questions drawn anew."
    return Result(tuple(columns), tuple(rows), (*notes, *scorer.notes(), tie))


def floor(name: str, questions: Sequence[Question], measures: Sequence[Measure], seed: int) -> Row:
    """Return the row of a trivial score."""
    score = FLOORS[name]
    scores = [
        [score(question.text, answer) for answer in question.answers] for question in questions
    ]
    return replace(_row(name, scores, measures, seed), floor=True)


def _name(line: Line, scorer: Scorer) -> str:
    by = f", {line.similarity}" if line.similarity and not line.name else ""
    alike = scorer.similarity(line.similarity)
    default = ", demur's default" if line.configuration == default_configuration(alike) else ""
    if not line.name:
        return f"{line.configuration}{by}{default}"
    return f"{line.name} ({line.configuration}{default})"


def _alone(name: str, scored: Scored, measures: Sequence[Measure], seed: int) -> Row:
    scores = [[unlike_others(evaluation) for evaluation in row] for row in scored.evaluations]
    return replace(_row(name, scores, measures, seed), spent=scored.spent)


def _row(
    name: str, scores: Scores, measures: Sequence[Measure], seed: int, paper: Sequence[str] = ()
) -> Row:
    figures: list[Figure | None] = []
    for at, measure in enumerate(measures):
        found = measure.of(scores, seed)
        printed = paper[at] if at < len(paper) else ""
        if measure.counts:
            figures.append(_count(found, printed))
        figures.append(share(found, "" if measure.counts else printed))
        figures.append(Figure(found.ties))
    missing = sum(None in row for row in scores)
    return Row(name, tuple(figures), items=len(scores) - missing, undetermined=missing)


def share(found: Preference, paper: str = "") -> Figure:
    """Return the wins in percent, with their interval."""
    if found.rate is None or found.interval is None:
        return Figure(None, paper=paper)
    low, high = found.interval
    return Figure(100 * found.rate, 100 * low, 100 * high, paper)


def _count(found: Preference, paper: str) -> Figure:
    if found.interval is None:
        return Figure(None, paper=paper)
    pairs = found.wins + found.ties + found.losses
    low, high = (pairs * bound for bound in found.interval)
    return Figure(found.wins, low, high, paper)
