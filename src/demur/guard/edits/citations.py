"""Find the documents that support each sentence of an answer, from its evaluations."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from langchain_core.documents import Document
from pydantic import BaseModel, ConfigDict, Field

from demur._text import path_of, places, written
from demur.evaluators import units
from demur.guard.edits.addresses import address_of, title_of
from demur.guard.edits.metadata import shown
from demur.schema import Claim, ClaimLabel, Evaluation, Evidence, Text


class Citation(BaseModel):
    """Link a sentence of an answer to a passage of a document that supports it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    number: int = Field(ge=1)
    """The number of the document, from 1, among the documents that the answer was checked
    against."""
    start: int = Field(ge=0)
    """The beginning of the sentence in the answer as it leaves. `answer[start:end]` is the sentence
    with its mark."""
    end: int
    path: Text | None = None
    """The path of a value in a structured answer, such as "$.items[0].price"; None in prose."""
    quote: Text
    """The passage, copied from the document."""
    document_start: int = Field(ge=0)
    """The beginning of the passage in the document: `page_content[document_start:document_end]`."""
    document_end: int
    id: str | None = None
    """The document's id, if it has one."""
    title: Text
    """The document's name: the `title`, `source`, `file_name` or `tool` of its metadata, or else
    its number."""
    url: str | None = None
    """The document's web address; None if its metadata holds no http or https address."""
    metadata: dict[str, Any] = Field(default_factory=dict)
    """The document's metadata as JSON values. Addresses that would run code are left out, and so
    are user names and passwords in other addresses."""

    @property
    def document(self) -> int:
        """Return the index of the document, from 0."""
        return self.number - 1


_WORD = re.compile(r"[a-zA-Z0-9_]")


@dataclass(frozen=True)
class Place:
    """Mark a part of an answer that can have a citation: a sentence, an item, a row or a value."""

    start: int
    end: int
    kind: str = "sentence"
    known: bool = False
    """Whether it is supported by a text that holds for every answer."""


def places_of(answer: str) -> list[Place]:
    """Return the parts of an answer, in order."""
    return [place_at(answer, unit.start, unit.end, unit.kind) for unit in units(answer)]


def place_at(answer: str, start: int, end: int, kind: str = "sentence") -> Place:
    """Return a part of an answer.

    Its kind is "cut" if its full stop is followed by a word without a space, as in "for .txt
    files".
    """
    cut = kind == "sentence" and answer[end - 1 : end] == "." and _WORD.match(answer, end)
    return Place(start, end, "cut" if cut else kind)


def citations_of(
    answer: str,
    parts: Sequence[Place],
    evaluations: Iterable[Evaluation],
    contexts: Sequence[Document],
) -> tuple[Citation, ...]:
    """Return the citations of each supported part of an answer.

    A part is supported if all claims that begin in it, or that reach into it from before, are
    entailed, and there is at least one. A passage that does not stand in its document, letter for
    letter, is left out.

    Args:
        answer: The answer that was judged.
        parts: The parts of the answer, in order.
        evaluations: The evaluations of the answer.
        contexts: The documents that the answer was checked against.
    """
    of_number = lru_cache(maxsize=None)(lambda number: _about(contexts[number - 1], number))
    path = _paths(answer)
    return tuple(
        citation
        for part, claims in _supported(parts, evaluations)
        for citation in _of_part(part, path(part), claims, contexts, of_number)
    )


def on_known(parts: Sequence[Place], evaluations: Iterable[Evaluation]) -> list[Place]:
    """Return the parts of an answer, with those that a text supports which is always known."""
    known = {
        part
        for part, claims in _supported(parts, evaluations)
        if any(one.known is not None for claim in claims for one in claim.evidence)
    }
    return [replace(part, known=part in known) for part in parts]


def _supported(
    parts: Sequence[Place], evaluations: Iterable[Evaluation]
) -> Iterator[tuple[Place, list[Claim]]]:
    """Yield the supported parts of an answer with their claims."""
    claims = [
        (claim.span.start, claim)
        for evaluation in evaluations
        for claim in evaluation.claims
        if claim.span
    ]
    claims.sort(key=lambda one: one[0])
    starts = [start for start, _ in claims]
    before = 0
    for part in parts:
        # The claim of a sentence that was judged by itself, as in a stream, begins at the marker
        # of its item, before the part.
        first, last = bisect_left(starts, before), bisect_left(starts, part.end)
        own = [claim for _, claim in claims[first:last] if _reaches(claim, part)]
        before = part.end
        if own and all(claim.label is ClaimLabel.ENTAILMENT for claim in own):
            yield part, own


def _reaches(claim: Claim, part: Place) -> bool:
    return claim.span is not None and (
        claim.span.start >= part.start or claim.span.end > part.start
    )


def _paths(answer: str) -> Callable[[Place], str | None]:
    """Return a function that finds the path of a value in a structured answer."""
    leaves = [place for place in places(answer) or () if place.is_leaf]
    starts = [leaf.start for leaf in leaves]

    def path(part: Place) -> str | None:
        at = bisect_right(starts, part.start) - 1
        if at >= 0 and part.end <= leaves[at].end:
            return written(leaves[at].path)
        return path_of(answer, part.start, part.end) if leaves else None

    return path


def _about(document: Document, number: int) -> dict[str, Any]:
    """Return the fields of a citation that describe its document."""
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
        supports = evidence.label is ClaimLabel.ENTAILMENT and evidence.text.strip()
        if evidence.context is None or not supports or document_of(evidence, contexts) is None:
            continue
        yield Citation(
            start=part.start,
            end=part.end,
            path=path,
            quote=evidence.text,
            document_start=evidence.span.start,
            document_end=evidence.span.end,
            **about(evidence.context + 1),
        )


def document_of(evidence: Evidence, contexts: Sequence[Document]) -> Document | None:
    """Return the document in which a passage stands, letter for letter; None if there is none."""
    at, span = evidence.context, evidence.span
    if at is None or at >= len(contexts):
        return None
    same = contexts[at].page_content[span.start : span.end] == evidence.text
    return contexts[at] if same else None
