"""Read Fool Me Twice: claims that people wrote to fool others (Eisenschlos et al. 2021)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, Field

from demur_research.datasets.catalogue import DataSet, File
from demur_research.datasets.files import load, rows
from demur_research.datasets.pairs import FILTERS, each_once
from demur_research.datasets.rows import Answer, LabelledRow, Reading


class _Sentence(BaseModel):
    text: str
    section_header: str = ""


class _Line(BaseModel):
    id: str
    text: str
    label: Literal["SUPPORTS", "REFUTES"]
    gold_evidence: list[_Sentence] = Field(min_length=1)
    retrieved_evidence: list[_Sentence]
    wikipedia_page: str
    category: str
    total_votes: int
    correct_votes: int


def read(files: Mapping[str, Path]) -> Reading:
    """Return the claims.

    The contexts are sentences of one Wikipedia page, each once. The sentences that the writer chose
    come first, and `metadata["gold"]` is their number. Then come the sentences that the publisher's
    search found.

    Raises:
        ValueError: A file does not have the publisher's form. The message says where.
    """
    found = (_row(line) for path in files.values() for line in rows(load(path), _Line, str(path)))
    return each_once(found)


def _row(line: _Line) -> LabelledRow:
    gold = dict.fromkeys(sentence.text for sentence in line.gold_evidence)
    others = dict.fromkeys(sentence.text for sentence in line.retrieved_evidence)
    return LabelledRow(
        key=line.id,
        question=None,
        answers=(Answer(line.text, line.label == "REFUTES", label=line.label),),
        contexts=(*gold, *(text for text in others if text not in gold)),
        group=line.wikipedia_page,
        metadata={
            "page": line.wikipedia_page,
            "category": line.category,
            "gold": len(gold),
            "votes": line.total_votes,
            "correct_votes": line.correct_votes,
        },
    )


DATA_SET = DataSet(
    name="fool-me-twice",
    title="Fool Me Twice",
    home="https://github.com/google-research/fool-me-twice",
    licence="Apache-2.0; CC BY-SA 3.0 (text of Wikipedia)",
    files=(
        File(
            "fool_me_twice/dev.jsonl",
            "https://raw.githubusercontent.com/google-research/fool-me-twice/"
            "d9db753e5acf91c0d9bf543db327ab655661eb94/dataset/dev.jsonl",
        ),
    ),
    published_rows=1_169,
    level="claim",
    shows="Whether a checker catches claims that were written to fool readers, with the few "
    "sentences that decide them among others of the same page. The share of the claim's words in "
    "the evidence says next to nothing (AUROC 0.53).",
    cannot_show="Claims that no evidence decides: each is supported or refuted, about half of "
    "each, and whichever is guessed always is right for half. Some sentences of evidence lack "
    "what they refer to. Claims about one page are drawn together.",
    read=read,
    filters=FILTERS,
)
