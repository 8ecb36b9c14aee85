"""Read RAGTruth: answers of six models to retrieved texts, with marked spans (Niu et al. 2024).

The files have the form that the publisher documents: `response.jsonl` with the answers, and
`source_info.jsonl` with the texts that they rest on.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, model_validator

from demur_research.datasets.catalogue import DataSet, File
from demur_research.datasets.files import load, rows
from demur_research.datasets.rows import Answer, LabelledRow, Part, Reading
from demur_research.datasets.spans import MISPLACED, TRAPS, Quoted, split

_RESPONSES, _SOURCES = "ragtruth/response.jsonl", "ragtruth/source_info.jsonl"
_QUALITIES = {"incorrect_refusal": "incorrect refusals", "truncated": "truncated answers"}
_TRUE = "spans that are true"


class _Form(BaseModel):
    model_config = ConfigDict(coerce_numbers_to_str=True)


class _Span(_Form):
    start: int
    end: int
    text: str
    label_type: str
    implicit_true: bool | None = None


class _Response(_Form):
    id: str
    source_id: str
    model: str
    labels: list[_Span]
    split: str
    quality: Literal["good", "incorrect_refusal", "truncated"]
    response: str


class _Asked(_Form):
    question: str
    passages: str


class _Source(_Form):
    source_id: str
    task_type: Literal["QA", "Summary", "Data2txt"]
    source_info: str | _Asked | dict[str, Any]

    @model_validator(mode="after")
    def _as_its_task_has_it(self) -> _Source:
        if isinstance(self.source_info, _OF[self.task_type]):
            return self
        raise ValueError(f"source_info does not fit {self.task_type}: expected {_EXPECTED}")

    @property
    def question(self) -> str | None:
        return self.source_info.question if isinstance(self.source_info, _Asked) else None

    @property
    def context(self) -> str:
        if isinstance(self.source_info, _Asked):
            return self.source_info.passages
        if isinstance(self.source_info, str):
            return self.source_info
        return json.dumps(self.source_info, ensure_ascii=False)


_OF = {"QA": _Asked, "Summary": str, "Data2txt": dict}
_EXPECTED = "for QA a question with passages, for Summary a text, for Data2txt an object"


def read(files: Mapping[str, Path]) -> Reading:
    """Return the answers, one row each. Answers to one source have one group.

    As the publisher counts, an answer is hallucinated if any span of it is marked. The context is
    the document, the passages, or the record as JSON. Only rows of the task QA have a question: the
    prompts for summaries and descriptions ask nothing about the world.

    Raises:
        ValueError: One of the two files is missing, a file does not have the documented form, or an
            answer's source is unknown. The message says where.
    """
    if not {_RESPONSES, _SOURCES} <= files.keys():
        raise ValueError(
            f"{', '.join(map(str, files.values()))}: RAGTruth is read from two files in one "
            f"folder, {Path(_RESPONSES).name} and {Path(_SOURCES).name}: name the folder"
        )
    path = files[_RESPONSES]
    beside = files[_SOURCES]
    sources = {one.source_id: one for one in rows(load(beside), _Source, str(beside))}
    found: list[LabelledRow] = []
    left_out, kept = Counter[str](), Counter[str]()
    for at, one in enumerate(rows(load(path), _Response, str(path)), start=1):
        if one.source_id not in sources:
            raise ValueError(f"{path}: row {at}, source_id: {one.source_id!r} is not in {beside}")
        if one.quality in _QUALITIES:
            left_out[_QUALITIES[one.quality]] += 1
        else:
            found.append(_row(one, sources[one.source_id], kept))
    return Reading(tuple(found), left_out, kept)


def _row(one: _Response, source: _Source, kept: Counter[str]) -> LabelledRow:
    parts, misplaced = split(
        one.response,
        (
            Quoted(Part(span.start, span.end, True, span.label_type), span.text)
            for span in one.labels
        ),
    )
    kept[MISPLACED] += len(misplaced)
    kept[_TRUE] += sum(bool(span.implicit_true) for span in one.labels)
    return LabelledRow(
        key=one.id,
        question=source.question,
        answers=(Answer(one.response, bool(one.labels), parts=parts),),
        contexts=(source.context,),
        group=one.source_id,
        metadata={
            "model": one.model,
            "task": source.task_type,
            "split": one.split,
            "misplaced": misplaced,
        },
    )


DATA_SET = DataSet(
    name="ragtruth",
    title="RAGTruth",
    home="https://github.com/ParticleMedia/RAGTruth",
    licence="MIT; the documents are under their sources' own licences",
    files=tuple(
        File(
            path,
            f"https://raw.githubusercontent.com/ParticleMedia/RAGTruth/main/dataset/{Path(path).name}",
        )
        for path in (_RESPONSES, _SOURCES)
    ),
    published_rows=17_790,
    level="span",
    shows="Whether a detector finds what a model's answer adds to the texts that it was given, and "
    "where in the answer that stands.",
    cannot_show="Whether an answer is true: what the texts do not say is marked, true or not. By "
    "the publisher's count 43 percent of the answers are hallucinated, of descriptions of records "
    "69 percent and of the others 28 to 31, so the kind of task alone says much. Answers to "
    "one source are drawn together.",
    read=read,
    filters={
        "incorrect refusals": "Answers that refuse although the texts hold an answer. The "
        "publisher leaves them out too.",
        "truncated answers": "Answers that break off. The publisher leaves them out too.",
    },
    traps={
        **TRAPS,
        _TRUE: "Spans that annotators know to be true although the texts do not say them. They "
        "count as hallucinated.",
    },
    read_here=False,
)
