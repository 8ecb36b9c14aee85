"""From what evaluators found of an answer to the documents that each sentence rests on."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from langchain_core.documents import Document
from pydantic import BaseModel, ConfigDict, Field

from demur._json_places import path_of, places, written
from demur.edits.addresses import address_of, title_of
from demur.edits.metadata import shown
from demur.evaluators import units
from demur.schema import Claim, ClaimLabel, Evaluation, Evidence, Text


class Citation(BaseModel):
    """A sentence of an answer, and a passage of a document that it rests on."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    number: int = Field(ge=1)
    """The document's: 1 for the first that the answer was held against."""
    start: int = Field(ge=0)
    """Where the sentence stands in the answer as it leaves, with its mark: `answer[start:end]`."""
    end: int
    path: Text | None = None
    """The value of a structured answer that it is, such as "$.items[0].price"; None in prose."""
    quote: Text
    """The passage, copied from the document."""
    document_start: int = Field(ge=0)
    """Where it stands: `page_content[document_start:document_end]`."""
    document_end: int
    id: str | None = None
    """The document's."""
    title: Text
    """What it is called: the `title`, `source`, `file_name` or `tool` of its metadata, or its
    number."""
    url: str | None = None
    """Where it is on the web; None where its metadata names no http or https address."""
    metadata: dict[str, Any] = Field(default_factory=dict)
    """The document's, as JSON values. Addresses that would run something are left out, and so are
    passwords in others."""

    @property
    def document(self) -> int:
        """Which of the documents it is, from 0."""
        return self.number - 1


_WORD = re.compile(r"[a-zA-Z0-9_]")


@dataclass(frozen=True)
class Place:
    """A part of an answer that can be cited for: a sentence, an item, a row, a value, ..."""

    start: int
    end: int
    kind: str = "sentence"


def places_of(answer: str) -> list[Place]:
    """The parts of an answer, in order."""
    return [place_at(answer, unit.start, unit.end, unit.kind) for unit in units(answer)]


def place_at(answer: str, start: int, end: int, kind: str = "sentence") -> Place:
    """A part of an answer. One whose last sign goes on in a word is "cut": "for .txt files"."""
    cut = kind == "sentence" and answer[end - 1 : end] == "." and _WORD.match(answer, end)
    return Place(start, end, "cut" if cut else kind)


def citations_of(
    answer: str,
    parts: Sequence[Place],
    evaluations: Iterable[Evaluation],
    contexts: Sequence[Document],
) -> tuple[Citation, ...]:
    """What each supported part of an answer rests on.

    A part is supported if a claim begins in it, or before it and reaches into it, and all that do
    are entailed. A passage that does not stand in its document, letter for letter, is none.

    Args:
        answer: What was judged.
        parts: Of it, in order.
        evaluations: What was found of it.
        contexts: What it was held against.
    """
    claims = [
        (claim.span.start, claim)
        for evaluation in evaluations
        for claim in evaluation.claims
        if claim.span
    ]
    claims.sort(key=lambda one: one[0])
    starts = [start for start, _ in claims]
    of_number = lru_cache(maxsize=None)(lambda number: _about(contexts[number - 1], number))
    path = _paths(answer)
    citations: list[Citation] = []
    before = 0
    for part in parts:
        # A claim about a sentence by itself, as in a stream, begins with the marker of an item.
        first, last = bisect_left(starts, before), bisect_left(starts, part.end)
        own = [claim for _, claim in claims[first:last] if _reaches(claim, part)]
        before = part.end
        if own and all(claim.label is ClaimLabel.ENTAILMENT for claim in own):
            citations += _of_part(part, path(part), own, contexts, of_number)
    return tuple(citations)


def _reaches(claim: Claim, part: Place) -> bool:
    return claim.span is not None and (
        claim.span.start >= part.start or claim.span.end > part.start
    )


def _paths(answer: str) -> Callable[[Place], str | None]:
    """What finds the path of a value in a structured answer."""
    leaves = [place for place in places(answer) or () if place.is_leaf]
    starts = [leaf.start for leaf in leaves]

    def path(part: Place) -> str | None:
        at = bisect_right(starts, part.start) - 1
        if at >= 0 and part.end <= leaves[at].end:
            return written(leaves[at].path)
        return path_of(answer, part.start, part.end) if leaves else None

    return path


def _about(document: Document, number: int) -> dict[str, Any]:
    """What a citation tells of its document."""
    return {
        "number": number,
        "id": document.id,
        "title": title_of(document, number),
        "url": address_of(document),
        "metadata": shown(document.metadata),
    }


def _of_part(
    part: Place,
    path: str | None,
    claims: Sequence[Claim],
    contexts: Sequence[Document],
    about: Callable[[int], dict[str, Any]],
) -> Iterator[Citation]:
    supporting = (evidence for claim in claims for evidence in claim.evidence)
    for evidence in dict.fromkeys(supporting):
        document = _document_of(evidence, contexts)
        if document is None or evidence.context is None:
            continue
        yield Citation(
            start=part.start,
            end=part.end,
            path=path,
            quote=document.page_content[evidence.span.start : evidence.span.end],
            document_start=evidence.span.start,
            document_end=evidence.span.end,
            **about(evidence.context + 1),
        )


def _document_of(evidence: Evidence, contexts: Sequence[Document]) -> Document | None:
    """The document that a supporting passage stands in."""
    at, span = evidence.context, evidence.span
    if at is None or at >= len(contexts) or evidence.label is not ClaimLabel.ENTAILMENT:
        return None
    same = contexts[at].page_content[span.start : span.end] == evidence.text
    return contexts[at] if same and evidence.text.strip() else None
