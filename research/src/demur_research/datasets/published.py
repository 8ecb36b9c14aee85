"""What models said about the passages of a data set, joined to those passages.

Two forms are read. The publishers' lists hold the replies of one variant of Reverse Validation,
each with its entity and its passage. JSON lines hold the replies of all methods, each line with the
id of its passage. The lists' field `label`, in JSON lines `..._recorded_decision`, is an old
decision of the method and not the truth about the passage: it is not read, but for the zero-shot
baseline, of which nothing else was kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, Field, model_validator

from demur_research.datasets.files import load, rows

Variant = Literal["qg", "em"]
VARIANTS: tuple[Variant, ...] = ("qg", "em")


@dataclass(frozen=True)
class Passage:
    """A generated passage about one entity."""

    key: str
    """Its id, or its place in a file that gives none."""
    entity: str
    """As the data set has it, white space and all."""
    text: str


@dataclass(frozen=True)
class Exchange:
    """The reply of stage 2 of Reverse Validation, and what was said of it."""

    reply: str
    is_same: str | None
    """What a model said on whether the reply means the entity; None where it was not asked."""


@dataclass(frozen=True)
class Replies:
    """What models said about one passage; None where nothing is recorded."""

    exchanges: Mapping[Variant, Exchange] = field(default_factory=dict)
    lmvslm: str | None = None
    """The examiner's verdict."""
    zero_shot: Literal["factual", "non-factual"] | None = None
    selfcheck: float | None = None
    """By BERTScore; higher means less consistent."""


@dataclass(frozen=True)
class PublishedReplies:
    """Replies replies, by the passage's key."""

    by_key: Mapping[str, Replies]
    left_over: tuple[str, ...]
    """The entities, or ids, of records of passages that the data does not have."""


class _Row(BaseModel):
    """One row of either form, in the names of the JSON lines."""

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
    def _whole(self) -> _Row:
        if self.id is None and (self.entity is None or self.passage is None):
            raise ValueError("expected an id, or an entity and its claim (the passage)")
        if self.qg_answer is None and self.em_answer is None and self.lmvslm_verdict is None:
            raise ValueError(
                "expected a recorded reply: question or detail with answer, or qg_answer, "
                "em_answer or lmvslm_verdict"
            )
        return self

    def recorded(self) -> Replies:
        said: dict[Variant, tuple[str | None, str | None]] = {
            "qg": (self.qg_answer, self.qg_is_same),
            "em": (self.em_answer, self.em_is_same),
        }
        exchanges = {
            variant: Exchange(reply, None if is_same in (None, "", "None") else is_same)
            for variant, (reply, is_same) in said.items()
            if reply is not None
        }
        return Replies(
            exchanges,
            self.lmvslm_verdict,
            self.zero_shot_recorded_decision,
            self.selfcheck_bertscore,
        )


def read_records(
    path: Path, lists: Sequence[str], passages: Sequence[Passage], with_ids: str
) -> PublishedReplies:
    """The records in a file or a folder, joined to the passages they are about.

    Args:
        path: A file, or a folder with the publishers' lists or one file of JSON lines.
        lists: What the publishers call their lists.
        passages: The data.
        with_ids: The file beside JSON lines that says which passage an id means. It is needed only
            where the data itself has no ids.

    Raises:
        ValueError: A file cannot be read, a record is of another passage than the data's, or it
            cannot be told which passage it is of.
    """
    joined: dict[str, Replies] = {}
    left_over: dict[str, None] = {}
    find = _Join(passages)
    for file in _files(path, lists):
        for row in _identified(rows(load(file), _Row, str(file)), file, with_ids, find):
            key = find.key(row, file)
            if key is None:
                left_over[(row.entity or row.id or "").strip()] = None
            else:
                joined[key] = _both(joined.get(key, Replies()), row.recorded(), key, file)
    return PublishedReplies(joined, tuple(left_over))


class _Join:
    """From a record to the key of its passage."""

    def __init__(self, passages: Sequence[Passage]) -> None:
        self._by_key = {passage.key: passage for passage in passages}
        self._by_text = {_spaced(passage.text): passage for passage in passages}
        self._entities = {passage.entity.strip() for passage in passages}
        if min(len(self._by_key), len(self._by_text)) < len(passages):
            raise ValueError("the data has a passage or an id twice: records would fit both")

    def knows_id(self, row: _Row) -> bool:
        return row.id in self._by_key

    def key(self, row: _Row, file: Path) -> str | None:
        """None where the data has no such passage.

        Raises:
            ValueError: The data has the entity with another passage, or the passage with another
                entity.
        """
        found = (
            self._by_text.get(_spaced(row.passage))
            if row.passage is not None
            else self._by_key.get(row.id or "")
        )
        entity = row.entity and row.entity.strip()
        if found is None:
            if row.passage is not None and entity in self._entities:
                raise ValueError(
                    f"{file}: the record of {entity!r} is of another passage than the data's: "
                    "records and data have to be of the same version"
                )
            return None
        if entity is not None and entity != found.entity.strip():
            raise ValueError(
                f"{file}: the record of {entity!r} is of the passage that the data has for "
                f"{found.entity.strip()!r}: records and data have to be of the same version"
            )
        return found.key


def _spaced(text: str) -> str:
    return " ".join(text.split())


def _identified(found: list[_Row], file: Path, with_ids: str, find: _Join) -> Iterator[_Row]:
    """The rows, with the passages that their ids mean where the data does not know the ids."""
    if all(row.passage is not None for row in found) or any(map(find.knows_id, found)):
        yield from found
        return
    beside = file.with_name(with_ids)
    if not beside.is_file():
        raise ValueError(
            f"{file}: its records have ids and no passages, and the data has no such ids: pass "
            f"{with_ids} as the data, or put it beside the records"
        )
    known = {row.id: row for row in rows(load(beside), _Named, str(beside))}
    for row in found:
        named = known.get(row.id or "")
        if named is None:
            raise ValueError(f"{file}: the id {row.id!r} is not in {beside}")
        yield row.model_copy(update={"entity": named.entity, "passage": named.passage})


class _Named(BaseModel):
    id: str
    entity: str | None
    passage: str


def _both(known: Replies, more: Replies, key: str, file: Path) -> Replies:
    if more.exchanges.keys() & known.exchanges.keys():
        raise ValueError(f"{file}: there are two records of the passage {key}")
    return replace(more, exchanges={**known.exchanges, **more.exchanges})


def _files(path: Path, lists: Sequence[str]) -> list[Path]:
    if not path.is_dir():
        return [path]
    for folder in (path, path / "Reverse_Validation"):
        found = [folder / name for name in lists if (folder / name).is_file()]
        if found:
            return found
    lines = sorted(path.glob("records*.jsonl"))
    if len(lines) == 1:
        return lines
    if lines:
        names = ", ".join(file.name for file in lines)
        raise ValueError(f"{path} holds the records of several models: pass one of {names}")
    raise ValueError(f"{path} holds no records: expected {' and '.join(lists)}, or records*.jsonl")
