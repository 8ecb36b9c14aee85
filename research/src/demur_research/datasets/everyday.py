"""Read the claims about everyday texts that come with demur's judges, or lines of the same form.

A line has `claim`, `passages` (one text), and `label`: Entailment, Contradiction or Neutral. A
claim that is a bare answer has its `question`. `kind` is optional and names the kind of text, such
as "policy". A file may be packed (`.jsonl.gz`).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, Field

from demur import ClaimLabel
from demur_judge import FOLDER
from demur_research.datasets.catalogue import DataSet, File
from demur_research.datasets.files import load, rows
from demur_research.datasets.pairs import FILTERS, digest, each_once
from demur_research.datasets.rows import Answer, LabelledRow, Reading

_Text = Annotated[str, Field(min_length=1)]
_OTHER = "other"
"""The kind of a text whose line names none."""


class _Line(BaseModel):
    claim: _Text
    passages: _Text
    label: ClaimLabel
    question: str | None = None
    kind: str = _OTHER


def read(files: Mapping[str, Path]) -> Reading:
    """Return the claims, one row each; claims about one text are a group.

    Raises:
        ValueError: A file does not have this form. The message says where.
    """
    found = (_row(line) for path in files.values() for line in rows(load(path), _Line, str(path)))
    return each_once(found)


def _row(line: _Line) -> LabelledRow:
    wrong = line.label is not ClaimLabel.ENTAILMENT
    return LabelledRow(
        key=digest(line.question or "", line.claim, line.passages),
        question=line.question or None,
        answers=(Answer(line.claim, wrong, label=line.label.value),),
        contexts=(line.passages,),
        group=digest(line.passages),
        metadata={"kind": line.kind},
    )


DATA_SET = DataSet(
    name="everyday",
    title="Claims about everyday texts",
    home="https://github.com/demur-dev/demur/tree/main/judge",
    licence="Apache-2.0",
    files=(File("everyday.jsonl.gz", None),),
    published_rows=739,
    level="claim",
    shows="Whether a checker notices that one detail of a claim is wrong, in texts such as users "
    "ask about: policies, products, support, APIs, agents' records.",
    cannot_show="How often answers go wrong: about half of the claims are wrong on purpose. One "
    "hand wrote them all. Claims about one text are drawn together.",
    read=read,
    filters=FILTERS,
    shipped=FOLDER,
)
