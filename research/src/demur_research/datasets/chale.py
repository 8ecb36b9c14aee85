"""Read CHALE: questions with a right, a half wrong and a wrong answer (FEWL, v1, section C.2).

Two forms are read: the publisher's object of six parallel lists, and JSON lines with id, question,
short_answer, long_answer, non_hallu, half_hallu and hallu.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from demur_research.datasets.catalogue import DataSet, File
from demur_research.datasets.files import load, rows
from demur_research.datasets.rows import Answer, LabelledRow, Reading

SIDES: Mapping[str, bool] = {"non_hallu": False, "half_hallu": True, "hallu": True}
"""The names of the answers, and whether each answer is hallucinated."""

TAG = re.compile(r"</?[A-Za-z][^<>]*>")
"""A tag of HTML."""


class _Row(BaseModel):
    model_config = ConfigDict(populate_by_name=True)

    id: str = Field(alias="id")
    question: str = Field(alias="Question", min_length=1)
    short_answer: str = Field(alias="Short_ans")
    long_answer: str = Field(alias="Long_ans")
    non_hallu: str = Field(alias="non-halu")
    half_hallu: str = Field(alias="mid-halu")
    hallu: str = Field(alias="halu")


_LISTS = [str(field.alias) for name, field in _Row.model_fields.items() if name != "id"]


def _read(files: Mapping[str, Path]) -> Reading:
    (path,) = files.values()
    held = load(path)
    listed = _side_by_side(held, path) if isinstance(held, dict) else held
    found, left_out, kept = [], Counter[str](), Counter[str]()
    for row in rows(listed, _Row, str(path)):
        texts = {side: str(getattr(row, side)) for side in SIDES}
        if any(TAG.search(text) for text in texts.values()):
            left_out["markup"] += 1
        elif texts["half_hallu"] == texts["hallu"]:
            left_out["half equals hallu"] += 1
        else:
            wrong = f"{texts['half_hallu']}\n{texts['hallu']}".lower()
            kept["short answer in a wrong one"] += row.short_answer.lower() in wrong
            answers = (Answer(text, SIDES[side], side, side) for side, text in texts.items())
            told = {"short_answer": row.short_answer, "long_answer": row.long_answer}
            found.append(LabelledRow(row.id, row.question, tuple(answers), metadata=told))
    return Reading(tuple(found), left_out, kept)


def _side_by_side(held: dict[str, Any], path: Path) -> list[dict[str, Any]]:
    lists = [held.get(name) for name in _LISTS]
    if not all(isinstance(one, list) for one in lists):
        raise ValueError(
            f"{path}: expected an object with the lists {', '.join(_LISTS)}, or JSON lines in a "
            "file whose name ends in .jsonl"
        )
    if len({len(one) for one in lists if one is not None}) > 1:
        raise ValueError(f"{path}: the lists {', '.join(_LISTS)} are not of the same length")
    return list(_numbered(lists))


def _numbered(lists: list[Any]) -> Iterator[dict[str, Any]]:
    for at, cells in enumerate(zip(*lists, strict=True), start=1):
        yield {"id": str(at), **dict(zip(_LISTS, cells, strict=True))}


DATA_SET = DataSet(
    name="chale",
    title="CHALE",
    home="https://github.com/weijiaheng/CHALE",
    licence="CC BY-NC 4.0, not for commercial use; text of Wikipedia: CC BY-SA",
    files=(
        File(
            "chale/hallucinated_ans_final_filtered.json",
            "https://raw.githubusercontent.com/weijiaheng/CHALE/"
            "c3ef12ee25a777aeabeedeb3ae76505e09c11502/hallucinated_ans_final_filtered.json",
        ),
    ),
    other_forms=("chale/chale.jsonl",),
    published_rows=2226,
    level="answer",
    shows="Whether a score ranks the right answer of a question above a wrong one.",
    cannot_show=(
        "Half wrong answers: few of them hold anything right. The share of answer words that stand "
        "in the question ranks 66.5 % right by itself."
    ),
    read=_read,
    filters={
        "markup": "An answer holds HTML tags, which right answers have more often.",
        "half equals hallu": "The half wrong answer is the wrong one, word for word.",
    },
    traps={
        "short answer in a wrong one": "A wrong answer holds the short right answer, so it may not "
        "be wrong."
    },
)
