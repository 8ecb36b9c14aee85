"""Read HaluEval: questions with a right and a made-up answer, and judged answers of ChatGPT.

Two forms are read: the publisher's files, which are JSON lines in spite of their names, and the
same rows with an id.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from demur_research.datasets.catalogue import DataSet, File
from demur_research.datasets.files import load_lines, rows
from demur_research.datasets.rows import Answer, LabelledRow, Part, Reading

_FROM = (
    "https://raw.githubusercontent.com/RUCAIBox/HaluEval/b7253db3cdaa0ab2c382f92b26b390109174f77e"
)
_JOINED = re.compile(r"[a-z]\.[A-Z]")


class _Pair(BaseModel):
    id: str | None = None
    knowledge: str
    question: str = Field(min_length=1)
    right_answer: str
    hallucinated_answer: str


class _Judged(BaseModel):
    model_config = ConfigDict(populate_by_name=True)

    id: str = Field(alias="ID")
    query: str = Field(alias="user_query")
    response: str = Field(alias="chatgpt_response")
    hallucination: Literal["yes", "no"] = Field(alias="hallucination_label")
    spans: list[str] = Field(default_factory=list, alias="hallucination_spans")


def _read_pairs(files: Mapping[str, Path]) -> Reading:
    (path,) = files.values()
    found, kept = [], Counter[str]()
    for at, row in enumerate(rows(load_lines(path), _Pair, str(path)), start=1):
        right, wrong = row.right_answer, row.hallucinated_answer
        kept["right inside the wrong"] += right.strip() in wrong
        kept["sentences joined"] += bool(_JOINED.search(row.knowledge))
        answers = (Answer(right, False, "right"), Answer(wrong, True, "hallucinated"))
        found.append(LabelledRow(row.id or str(at), row.question, answers, (row.knowledge,)))
    return Reading(tuple(found), kept=kept)


def _read_judged(files: Mapping[str, Path]) -> Reading:
    (path,) = files.values()
    judged = rows(load_lines(path), _Judged, str(path))
    # Two rows of the publisher have the column's name as their ID.
    times = Counter(row.id for row in judged)
    found, kept = [], Counter[str]()
    for at, row in enumerate(judged, start=1):
        key = row.id if times[row.id] == 1 else f"{row.id} {at}"
        wrong = row.hallucination == "yes"
        places = [(row.response.find(span), span) for span in row.spans if span and wrong]
        parts = [Part(at, at + len(span), True, "span") for at, span in sorted(places) if at >= 0]
        kept["span not in the answer"] += len(places) - len(parts)
        kept["hallucinated without a span"] += wrong and not parts
        answer = Answer(row.response, wrong, label=row.hallucination, parts=tuple(parts))
        found.append(LabelledRow(key, row.query, (answer,)))
    return Reading(tuple(found), kept=kept)


QA = DataSet(
    name="halueval-qa",
    title="HaluEval QA",
    home="https://github.com/RUCAIBox/HaluEval",
    licence="MIT; questions of HotpotQA: CC BY-SA 4.0",
    files=(File("halueval/qa_data.json", f"{_FROM}/data/qa_data.json"),),
    other_forms=("halueval/qa_first1000.jsonl",),
    published_rows=10_000,
    level="answer",
    shows="Whether a score tells a right answer from a made-up one, with the knowledge at hand.",
    cannot_show=(
        "That a score knows anything but lengths: the shorter answer is the right one for 97.3 % "
        "of the questions."
    ),
    read=_read_pairs,
    traps={
        "right inside the wrong": "The hallucinated answer holds the right one.",
        "sentences joined": "Sentences of the knowledge have no space between them.",
    },
)

GENERAL = DataSet(
    name="halueval-general",
    title="HaluEval general",
    home="https://github.com/RUCAIBox/HaluEval",
    licence="MIT",
    files=(File("halueval/general_data.json", f"{_FROM}/data/general_data.json"),),
    other_forms=("halueval/general.jsonl",),
    published_rows=4507,
    level="span",
    shows="Whether a score finds the answers of ChatGPT that people judged to be hallucinated.",
    cannot_show=(
        "Factual errors alone: an answer that is cut, or does something else than was asked, is "
        "called hallucinated too. No answer has contexts. To call none hallucinated is right for "
        "82 %."
    ),
    read=_read_judged,
    traps={
        "span not in the answer": "A marked text is not in the answer word for word, or is a "
        "remark about it, so it has no place.",
        "hallucinated without a span": "No marked text has a place in the answer.",
    },
    read_here=False,
)
