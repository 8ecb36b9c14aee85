"""Read what models said about the passages of PHD and WikiBio-GPT3, and join it to the passages.

Two forms are read. The publishers' lists are in their folder Reverse_Validation. They hold
ChatGPT's replies to one variant of Reverse Validation, each with its passage. JSON lines are in a
file "records_MODEL.jsonl". They hold the replies of every method, each line with its passage, or
with an `id` that is the key of its row.

The field `label` of the lists, and `..._recorded_decision` of the JSON lines, is an old decision of
the method and not the truth about the passage. It is read for zero-shot detection only, because
nothing else of that was kept.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from demur_research.datasets.files import load, rows
from demur_research.datasets.rows import LabelledRow

Variant = Literal["qg", "em"]
VARIANTS: tuple[Variant, ...] = ("qg", "em")

CHATGPT, LLAMA_2 = "chatgpt", "llama2"
"""The models whose replies are recorded, as the names of the files spell them."""
PHD_LISTS = "our_dataset_{variant}_record.json"
WIKIBIO_LISTS = "wiki_bio_{variant}_record.json"

_SAID = (
    *("qg_answer", "em_answer", "lmvslm_verdict"),
    *("zero_shot_recorded_decision", "selfcheck_bertscore"),
)
# The digits are bounded: a longer number is no percentage, and a very long one is no finite float.
_PERCENTAGE = re.compile(
    r"(?<![\d.,])(\d{1,4}(?:[.,]\d{1,9})?)\s{0,3}(?:[%\uff05\u066a]|per\s?cent\b)", re.I
)


class Replies(BaseModel):
    """Hold what a model said about one passage, under the names of the JSON lines.

    A row of the publishers' lists is read into the same names. A field is None where nothing is
    recorded.
    """

    model_config = ConfigDict(frozen=True)

    id: str | None = None
    entity: str | None = None
    """The name with any text around it, because the published decisions were made with that
    text."""
    passage: str | None = None
    qg_answer: str | None = None
    """The reply of stage 2 to the question."""
    qg_is_same: str | None = None
    """A model's reply on whether `qg_answer` names the entity; None if no model was asked."""
    em_answer: str | None = None
    em_is_same: str | None = None
    lmvslm_verdict: str | None = None
    zero_shot_recorded_decision: Literal["factual", "non-factual"] | None = None
    selfcheck_bertscore: float | None = Field(None, allow_inf_nan=False)
    """The inconsistency by BERTScore; higher means less consistent."""
    samples: tuple[str, ...] = ()
    """Other passages about the entity, which the model wrote for SelfCheck."""

    @model_validator(mode="before")
    @classmethod
    def _of_a_list(cls, values: Any) -> Any:
        """Rename the fields of a row of the publishers' lists; its query tells the variant."""
        for query, variant in {"question": "qg", "detail": "em"}.items():
            if isinstance(values, dict) and query in values:
                told = {f"{variant}_answer": "answer", f"{variant}_is_same": "Is_same"}
                names = {"entity": "entity", "passage": "claim", **told}
                return {name: values.get(source) for name, source in names.items()}
        return values

    @field_validator("qg_is_same", "em_is_same")
    @classmethod
    def _none(cls, value: str | None) -> str | None:
        return None if value in ("", "None") else value

    @model_validator(mode="after")
    def _whole(self) -> Replies:
        if self.id is None and (self.entity is None or self.passage is None):
            raise ValueError("expected an id, or an entity and its claim (the passage)")
        if not self.said:
            raise ValueError(
                "expected a recorded reply: question or detail with answer, or "
                f"{', '.join(_SAID[:-1])} or {_SAID[-1]}"
            )
        return self

    @property
    def said(self) -> set[str]:
        """Return the names of the replies that are recorded."""
        return {name for name in _SAID if getattr(self, name) is not None}

    def reply(self, variant: Variant) -> str | None:
        """Return the reply of stage 2 of a variant."""
        return self.qg_answer if variant == "qg" else self.em_answer

    def is_same(self, variant: Variant) -> str | None:
        """Return a model's reply on whether the variant's reply names the entity."""
        return self.qg_is_same if variant == "qg" else self.em_is_same

    def and_(self, more: Replies) -> Replies:
        """Return both records as one, because the publishers have a list for each variant."""
        told = {name: value for name, value in more if value not in (None, ())}
        return self.model_copy(update=told)


@dataclass(frozen=True)
class Records:
    """Hold the replies about passages, by the key of the passage's row."""

    by_key: Mapping[str, Replies]
    left_over: tuple[str, ...] = ()
    """The entities, or ids, of records whose passages the data lacks."""


def first_percentage(reply: str) -> float:
    """Return the first percentage anywhere in a reply, as a share; 1 where it gives none.

    Use it for replies to the publishers' prompts only, which ask for no line with the figure. The
    published decision does not count a missing percentage against a reply.
    """
    found = _PERCENTAGE.search(reply)
    return min(float(found[1].replace(",", ".")) / 100, 1.0) if found else 1.0


def find_records(path: Path, lists: str, model: str) -> list[Path]:
    """Return the files of a model's records.

    Args:
        path: A file, a folder that holds the records, or a folder that holds the publishers' folder
            of records.
        lists: The publishers' names of their lists, which are of ChatGPT: `PHD_LISTS` or
            `WIKIBIO_LISTS`.
        model: `CHATGPT` or `LLAMA_2`.

    Raises:
        ValueError: The folder holds no records of the model.
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


def read_records(files: Sequence[Path], passages: Sequence[LabelledRow]) -> Records:
    """Return the records in files, joined to the rows that they are about.

    Args:
        files: The files, as `find_records` returns them.
        passages: Rows of one answer each, with the `entity` in their metadata.

    Raises:
        ValueError: A file cannot be read, a record is of another passage than the data's, or no
            passage fits a record.
    """
    by_key = {row.key: row for row in passages}
    by_text = {_spaced(row.answers[0].text): row for row in passages}
    if min(len(by_key), len(by_text)) < len(passages):
        raise ValueError(
            "the data has a passage or a key twice, expected once: a record would fit both"
        )
    entities = {_bare(str(row.metadata["entity"])) for row in passages}
    joined: dict[str, Replies] = {}
    left_over: dict[str, None] = {}
    read = [(file, said) for file in files for said in rows(load(file), Replies, str(file))]
    for file, said in read:
        row = by_key.get(said.id or "")
        if said.passage is not None:
            row = by_text.get(_spaced(said.passage))
        entity = _bare(said.entity or "")
        if row is None and (said.passage is None or entity not in entities):
            left_over[(said.entity or said.id or "").strip()] = None
            continue
        if row is None or entity not in ("", _bare(str(row.metadata["entity"]))):
            raise ValueError(
                f"{file}: the record of {said.entity!r} is of another passage than the data's: "
                "records and data have to be of the same version"
            )
        known = joined.get(row.key)
        if known is not None and known.said & said.said:
            raise ValueError(f"{file}: there are two records of the passage {row.key}")
        joined[row.key] = said if known is None else known.and_(said)
    if not joined:
        names = ", ".join(map(str, files))
        raise ValueError(
            f"{names}: no record is of a passage of the data. A record that has an id and no "
            "passage needs data with the same ids"
        )
    return Records(joined, tuple(left_over))


def _spaced(text: str) -> str:
    return " ".join(text.split())


def _bare(entity: str) -> str:
    """Return the name without the spaces and punctuation around it, which not every file keeps."""
    return "".join(filter(str.isalnum, entity)).casefold()
