"""Read LLM-AggreFact, and other JSON lines of a claim, the documents to check it by, and a label.

The form is that of Tang et al. (2024): `claim`; `doc`, a text or a list of texts, also called
`document`, `documents`, `contexts` or `passages`; and `label`, also called `supported`, which is 1
or true where the documents support the claim, and 0 or false where they do not. `id`, `question`,
`group` and `dataset`, also called `set`, are optional. A file may be packed (`.jsonl.gz`).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

from demur_research.datasets.catalogue import DataSet, File
from demur_research.datasets.files import load, rows
from demur_research.datasets.pairs import FILTERS, digest, each_once, renamed
from demur_research.datasets.rows import Answer, LabelledRow, Reading

_Text = Annotated[str, Field(min_length=1)]
_NAMES = {
    **dict.fromkeys(("document", "documents", "contexts", "passages"), "doc"),
    "supported": "label",
    "set": "dataset",
}
"""The name in the form of Tang et al. for each other name."""


class _Line(BaseModel):
    model_config = ConfigDict(coerce_numbers_to_str=True)

    claim: _Text
    doc: _Text | Annotated[list[_Text], Field(min_length=1)]
    label: bool
    id: str | None = None
    question: str | None = None
    group: str | None = None
    dataset: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _of_any_form(cls, values: Any) -> Any:
        return renamed(values, _NAMES)


def read(files: Mapping[str, Path]) -> Reading:
    """Return the claims, one row each.

    Claims with the same documents are one group, unless the lines give groups of their own. The
    metadata of a row hold its `dataset`, if the line gives one: the set within the file. A claim
    that is in two of these sets is kept in both.

    Raises:
        ValueError: A file does not have this form. The message says where.
    """
    found = [_row(line) for path in files.values() for line in rows(load(path), _Line, str(path))]
    return each_once(found, lambda row: row.metadata.get("dataset"))


def _row(line: _Line) -> LabelledRow:
    documents = (line.doc,) if isinstance(line.doc, str) else tuple(line.doc)
    label = "supported" if line.label else "not supported"
    return LabelledRow(
        key=line.id or digest(line.dataset or "", line.question or "", line.claim, *documents),
        question=line.question,
        answers=(Answer(line.claim, not line.label, label=label),),
        contexts=documents,
        group=line.group or digest(*documents),
        metadata={} if line.dataset is None else {"dataset": line.dataset},
    )


DATA_SET = DataSet(
    name="aggrefact",
    title="LLM-AggreFact, or JSON lines of claim, documents and label",
    home="https://huggingface.co/datasets/lytang/LLM-AggreFact",
    licence="CC BY-ND 4.0, for evaluation only; of other lines their own",
    files=(File("aggrefact/aggrefact.jsonl", None),),
    published_rows=None,
    level="claim",
    shows="Whether a checker tells claims that their documents support from others.",
    cannot_show="Much by one figure: the sets within it differ in documents, in models and in how "
    "many claims are hallucinated, so look at each (metadata.dataset). Claims with the same "
    "documents are drawn together.",
    read=read,
    filters=FILTERS,
    read_here=False,
)
