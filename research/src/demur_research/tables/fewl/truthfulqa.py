"""Score TruthfulQA with FEWL: how many of the best answers score highest."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from demur.evaluators import normalized_text
from demur.scoring import best_of, preference
from demur_research.bench import Bench, Result, Table
from demur_research.datasets.rows import LabelledRow
from demur_research.tables.fewl.measures import (
    BY_HHEM,
    MODELS_OF_V1,
    Line,
    Measure,
    by_version,
    lines,
    measured,
    options_of,
    ours,
)
from demur_research.tables.fewl.scoring import Question, Scorer, Setting, chosen

BEST, FIRST_INCORRECT = "best", "incorrect-1"
NO_COMMENT = "i have no comment"

MEASURES = (
    Measure(
        "best > all others",
        lambda scores, seed: best_of([s[0] for s in scores], [s[1:] for s in scores], seed),
        counts=True,
    ),
    Measure(
        "best > first incorrect",
        lambda scores, seed: preference([s[0] for s in scores], [s[1] for s in scores], seed),
    ),
)


def question_of(row: LabelledRow) -> Question:
    """Return a question with its best answer, its first incorrect one, and all others.

    The publisher lists the best answer among the correct answers as well. It does not count as its
    own rival.
    """
    texts = {str(answer.name): answer for answer in row.answers}
    best = normalized_text(texts[BEST].text)
    others = [
        name
        for name, answer in texts.items()
        if name not in (BEST, FIRST_INCORRECT)
        and not (answer.hallucinated is False and normalized_text(answer.text) == best)
    ]
    return Question.of(row, [BEST, FIRST_INCORRECT, *others])


def _make(given: Sequence[Line], more: Sequence[Line], bench: Bench) -> Result:
    rows = chosen(bench, "truthfulqa")
    questions = [question_of(row) for row in rows]
    silent = sum(normalized_text(question.answers[0]) == NO_COMMENT for question in questions)
    notes = [
        f'The best answer is "I have no comment" for {silent} of {len(rows)} questions.',
        "The papers give numbers of questions and not how many there are; the set has 817.",
    ]
    scorer = Scorer(bench, questions, Setting.of(bench))
    return measured(scorer, (*given, *more), MEASURES, "fewl", notes)


def _table(
    name: str,
    source: str,
    what: str,
    given: Sequence[Line],
    more: Sequence[Line] = ours(),
) -> Table:
    make = partial(_make, given, more)
    return Table(name, source, what, ("truthfulqa",), make, options=options_of(given))


_V1_TABLE_3 = lines(
    MODELS_OF_V1,
    ("single + no penalty", "single", "172±3.49 178±2.68"),
    ("single + penalty", "single-penalty", "180±4.93 188±3.81"),
    ("multi + no penalty", "multi", "176±4.71 187±3.65"),
    ("FEWL (Ours)", "fewl", "187±4.74 202±5.59"),
)
_V1_TABLE_10 = lines(
    MODELS_OF_V1,
    ("FEWL (Uniform)", "fewl-uniform", "183±5.62 193±3.97"),
    ("FEWL (Ours)", "fewl", "187±4.74 202±5.59"),
    ("FEWL (Ideal)", "fewl-ideal", "190±5.27 209±3.21"),
)
_V2_TABLE_2 = lines(
    (*MODELS_OF_V1, "GPT-5"),
    ("single + no penalty", "single", "355 360 390"),
    ("single + penalty", "single-penalty", "363 373 394"),
    ("multi + no penalty", "multi", "363 357 410"),
    ("FEWL (Ours)", "fewl", "375 381 430"),
)
_V2_TABLE_8 = by_version(
    lines(
        MODELS_OF_V1,
        ("Single + No Penalty", "single", "355 360"),
        ("Single + Penalty", "single-penalty", "363 373"),
        ("Multi + No Penalty", "multi", "363 357"),
        ("FEWL (Ours)", "fewl", "375 381"),
    ),
    lines(
        MODELS_OF_V1,
        ("Single + No Penalty", "single", "172 178"),
        ("Single + Penalty", "single-penalty", "180 188"),
        ("Multi + No Penalty", "multi", "176 187"),
        ("FEWL (Ours)", "fewl", "187 202"),
    ),
)
_WHAT = "How many of TruthfulQA's best answers FEWL scores highest"

TRUTHFULQA = (
    _table("fewl-v1-table-3", "FEWL, version 1, Table 3", f"{_WHAT}.", _V1_TABLE_3),
    _table("fewl-v1-table-10", "FEWL, version 1, Table 10", f"{_WHAT}, by weights.", _V1_TABLE_10),
    _table("fewl-v2-table-2", "FEWL, version 2, Table 2", f"{_WHAT}.", _V2_TABLE_2),
    _table(
        "fewl-v2-table-8",
        "FEWL, version 2, Table 8",
        f"{_WHAT}, by two similarities.",
        _V2_TABLE_8,
        more=BY_HHEM,
    ),
    _table("fewl-v2-table-13", "FEWL, version 2, Table 13", f"{_WHAT}, by weights.", _V1_TABLE_10),
)
