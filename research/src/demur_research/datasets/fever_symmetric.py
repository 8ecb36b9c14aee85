"""Read FEVER-symmetric: claims whose words alone do not tell the label (Schuster et al. 2019)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, model_validator

from demur_research.datasets.catalogue import DataSet, File
from demur_research.datasets.files import load, rows
from demur_research.datasets.pairs import FILTERS, each_once, linked, renamed
from demur_research.datasets.rows import Answer, LabelledRow, Reading

_NAMES = {"evidence_sentence": "evidence", "premise": "evidence", "hypothesis": "claim"}


class _Line(BaseModel):
    model_config = ConfigDict(coerce_numbers_to_str=True)

    id: str
    fever_id: str | None = None
    """The publisher's id; only in files whose `id` is another one."""
    claim: str
    evidence: str
    label: Literal["SUPPORTS", "REFUTES"]

    @model_validator(mode="before")
    @classmethod
    def _of_any_form(cls, values: Any) -> Any:
        return renamed(values, _NAMES)


def read(files: Mapping[str, Path]) -> Reading:
    """Return the claims, from the publisher's form or from lines with premise and hypothesis.

    Each claim occurs with two sentences of evidence, and each sentence of evidence with two claims.
    Pairs that are linked in this way have one group.

    Raises:
        ValueError: A file has neither form. The message says where.
    """
    lines = [line for path in files.values() for line in rows(load(path), _Line, str(path))]
    groups = linked([(line.claim, line.evidence) for line in lines])
    found = (
        LabelledRow(
            key=line.fever_id or line.id,
            question=None,
            answers=(Answer(line.claim, line.label == "REFUTES", label=line.label),),
            contexts=(line.evidence,),
            group=group,
        )
        for line, group in zip(lines, groups, strict=True)
    )
    return each_once(found)


_AT = (
    "https://raw.githubusercontent.com/TalSchuster/FeverSymmetric/"
    "7a0d73cb6744815c4c6ac54ebbd1951009a154c4/symmetric_v0.2/"
)

DATA_SET = DataSet(
    name="fever-symmetric",
    title="FEVER-symmetric 0.2",
    home="https://github.com/TalSchuster/FeverSymmetric",
    licence="CC BY-SA 3.0 (text of Wikipedia), MIT (code)",
    files=tuple(
        File(f"fever_symmetric/fever_symmetric_{part}.jsonl", f"{_AT}fever_symmetric_{part}.jsonl")
        for part in ("dev", "test")
    ),
    other_forms=("nli/fever_symmetric_v02.jsonl",),
    published_rows=1_420,
    level="claim",
    shows="Whether a checker reads the evidence: each claim is supported by one sentence and "
    "refuted by another, so a rule that reads the claim alone is right for half.",
    cannot_show="Claims that are merely unsupported: each is supported or refuted, by a sentence "
    "that is made up against the facts in half of the cases. The share of the claim's words in "
    "the evidence still has an AUROC of 0.64. Text is tokenised (-LRB-, ``). Pairs that share a "
    "claim or a sentence of evidence are drawn together.",
    read=read,
    filters=FILTERS,
    read_here=False,
)
