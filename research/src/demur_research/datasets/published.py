"""What models said about the passages of PHD and WikiBio-GPT3, joined to those passages.

Two forms are read. The publishers' lists, in their folder Reverse_Validation, hold the replies of
one variant of Reverse Validation by ChatGPT, each with its passage. JSON lines, in a file
"records_MODEL.jsonl", hold the replies of every method, each line with its passage or its `id`. The
lists' field `label`, in JSON lines `..._recorded_decision`, is an old decision of the method and
not the truth about the passage. It is read for zero-shot alone, of which nothing else was kept.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, Field, model_validator

from demur_research.datasets.files import load, rows
from demur_research.datasets.rows import LabelledRow

Variant = Literal["qg", "em"]
VARIANTS: tuple[Variant, ...] = ("qg", "em")

CHATGPT, LLAMA_2 = "chatgpt", "llama2"
"""The models of which there are records, as the names of their files have them."""
PHD_LISTS = "our_dataset_{variant}_record.json"
WIKIBIO_LISTS = "wiki_bio_{variant}_record.json"

# A number of more digits is no percentage, and one of hundreds of digits no float.
_PERCENTAGE = re.compile(
    r"(?<![\d.,])(\d{1,4}(?:[.,]\d{1,9})?)\s{0,3}(?:[%\uff05\u066a]|per\s?cent\b)", re.I
)


@dataclass(frozen=True)
class Exchange:
    """The reply of stage 2 of Reverse Validation, and what was said of it."""

    reply: str
    is_same: str | None = None
    """What a model said on whether the reply means the entity; None where it was not asked."""


@dataclass(frozen=True)
class Replies:
    """What a model said about one passage; None where nothing is recorded."""

    entity: str | None = None
    """As its record has it, with what stands around it: by this the published decisions were
    made."""
    exchanges: Mapping[Variant, Exchange] = field(default_factory=dict)
    lmvslm: str | None = None
    """The examiner's verdict."""
    zero_shot: Literal["factual", "non-factual"] | None = None
    selfcheck: float | None = None
    """By BERTScore; higher means less consistent."""
    samples: tuple[str, ...] = ()
    """Other passages about the entity, which the model wrote for SelfCheck."""


@dataclass(frozen=True)
class Records:
    """The replies, by the key of the passage's row."""

    by_key: Mapping[str, Replies]
    left_over: tuple[str, ...] = ()
    """The entities, or ids, of records of passages that the data lacks."""


def first_percentage(reply: str) -> float:
    """Return the first percentage anywhere in a reply, as a share; 1 where it gives none.

    A reading for replies to the publishers' prompts alone, which ask for no line with the figure:
    the published decision holds no reply to a percentage that it does not give.
    """
    found = _PERCENTAGE.search(reply)
    return min(float(found[1].replace(",", ".")) / 100, 1.0) if found else 1.0


def find_records(path: Path, lists: str, model: str) -> list[Path]:
    """The files of a model's records.

    Args:
        path: A file, or a folder that holds the records, or the publishers' folder of them.
        lists: What the publishers call their lists, which are of ChatGPT: `PHD_LISTS` or
            `WIKIBIO_LISTS`.
        model: `CHATGPT` or `LLAMA_2`.

    Raises:
        ValueError: The folder holds none.
    """
    if not path.is_dir():
        return [path]
    wanted = f"records*{model}*.jsonl"
    names = [lists.format(variant=one) for one in VARIANTS] if model == CHATGPT else []
    for folder in (path, path / "Reverse_Validation"):
        found = sorted(folder.glob(wanted)) or [
            folder / name for name in names if (folder / name).is_file()
        ]
        if found:
            return found
    expected = ", or ".join([wanted, *([" and ".join(names)] if names else [])])
    raise ValueError(f"{path} holds no records of {model}: expected {expected}")


def read_records(files: Sequence[Path], passages: Sequence[LabelledRow], ids: str) -> Records:
    """The records in files, joined to the rows that they are about.

    Args:
        files: As `find_records` finds them.
        passages: Rows of one answer each, with the `entity` in their metadata.
        ids: The file beside JSON lines that says which passage an id means. It is needed only where
            the rows have other keys.

    Raises:
        ValueError: A file cannot be read, a record is of another passage than the data's, or it
            cannot be told which passage it is of.
    """
    by_key = {row.key: row for row in passages}
    by_text = {_spaced(row.answers[0].text): row for row in passages}
    if min(len(by_key), len(by_text)) < len(passages):
        raise ValueError("the data has a passage or a key twice: records would fit both")
    entities = {_bare(str(row.metadata["entity"])) for row in passages}
    joined: dict[str, Replies] = {}
    left_over: dict[str, None] = {}
    for file in files:
        for record in _identified(rows(load(file), _Record, str(file)), file, ids, by_key):
            if record.passage is None:
                row = by_key.get(record.id or "")
            else:
                row = by_text.get(_spaced(record.passage))
            entity = _bare(record.entity or "")
            if row is None and (record.passage is None or entity not in entities):
                left_over[(record.entity or record.id or "").strip()] = None
            elif row is None or entity not in ("", _bare(str(row.metadata["entity"]))):
                raise ValueError(
                    f"{file}: the record of {record.entity!r} is of another passage than the "
                    "data's: records and data have to be of the same version"
                )
            else:
                joined[row.key] = _both(joined.get(row.key, Replies()), record, row.key, file)
    return Records(joined, tuple(left_over))


class _Record(BaseModel):
    """One record of either form, in the names of the JSON lines."""

    id: str | None = None
    entity: str | None = None
    passage: str | None = None
    qg_answer: str | None = None
    qg_is_same: str | None = None
    em_answer: str | None = None
    em_is_same: str | None = None
    lmvslm_verdict: str | None = None
    zero_shot_recorded_decision: Literal["factual", "non-factual"] | None = None
    selfcheck_bertscore: float | None = Field(None, allow_inf_nan=False)
    samples: tuple[str, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _of_a_list(cls, values: Any) -> Any:
        """A row of the publishers' lists, whose variant shows in the name of its query."""
        for query, variant in {"question": "qg", "detail": "em"}.items():
            if isinstance(values, dict) and query in values:
                told = {f"{variant}_answer": "answer", f"{variant}_is_same": "Is_same"}
                names = {"entity": "entity", "passage": "claim", **told}
                return {name: values.get(source) for name, source in names.items()}
        return values

    @model_validator(mode="after")
    def _whole(self) -> _Record:
        if self.id is None and (self.entity is None or self.passage is None):
            raise ValueError("expected an id, or an entity and its claim (the passage)")
        if self.qg_answer is None and self.em_answer is None and self.lmvslm_verdict is None:
            raise ValueError(
                "expected a recorded reply: question or detail with answer, or qg_answer, "
                "em_answer or lmvslm_verdict"
            )
        return self

    @property
    def exchanges(self) -> dict[Variant, Exchange]:
        said: dict[Variant, tuple[str | None, str | None]] = {
            "qg": (self.qg_answer, self.qg_is_same),
            "em": (self.em_answer, self.em_is_same),
        }
        return {
            variant: Exchange(reply, None if is_same in ("", "None") else is_same)
            for variant, (reply, is_same) in said.items()
            if reply is not None
        }


class _Named(BaseModel):
    id: str
    entity: str | None
    passage: str


def _spaced(text: str) -> str:
    return " ".join(text.split())


def _bare(entity: str) -> str:
    """The name without the blanks and stray signs around it, which not everyone keeps."""
    return "".join(filter(str.isalnum, entity)).casefold()


def _identified(
    records: list[_Record], file: Path, ids: str, known: Mapping[str, Any]
) -> list[_Record]:
    """The records, with the passages that their ids mean where the data does not know the ids."""
    if all(one.passage is not None for one in records) or any(one.id in known for one in records):
        return records
    beside = file.with_name(ids)
    if not beside.is_file():
        raise ValueError(
            f"{file}: its records have ids and no passages, and the data has no such ids: put "
            f"{ids}, which says what they mean, beside the records"
        )
    named = {row.id: row for row in rows(load(beside), _Named, str(beside))}
    for one in records:
        if one.id not in named:
            raise ValueError(f"{file}: the id {one.id!r} is not in {beside}")
    return [
        one.model_copy(update=named[str(one.id)].model_dump(include={"entity", "passage"}))
        for one in records
    ]


def _both(known: Replies, more: _Record, key: str, file: Path) -> Replies:
    """The publishers have a list for each variant; JSON lines have all of a passage in one."""
    twice = None not in (more.lmvslm_verdict, known.lmvslm)
    if twice or more.exchanges.keys() & known.exchanges.keys():
        raise ValueError(f"{file}: there are two records of the passage {key}")
    return replace(
        known,
        entity=more.entity,
        exchanges={**known.exchanges, **more.exchanges},
        lmvslm=more.lmvslm_verdict,
        zero_shot=more.zero_shot_recorded_decision,
        selfcheck=more.selfcheck_bertscore,
        samples=more.samples,
    )
