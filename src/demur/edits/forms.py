"""The forms in which an answer shows what it rests on."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from langchain_core.documents import Document
from langchain_core.messages.content import create_citation

from demur._json_places import places
from demur._marks import Mark, code_in, marks_in
from demur._text import one_line
from demur.edits.addresses import unsafe_addresses
from demur.edits.citations import Citation, Place, citations_of
from demur.edits.editing import Edit, Edited
from demur.schema import Evaluation

Form = Literal["numbers", "footnotes", "links", "blocks", "list"]
FORMS: tuple[Form, ...] = get_args(Form)
_IN_TEXT = ("numbers", "footnotes", "links")

_FINAL = re.compile(r"[.!?…。！？।؟]+$")
_LAST_BAR = re.compile(r"[ \t]*\|[ \t]*$")
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff。！？]$")
# What Markdown and HTML would read as more than text; addresses become links by themselves.
_SPECIAL = re.compile(r"[\\`*_\[\]<>|~&@#!]|:(?=//)|(?<=[wW]{3})\.")
_NOWHERE = "#"


@dataclass(frozen=True)
class Cited:
    """An answer with its citations."""

    text: str
    """As it leaves, but for the notes."""
    citations: tuple[Citation, ...]
    """With places in `text`."""


def cited(
    answer: str,
    parts: Sequence[Place],
    evaluations: Iterable[Evaluation],
    contexts: Sequence[Document],
    form: Form,
    unmarked: Collection[int] = (),
) -> Cited:
    """Have an answer show what it rests on.

    Citations that it had of its own are taken out: nobody vouches for them. An address in it that
    would run something ("javascript:...") is made one that does not. The text of a structured
    answer stays as it is.

    Args:
        answer: What was judged.
        parts: Of it, in order.
        evaluations: What was found of it.
        contexts: What it was held against.
        form: How it shows that in its text: "numbers" as [1], "footnotes" as [^1], for which
            `notes` has the notes, "links" as [[1]](address), the others not at all.
        unmarked: Where parts begin that are not to be cited for.
    """
    own = marks_in(answer, contexts)
    gone = [mark for mark in own if mark.is_list]
    parts = [
        part
        for part in parts
        if part.start not in unmarked
        and not any(mark.start <= part.start < mark.end for mark in gone)
    ]
    citations = citations_of(answer, parts, evaluations, contexts)
    if places(answer) is not None:
        return Cited(answer, citations)
    edits: list[Edit] = [(mark.start, mark.end, "") for mark in own]
    edits += [(start, end, _NOWHERE) for start, end in unsafe_addresses(answer)]
    if form in _IN_TEXT:
        edits += _marks(answer, parts, own, citations, form)
    code = code_in(answer)
    edited = Edited.of(
        answer, (e for e in edits if not any(a < e[1] and e[0] < b for a, b in code))
    )
    moved = [c.model_copy(update=edited.span(c.start, c.end)) for c in citations]
    return Cited(edited.text, tuple(moved))


def blocks(cited: Cited) -> list[dict[str, Any]]:
    """The content of a message: a block of text with LangChain's standard citations."""
    annotations = [annotation(citation) for citation in cited.citations]
    return [{"type": "text", "text": cited.text, "annotations": annotations}]


def annotation(citation: Citation) -> dict[str, Any]:
    """A citation as LangChain's content blocks have it (`langchain_core.messages.Citation`)."""
    extras = {
        "document_id": citation.id,
        "document_number": citation.number,
        "document_start": citation.document_start,
        "document_end": citation.document_end,
        "metadata": citation.metadata,
    }
    standard = create_citation(
        url=citation.url,
        title=citation.title,
        start_index=citation.start,
        end_index=citation.end,
        cited_text=citation.quote,
    )
    return {**standard, "extras": {k: v for k, v in extras.items() if v is not None}}


def notes(citations: Sequence[Citation], form: Form) -> str:
    """What stands below an answer with footnotes: for each document its quotes; else nothing."""
    if form != "footnotes":
        return ""
    quotes: dict[int, dict[str, None]] = {}
    documents: dict[int, Citation] = {}
    for citation in citations:
        quotes.setdefault(citation.number, {})[f"“{_plain(citation.quote)}”"] = None
        documents.setdefault(citation.number, citation)
    lines = (
        f"[^{number}]: {_titled(documents[number])}: {' '.join(of_one)}"
        for number, of_one in sorted(quotes.items())
    )
    return "".join(f"\n\n{line}" for line in lines)


def _titled(citation: Citation) -> str:
    title = _plain(citation.title)
    return title if citation.url is None else f"[{title}]({citation.url})"


def _plain(text: str) -> str:
    """A text of somebody else's on one line, in which Markdown and HTML mean nothing."""
    return _SPECIAL.sub(r"\\\g<0>", one_line(text)).replace("\\<", "&lt;").replace("\\>", "&gt;")


def _outside(code: Sequence[tuple[int, int]], edits: Iterable[Edit]) -> Iterator[Edit]:
    """The edits that are not in code, which is shown as it stands."""
    for edit in edits:
        if not any(start < edit[1] and edit[0] < end for start, end in code):
            yield edit


def _marks(
    answer: str,
    parts: Sequence[Place],
    own: Sequence[Mark],
    citations: Sequence[Citation],
    form: Form,
) -> Iterator[Edit]:
    for part in parts:
        of_part = {c.number: c for c in citations if c.start == part.start}
        announces = answer[: part.end].endswith((":", "："))
        if of_part and part.kind != "code" and not announces:
            at = _place(answer, part, own)
            space = "" if _UNSPACED.search(answer[:at][-1:]) else " "
            marks = "".join(_mark(of_part[number], form) for number in sorted(of_part))
            yield at, at, f"{space}{marks}"


def _mark(citation: Citation, form: Form) -> str:
    number = citation.number
    if form == "footnotes":
        return f"[^{number}]"
    return f"[[{number}]]({citation.url})" if form == "links" and citation.url else f"[{number}]"


def _place(answer: str, part: Place, own: Sequence[Mark]) -> int:
    """Where the mark of a part goes: before the sign that ends a sentence, or in the last cell."""
    end = part.end
    for mark in reversed(own):
        if part.start < mark.start < end and not answer[mark.end : end].strip():
            end = mark.start
    last = (_LAST_BAR if part.kind == "row" else _FINAL).search(answer, part.start, end)
    return last.start() if last and last.start() > part.start else end
