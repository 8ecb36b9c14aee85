"""WikiBio-GPT3: biographies judged sentence by sentence (Manakul et al. 2023).

Reverse Validation is tried on those of which the first sentence gives a name and not every sentence
is accurate (arXiv 2310.06498, section 5): so all of them are non-factual.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, Field

from demur_research.datasets.files import load, rows
from demur_research.datasets.published import Passage, PublishedReplies, read_records

_LISTS = ("wiki_bio_qg_record.json", "wiki_bio_em_record.json")


@dataclass(frozen=True)
class Biography(Passage):
    """A passage of the subset."""

    ratio: float
    """The share of its sentences that are not accurate, in (0, 1]."""


class _Line(BaseModel):
    id: str
    entity: str | None
    passage: str
    labels: list[Literal["accurate", "minor_inaccurate", "major_inaccurate"]] = Field(min_length=1)
    in_rv_subset: bool


def read_biographies(path: Path) -> tuple[Biography, ...]:
    """The passages of the subset that Reverse Validation was tried on.

    Args:
        path: JSON lines with id, entity, passage, labels and in_rv_subset.

    Raises:
        ValueError: The file is not of this form; the message says where.
    """
    found = []
    for at, line in enumerate(rows(load(path), _Line, str(path)), start=1):
        if not line.in_rv_subset:
            continue
        wrong = sum(label != "accurate" for label in line.labels)
        if line.entity is None or not wrong:
            what = "no entity" if line.entity is None else "only accurate sentences"
            raise ValueError(f"{path}: row {at} has {what}, so it cannot be in the subset")
        found.append(Biography(line.id, line.entity, line.passage, wrong / len(line.labels)))
    if not found:
        raise ValueError(f"{path}: it holds no passage with in_rv_subset")
    return tuple(found)


def read_wikibio_records(path: Path, passages: Sequence[Biography]) -> PublishedReplies:
    """What models said about the passages: see `read_records`.

    Raises:
        ValueError: They cannot be read, or do not fit the passages.
    """
    return read_records(path, _LISTS, passages, with_ids="wikibio.jsonl")
