"""Read WiCE: sentences of Wikipedia as claims, and the pages they cite (Kamoi et al. 2023)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, Field

from demur_research.datasets.catalogue import DataSet, File
from demur_research.datasets.files import load, rows
from demur_research.datasets.pairs import FILTERS, each_once
from demur_research.datasets.rows import Answer, LabelledRow, Reading


class _Meta(BaseModel):
    id: str
    claim_title: str
    claim_section: str


class _Line(BaseModel):
    claim: str
    label: Literal["supported", "partially_supported", "not_supported"]
    evidence: list[str] = Field(min_length=1)
    supporting_sentences: list[list[int]]
    meta: _Meta


def read(files: Mapping[str, Path]) -> Reading:
    """Return the claims.

    The context is the cited page, one sentence a line. `metadata["evidence"]` holds the sentences.
    `metadata["supporting_sentences"]` holds, for each set of sentences that an annotator chose, a
    list of their places in the evidence. The sets of one claim differ.

    Raises:
        ValueError: A file does not have the publisher's form. The message says where.
    """
    found = [row for path in files.values() for row in _rows(path)]
    return each_once(found)


def _rows(path: Path) -> Iterator[LabelledRow]:
    for at, line in enumerate(rows(load(path), _Line, str(path)), start=1):
        chosen = {place for places in line.supporting_sentences for place in places}
        if not chosen <= set(range(len(line.evidence))):
            raise ValueError(
                f"{path}: row {at}, supporting_sentences: the page has sentences 0 to "
                f"{len(line.evidence) - 1}, got {sorted(chosen)}"
            )
        yield LabelledRow(
            key=line.meta.id,
            question=None,
            answers=(Answer(line.claim, line.label != "supported", label=line.label),),
            contexts=("\n".join(line.evidence),),
            group=line.meta.claim_title,
            metadata={
                "article": line.meta.claim_title,
                "section": line.meta.claim_section,
                "evidence": list(line.evidence),
                "supporting_sentences": [list(places) for places in line.supporting_sentences],
            },
        )


def places(sentences: Sequence[str]) -> list[tuple[int, int]]:
    """Return where each sentence starts and ends in a page with one sentence a line."""
    ends = accumulate(len(sentence) + 1 for sentence in sentences)
    return [(end - 1 - len(text), end - 1) for end, text in zip(ends, sentences, strict=True)]


DATA_SET = DataSet(
    name="wice",
    title="WiCE",
    home="https://github.com/ryokamoi/wice",
    licence="ODC-BY (annotations); CC BY-SA and Common Crawl (text)",
    files=(
        File(
            "wice/claim_dev.jsonl",
            "https://raw.githubusercontent.com/ryokamoi/wice/"
            "5d8b84633d4fb55e5c0fd1e1dc0868098be17e56/data/entailment_retrieval/claim/dev.jsonl",
            "67531ca79bde4c81d3752fb69d9cb0d3d6763de5c3028f548b83ef053a6f8042",
        ),
    ),
    published_rows=349,
    level="claim",
    shows="Whether a checker sees that a long web page supports a claim, only a part of it, or "
    "none of it, and whether what it reads of the page is what annotators chose.",
    cannot_show="Claims are people's sentences, not a model's. Two of three are not wholly "
    "supported (most of these in part), so calling every claim hallucinated is right for 67 "
    "percent, and the share of the claim's words on the page has an AUROC of 0.73. Headings and "
    "navigation count as sentences of a page. Claims of one article are drawn together.",
    read=read,
    filters=FILTERS,
)
