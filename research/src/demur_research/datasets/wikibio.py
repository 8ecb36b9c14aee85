"""Read WikiBio-GPT3: biographies labelled sentence by sentence (Manakul et al. 2023).

Two forms are read: the publisher's file, a list of objects with gpt3_text, wiki_bio_text,
gpt3_sentences, annotation and wiki_bio_test_idx, and JSON lines with id, entity, passage,
sentences, labels, reference and in_rv_subset.

Reverse Validation is tried on a subset (arXiv 2310.06498, section 5): the first sentence gives a
name, and not every sentence is accurate. So every passage of the subset is non-factual.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, Field

from demur_research.datasets.catalogue import DataSet, File
from demur_research.datasets.files import load, load_lines, rows
from demur_research.datasets.rows import Answer, LabelledRow, Part, Reading

Label = Literal["accurate", "minor_inaccurate", "major_inaccurate"]

_STRAY = " \t\n,\"'“”"
_MOST_PIECES = 4


class _Published(BaseModel):
    gpt3_text: str
    wiki_bio_text: str
    gpt3_sentences: list[str] = Field(min_length=1)
    annotation: list[Label] = Field(min_length=1)
    wiki_bio_test_idx: int


class _Line(BaseModel):
    id: str
    entity: str | None
    passage: str
    sentences: list[str] = Field(default_factory=list)
    labels: list[Label] = Field(min_length=1)
    reference: str = ""
    in_rv_subset: bool


def _read(files: Mapping[str, Path]) -> Reading:
    (path,) = files.values()
    found, kept = [], Counter[str]()
    for at, line in enumerate(_lines(path), start=1):
        if line.sentences and len(line.sentences) != len(line.labels):
            raise ValueError(
                f"{path}: row {at}: expected a label for each of {len(line.sentences)} sentences, "
                f"got {len(line.labels)} labels"
            )
        parts = tuple(_parts(line))
        kept["sentence without a place"] += len(line.labels) - len(parts)
        entity = line.entity and line.entity.strip(_STRAY)
        kept["stray signs around the entity"] += entity != (line.entity and line.entity.strip())
        wrong = sum(label != "accurate" for label in line.labels)
        told = {
            "entity": entity,
            "in_rv_subset": line.in_rv_subset,
            "ratio": wrong / len(line.labels),
        }
        answer = Answer(line.passage, wrong > 0, parts=parts)
        contexts = (line.reference,) if line.reference else ()
        found.append(LabelledRow(line.id, None, (answer,), contexts, metadata=told))
    return Reading(tuple(found), kept=kept)


def _parts(line: _Line) -> Iterator[Part]:
    """Yield the sentences that are in the passage word for word, each after the one before."""
    end = 0
    for sentence, label in zip(line.sentences, line.labels, strict=False):
        text = sentence.strip()
        start = line.passage.find(text, end) if text else -1
        if start >= 0:
            end = start + len(text)
            yield Part(start, end, label != "accurate", label)


def _lines(path: Path) -> Iterator[_Line]:
    held = load_lines(path) if path.suffix == ".jsonl" else load(path)
    if not (isinstance(held, list) and held and isinstance(held[0], dict) and "id" not in held[0]):
        yield from rows(held, _Line, str(path))
        return
    for row in rows(held, _Published, str(path)):
        name = named(row.gpt3_sentences[0])
        inside = name is not None and any(label != "accurate" for label in row.annotation)
        yield _Line(
            id=str(row.wiki_bio_test_idx),
            entity=name if inside else None,
            passage=row.gpt3_text,
            sentences=row.gpt3_sentences,
            labels=row.annotation,
            reference=row.wiki_bio_text,
            in_rv_subset=inside,
        )


def named(sentence: str) -> str | None:
    """Return whom a first sentence is about: the text before its bracket, if that is short enough.

    The authors of Reverse Validation chose their passages in this way. A space before the bracket
    ends a piece, and the last piece counts even if it is empty.
    """
    name, _, _ = sentence.partition("(")
    return name if len(name.split(" ")) <= _MOST_PIECES else None


DATA_SET = DataSet(
    name="wikibio-gpt3",
    title="WikiBio-GPT3",
    home="https://huggingface.co/datasets/potsawee/wiki_bio_gpt3_hallucination",
    licence="CC BY-SA 3.0",
    files=(
        File(
            "wikibio_gpt3/dataset.json",
            "https://huggingface.co/datasets/potsawee/wiki_bio_gpt3_hallucination/resolve/"
            "c620633e6968e964594946a96b6cbc06e9defe55/dataset.json",
        ),
    ),
    other_forms=("wikibio_gpt3/wikibio.jsonl",),
    published_rows=238,
    level="sentence",
    shows="Which sentences of a biography are wrong, and how wrong.",
    cannot_show=(
        "Whether a passage that is right is let through: 12 of 238 are, and none of those that "
        "Reverse Validation is tried on. To call every passage wrong is right for 95 %."
    ),
    read=_read,
    traps={
        "sentence without a place": "A labelled sentence is not in the passage word for word.",
        "stray signs around the entity": "Quotes or commas around the entity are removed.",
    },
    read_here=False,
)
