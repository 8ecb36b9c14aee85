"""Score HaluEval with FEWL: how often the right answer scores above the hallucinated one."""

from __future__ import annotations

from demur.scoring import preference
from demur_research.bench import Bench, Result, Table
from demur_research.tables.fewl.measures import Measure, lines, measured, ours
from demur_research.tables.fewl.scoring import OPTIONS, Question, Scorer, Setting, chosen

MEASURES = (
    Measure(
        "right > hallucinated",
        lambda scores, seed: preference([s[0] for s in scores], [s[1] for s in scores], seed),
    ),
)
_V2_TABLE_14 = lines(
    ("GPT-3.5",),
    ("single + no penalty", "single", "94.33±0.14"),
    ("single + penalty", "single-penalty", "97.89±0.12"),
    ("multi + no penalty", "multi", "95.52±0.16"),
    ("FEWL (Ours)", "fewl", "98.15±0.14"),
)
_LENGTH = (
    "For 97.3 % of the first 1,000 of the 10,000 questions the shorter answer is the right one. "
    "Only a score above that says more of a method than that it prefers short answers."
)


def _make(bench: Bench) -> Result:
    questions = [
        Question.of(row, ["right", "hallucinated"]) for row in chosen(bench, "halueval-qa")
    ]
    scorer = Scorer(bench, questions, Setting.of(bench))
    return measured(scorer, (*_V2_TABLE_14, *ours()), MEASURES, "fewl", [_LENGTH])


HALUEVAL = (
    Table(
        "fewl-v2-table-14",
        "FEWL, version 2, Table 14",
        "How often FEWL scores HaluEval's right answer above the hallucinated one.",
        ("halueval-qa",),
        _make,
        options=OPTIONS,
    ),
)
