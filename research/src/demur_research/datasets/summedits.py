"""Read SummEdits: summaries with small edits, consistent or not (Laban et al. 2023)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, model_validator

from demur_research.datasets.catalogue import DataSet, File
from demur_research.datasets.files import load, rows
from demur_research.datasets.pairs import FILTERS, digest, each_once, renamed
from demur_research.datasets.rows import Answer, LabelledRow, Reading

DOMAINS = (
    *("billsum", "ectsum", "news", "podcast", "qmsumm"),
    *("sales_call", "sales_email", "samsum", "scitldr", "shakespeare"),
)


class _Row(BaseModel):
    id: str
    doc: str
    summary: str
    label: Literal[0, 1]
    original_summary: str
    edit_types: list[str] | None = None
    domain: str | None = None
    """The domain; only in the publisher's file of all domains."""

    @model_validator(mode="before")
    @classmethod
    def _of_either_form(cls, values: Any) -> Any:
        return renamed(values, {"seed_summary": "original_summary"})


def read(files: Mapping[str, Path]) -> Reading:
    """Return the summaries of the domains at hand, from a file for each domain or from one of all.

    Raises:
        ValueError: A file has neither form. The message says where.
    """
    found = [row for path in files.values() for row in _rows(path)]
    return each_once(found)


def _rows(path: Path) -> Iterator[LabelledRow]:
    of_file = path.stem.removeprefix("summedits_")
    for row in rows(load(path), _Row, str(path)):
        domain = row.domain or of_file
        label = "consistent" if row.label else "inconsistent"
        yield LabelledRow(
            key=f"{domain} {row.id}",
            question=None,
            answers=(Answer(row.summary, not row.label, label=label),),
            contexts=(row.doc,),
            group=digest(row.doc),
            metadata={
                "domain": domain,
                "original_summary": row.original_summary,
                "edit_types": list(row.edit_types or ()),
            },
        )


_AT = (
    "https://raw.githubusercontent.com/salesforce/factualNLG/"
    "0da1dfa62c783218d26208c1796d3a2605bec745/data/summedits/"
)

DATA_SET = DataSet(
    name="summedits",
    title="SummEdits",
    home="https://github.com/salesforce/factualNLG",
    licence="Apache-2.0 (annotations); the documents are under their sources' own licences",
    files=tuple(
        File(
            f"summedits/summedits_{domain}.json",
            f"{_AT}summedits_{domain}.json",
            needed=False,
        )
        for domain in DOMAINS
    ),
    other_forms=("summedits/summedits.json",),
    published_rows=6_348,
    level="answer",
    shows="Whether a detector sees a changed word, number or name in a summary of a document.",
    cannot_show="Errors that models make by themselves: the edits were asked for. Calling every "
    "summary hallucinated is right for 62 to 70 percent of a domain (of the four read here); the "
    "share of a summary's words in the document says next to nothing (AUROC 0.44). A document has "
    "some thirty summaries, which are drawn together.",
    read=read,
    filters=FILTERS,
)
