"""Read PHD: passages about Wikipedia entities, each labelled as a whole.

The set is described in arXiv 2310.06498, section 3. Two forms are read: the publishers' file, an
object of three lists, and JSON lines with id, entity, passage, domain, label and wrong_part.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from demur_research.datasets.catalogue import DataSet, File
from demur_research.datasets.files import load, rows
from demur_research.datasets.rows import Answer, LabelledRow, Reading

Domain = Literal["low", "medium", "high"]
DOMAINS: tuple[Domain, ...] = ("low", "medium", "high")
"""How common an entity is, by the hits of a search engine."""

LISTS: Mapping[Domain, str] = {"low": "wiki_10w", "medium": "wiki_1000w", "high": "wiki_1y"}
"""The names of the domains in the publisher's file."""
_KEYS = {name: domain for domain, name in LISTS.items()}


# A wrong part that is a number is a JSON number in the file.
_Text = Annotated[str, Field(coerce_numbers_to_str=True)]


class _Listed(BaseModel):
    entity: str
    AI: str
    label: Literal["factual", "non-factual"]
    wrong_part: _Text | None = None


class _Line(BaseModel):
    id: str
    entity: str
    passage: str
    domain: Domain
    label: Literal["factual", "non-factual"]
    wrong_part: _Text | None = None


def _read(files: Mapping[str, Path]) -> Reading:
    (path,) = files.values()
    found, kept = [], Counter[str]()
    for line in _lines(path):
        told = {
            "entity": line.entity.strip(),
            "domain": line.domain,
            "wrong_part": line.wrong_part,
        }
        wrong, part = line.label == "non-factual", line.wrong_part
        kept["wrong part in a factual passage"] += bool(part) and not wrong
        kept["wrong part not in the passage"] += bool(part) and str(part) not in line.passage
        answer = Answer(line.passage, wrong, label=line.label)
        found.append(LabelledRow(line.id, None, (answer,), metadata=told))
    return Reading(tuple(found), kept=kept)


def _lines(path: Path) -> Iterator[_Line]:
    held: Any = load(path)
    if isinstance(held, list):
        yield from rows(held, _Line, str(path))
        return
    if not (isinstance(held, dict) and held and held.keys() <= _KEYS.keys()):
        raise ValueError(
            f"{path}: expected an object with the lists {', '.join(_KEYS)}, or JSON lines with "
            "entity, passage, domain and label in a file whose name ends in .jsonl"
        )
    for key, listed in held.items():
        for at, row in enumerate(rows(listed, _Listed, f"{path}, {key}"), start=1):
            yield _Line(
                id=f"{key} {at}",
                entity=row.entity,
                passage=row.AI,
                domain=_KEYS[key],
                label=row.label,
                wrong_part=row.wrong_part,
            )


DATA_SET = DataSet(
    name="phd",
    title="PHD",
    home="https://github.com/maybenotime/PHD",
    licence="none given: for use on this machine only, not to be passed on",
    files=(
        File(
            "phd/PHD_benchmark.json",
            "https://raw.githubusercontent.com/maybenotime/PHD/"
            "1c015910aeae7417a54afd234ad7480b600f6566/PHD_benchmark.json",
        ),
    ),
    other_forms=("phd/phd.jsonl",),
    published_rows=300,
    level="answer",
    shows="Whether a passage about a rare, known or common entity is found to be not factual.",
    cannot_show=(
        "Where a passage is wrong: many wrong parts are not quoted word for word. To call every "
        "passage factual is right for about three quarters."
    ),
    read=_read,
    traps={
        "wrong part in a factual passage": "People named a wrong part and still called the passage "
        "factual.",
        "wrong part not in the passage": "The wrong part is not quoted word for word, or several "
        "are joined with semicolons.",
    },
)
