"""PHD: passages about Wikipedia entities, each judged as a whole (arXiv 2310.06498, section 3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel

from demur_research.datasets.files import load, rows
from demur_research.datasets.published import Passage, PublishedReplies, read_records

Domain = Literal["low", "medium", "high"]
DOMAINS: tuple[Domain, ...] = ("low", "medium", "high")
"""How much there is to know of the entity, by what a search engine counted."""

_KEYS: dict[str, Domain] = {"wiki_10w": "low", "wiki_1000w": "medium", "wiki_1y": "high"}
_LISTS = ("our_dataset_qg_record.json", "our_dataset_em_record.json")


@dataclass(frozen=True)
class LabelledPassage(Passage):
    """A passage with what people found."""

    domain: Domain
    factual: bool
    """False if anything in it is wrong or cannot be verified."""


class _Listed(BaseModel):
    entity: str
    AI: str
    label: Literal["factual", "non-factual"]


class _Line(BaseModel):
    id: str
    entity: str
    passage: str
    domain: Domain
    label: Literal["factual", "non-factual"]


def read_passages(path: Path) -> tuple[LabelledPassage, ...]:
    """The passages in the publishers' file, an object of three lists, or in JSON lines.

    Raises:
        ValueError: The file is of neither form; the message says where.
    """
    found: Any = load(path)
    if isinstance(found, list):
        judged = [
            LabelledPassage(
                line.id, line.entity, line.passage, line.domain, line.label == "factual"
            )
            for line in rows(found, _Line, str(path))
        ]
    elif isinstance(found, dict) and found and found.keys() <= _KEYS.keys():
        judged = [
            LabelledPassage(f"{key} {at}", row.entity, row.AI, _KEYS[key], row.label == "factual")
            for key, listed in found.items()
            for at, row in enumerate(rows(listed, _Listed, f"{path}, {key}"), start=1)
        ]
    else:
        raise ValueError(
            f"{path}: expected an object with the lists {', '.join(_KEYS)}, or JSON lines with "
            "entity, passage, domain and label in a file whose name ends in .jsonl"
        )
    if not judged:
        raise ValueError(f"{path}: it holds no passage")
    return tuple(judged)


def read_phd_records(path: Path, passages: Sequence[LabelledPassage]) -> PublishedReplies:
    """What models said about the passages: see `read_records`.

    Raises:
        ValueError: They cannot be read, or do not fit the passages.
    """
    return read_records(path, _LISTS, passages, with_ids="phd.jsonl")
