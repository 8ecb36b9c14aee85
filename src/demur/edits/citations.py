"""From what evaluators found of an answer to the documents that each sentence rests on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.documents import Document
from pydantic import BaseModel, ConfigDict, Field
from pydantic_core import to_jsonable_python

from demur._json_places import path_of, places
from demur.edits.addresses import address_of, title_of, without_scripts
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
    """The document's, as JSON values, without addresses that would run something."""

    @property
    def document(self) -> int:
        """Which of the documents it is, from 0."""
        return self.number - 1


@dataclass(frozen=True)
class Place:
    """A part of an answer that can be cited for: a sentence, an item, a row, a value, ..."""

    start: int
    end: int
    kind: str = "sentence"


def places_of(answer: str) -> list[Place]:
    """The parts of an answer, in order."""
    return [Place(unit.start, unit.end, unit.kind) for unit in units(answer)]


def citations_of(
    answer: str,
    parts: Sequence[Place],
    evaluations: Iterable[Evaluation],
    contexts: Sequence[Document],
) -> tuple[Citation, ...]:
    """What each supported part of an answer rests on.

    A part is supported if a claim stands in it and all that do are entailed. A passage that does
    not stand in its document, letter for letter, is none.

    Args:
        answer: What was judged.
        parts: Of it, in order.
        evaluations: What was found of it.
        contexts: What it was held against.
    """
    claims = [claim for evaluation in evaluations for claim in evaluation.claims if claim.span]
    citations: list[Citation] = []
    for part in parts:
        own = [claim for claim in claims if _stands_in(claim, part)]
        if own and all(claim.label is ClaimLabel.ENTAILMENT for claim in own):
            citations += _of_part(part, own, answer, contexts)
    return tuple(citations)


def _stands_in(claim: Claim, part: Place) -> bool:
    return claim.span is not None and part.start <= claim.span.start < part.end


def _of_part(
    part: Place, claims: Sequence[Claim], answer: str, contexts: Sequence[Document]
) -> Iterator[Citation]:
    path = path_of(answer, part.start, part.end) if places(answer) is not None else None
    supporting = (evidence for claim in claims for evidence in claim.evidence)
    for evidence in dict.fromkeys(supporting):
        document = _document_of(evidence, contexts)
        if document is None or evidence.context is None:
            continue
        number = evidence.context + 1
        metadata = to_jsonable_python(without_scripts(document.metadata), fallback=str)
        yield Citation(
            number=number,
            start=part.start,
            end=part.end,
            path=path,
            quote=document.page_content[evidence.span.start : evidence.span.end],
            document_start=evidence.span.start,
            document_end=evidence.span.end,
            id=document.id,
            title=title_of(document, number),
            url=address_of(document),
            metadata=metadata,
        )


def _document_of(evidence: Evidence, contexts: Sequence[Document]) -> Document | None:
    """The document that a supporting passage stands in."""
    at, span = evidence.context, evidence.span
    if at is None or at >= len(contexts) or evidence.label is not ClaimLabel.ENTAILMENT:
        return None
    same = contexts[at].page_content[span.start : span.end] == evidence.text
    return contexts[at] if same and evidence.text.strip() else None
