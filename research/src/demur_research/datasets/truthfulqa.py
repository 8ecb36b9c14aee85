"""Read TruthfulQA: questions that invite common falsehoods, with right and wrong answers.

The publisher has two CSV files: one with 817 questions, and one of 2025 with 790, which names the
wrong answer to choose. Both are read. JSON lines with id, type, category, question, best, correct
and incorrect are read too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from demur_research.datasets.catalogue import DataSet, File
from demur_research.datasets.files import load, load_csv, rows
from demur_research.datasets.rows import Answer, LabelledRow, Reading

_NO_COMMENT = "I have no comment"


def _split(cell: Any) -> Any:
    return cell.split(";") if isinstance(cell, str) else cell


def _each_once(texts: list[str]) -> list[str]:
    return list(dict.fromkeys(text.strip() for text in texts if text.strip()))


_Listed = Annotated[list[str], BeforeValidator(_split)]


class _Row(BaseModel):
    model_config = ConfigDict(populate_by_name=True)

    id: str
    type: str = Field(alias="Type")
    category: str = Field(alias="Category")
    question: str = Field(alias="Question", min_length=1)
    best: str = Field(alias="Best Answer", min_length=1)
    correct: _Listed = Field(alias="Correct Answers")
    incorrect: _Listed = Field(alias="Incorrect Answers", min_length=1)
    best_incorrect: str | None = Field(None, alias="Best Incorrect Answer")


def _read(files: Mapping[str, Path]) -> Reading:
    (path,) = files.values()
    found, left_out, kept = [], Counter[str](), Counter[str]()
    for row in rows(_held(path), _Row, str(path)):
        best, correct, incorrect = row.best.strip(), _each_once(row.correct), row.incorrect
        incorrect = _each_once(incorrect)
        if {best, *correct} & {*incorrect}:
            left_out["both right and wrong"] += 1
            continue
        kept["no comment"] += best.strip(".") == _NO_COMMENT
        chosen = _place(incorrect, row.best_incorrect)
        others = [text for text in correct if text != best]
        answers = (
            Answer(best, False, "best", "best"),
            *(Answer(text, False, f"correct-{at}", "correct") for at, text in enumerate(others, 1)),
            *(
                Answer(text, True, f"incorrect-{at}", "incorrect")
                for at, text in enumerate(incorrect, 1)
            ),
        )
        told = {"category": row.category, "type": row.type, "best_incorrect": chosen}
        found.append(LabelledRow(row.id, row.question, answers, metadata=told))
    return Reading(tuple(found), left_out, kept)


def _place(incorrect: list[str], chosen: str | None) -> str | None:
    """Return the name of the wrong answer that the publisher chose; add it if it is not listed."""
    text = (chosen or "").strip()
    if not text:
        return None
    bare = [one.strip(".") for one in incorrect]
    if text.strip(".") not in bare:
        incorrect.append(text)
        return f"incorrect-{len(incorrect)}"
    return f"incorrect-{bare.index(text.strip('.')) + 1}"


def _held(path: Path) -> Any:
    if path.suffix.lower() == ".csv":
        return [{"id": str(at), **row} for at, row in enumerate(load_csv(path), start=1)]
    return load(path)


DATA_SET = DataSet(
    name="truthfulqa",
    title="TruthfulQA",
    home="https://github.com/sylinrl/TruthfulQA",
    licence="Apache-2.0",
    files=(
        File(
            "truthfulqa/TruthfulQA.csv",
            # The file of 2025 is /main/TruthfulQA.csv; the papers use this one.
            "https://raw.githubusercontent.com/sylinrl/TruthfulQA/main/data/v1/TruthfulQA.csv",
        ),
    ),
    other_forms=("truthfulqa/truthfulqa.jsonl",),
    published_rows=817,
    level="answer",
    shows="Whether a score ranks a true answer above a common falsehood.",
    cannot_show=(
        "Errors that no person would think true. The longest answer is the best one for 154 of 817 "
        "questions."
    ),
    read=_read,
    filters={
        "both right and wrong": "The publisher lists an answer as correct and as incorrect.",
    },
    traps={
        "no comment": f"The best answer is {_NO_COMMENT!r}, which says nothing.",
    },
)
