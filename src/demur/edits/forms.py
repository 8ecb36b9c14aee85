"""The forms in which an answer shows what it rests on."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, Literal, get_args

from langchain_core.documents import Document
from langchain_core.messages.content import create_citation

from demur._json_places import places
from demur._markdown_code import code_in
from demur._marks import marks_in_prose, named_notes_in
from demur._text import one_line
from demur.edits.addresses import unsafe_addresses
from demur.edits.citations import Citation, Place, citations_of
from demur.edits.editing import Edit, Edited
from demur.schema import Evaluation

Form = Literal["numbers", "footnotes", "links", "blocks", "list"]
FORMS: tuple[Form, ...] = get_args(Form)
_IN_TEXT = ("numbers", "footnotes", "links")

_FINAL = ".!?…。！？।؟"
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff。！？]")
# What Markdown and HTML would read as more than text: at the begin of a line it may be an item's
# marker. Addresses become links by themselves, with linkify-it also those like "a.com" and "//a.b".
_SPECIAL = re.compile(
    r"^(?:[-+:=]|\d{1,9}(?=[.)]))|[\\`*_\[\]<>|~&@#!$^{}]|:(?=//)|/(?=/)|(?<=[wW]{3})\."
    r"|(?<=\w)\.(?=(?:[^\W\d_]{2}|biz|com|edu|gov|net|org|pro|web|xxx|aero|asia|coop|info|museum"
    r"|name|shop)(?!\w)|xn--)",
    re.IGNORECASE,
)
_ENTITY = re.compile(r"&(?=#?\w+;)")
_LAYERS = 8
"""How often what is left may hold a citation or an address again, before brackets are taken out."""
_BRACKETS = str.maketrans(dict.fromkeys("[]()【】［］&", " "))
_NOWHERE = "#"


@dataclass(frozen=True)
class Cited:
    """An answer with its citations."""

    text: str
    """As it leaves, but for the notes."""
    citations: tuple[Citation, ...]
    """With places in `text`."""
    form: Form

    @property
    def content(self) -> str | list[dict[str, Any]]:
        """What leaves: a text with its notes, or a block with LangChain's standard citations."""
        if self.form == "blocks":
            annotations = [annotation(citation) for citation in self.citations]
            return [{"type": "text", "text": self.text, "annotations": annotations}]
        return self.text + (_notes(self.citations) if self.form == "footnotes" else "")


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
        form: How it shows that in its text: "numbers" as [1], "footnotes" as [^1], "links"
            as [[1]](address), the others not at all.
        unmarked: Where parts begin that are not to be cited for.
    """
    parts = [part for part in parts if part.start not in unmarked]
    citations = citations_of(answer, parts, evaluations, contexts)
    if places(answer) is not None:
        return Cited(answer, citations, form)
    text = answer
    for cleaned in _cleaned(answer, contexts):
        text = cleaned.text
        parts = [Place(kind=one.kind, **cleaned.span(one.start, one.end)) for one in parts]
        citations = tuple(c.model_copy(update=cleaned.span(c.start, c.end)) for c in citations)
    # What is empty now said nothing but what was taken out: a list of sources.
    parts = [part for part in parts if part.start < part.end]
    citations = tuple(c for c in citations if c.start < c.end)
    if form not in _IN_TEXT:
        return Cited(text, citations, form)
    edited = Edited.of(text, _outside(code_in(text), _marks(text, parts, citations, form)))
    moved = [c.model_copy(update=edited.span(c.start, c.end)) for c in citations]
    return Cited(edited.text, tuple(moved), form)


def _cleaned(answer: str, contexts: Sequence[Document]) -> Iterator[Edited]:
    """An answer without citations of its own and addresses that run something, step by step.

    Where something is taken out, what stood around it comes together, and may be such a thing too:
    "[【1】2]", "java[1]script:".
    """
    text = answer
    for layer in count():
        if layer == _LAYERS:  # nobody but an attacker gets here, and they would go on
            text = text.translate(_BRACKETS)
        edits: list[Edit] = [(mark.start, mark.end, "") for mark in marks_in_prose(text, contexts)]
        edits += [(start, end, "") for start, end in named_notes_in(text)]
        edits += [(start, end, _NOWHERE) for start, end in unsafe_addresses(text)]
        edited = Edited.of(text, _outside(code_in(text), edits))
        if not edited.edits:
            if layer >= _LAYERS:
                yield edited
            return
        yield edited
        text = edited.text


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


def _notes(citations: Sequence[Citation]) -> str:
    """What stands below an answer with footnotes: for each document its quotes."""
    quotes: dict[int, dict[str, None]] = {}
    documents: dict[int, Citation] = {}
    for citation in citations:
        if citation.path is not None:  # JSON stays JSON
            continue
        quotes.setdefault(citation.number, {})[f"“{_plain(citation.quote)}”"] = None
        documents.setdefault(citation.number, citation)
    lines = (
        f"[^{number}]: {_titled(documents[number])}: {' '.join(of_one)}"
        for number, of_one in sorted(quotes.items())
    )
    return "".join(f"\n\n{line}" for line in lines)


def _titled(citation: Citation) -> str:
    title = _plain(citation.title)
    return title if citation.url is None else f"[{title}]({_as_destination(citation.url)})"


def _as_destination(url: str) -> str:
    """An address in Markdown, which would decode entities in it."""
    return _ENTITY.sub("&amp;", url)


def _plain(text: str) -> str:
    """A text of somebody else's on one line, in which Markdown and HTML mean nothing."""
    escaped = _SPECIAL.sub(
        lambda match: f"{match[0]}\\" if match[0].isdigit() else f"\\{match[0]}", one_line(text)
    )
    return escaped.replace("\\<", "&lt;").replace("\\>", "&gt;")


def _outside(code: Sequence[tuple[int, int]], edits: Iterable[Edit]) -> Iterator[Edit]:
    """The edits that are not in code, which is shown as it stands."""
    ends = [end for _, end in code]
    for start, end, new in edits:
        at = bisect_right(ends, start)
        if at == len(code) or end <= code[at][0]:
            yield start, end, new


def _marks(
    text: str, parts: Sequence[Place], citations: Sequence[Citation], form: Form
) -> Iterator[Edit]:
    by_part: dict[tuple[int, int], dict[int, Citation]] = {}
    for citation in citations:
        of_part = by_part.setdefault((citation.start, citation.end), {})
        of_part[citation.number] = citation
    waiting: dict[int, Citation] = {}
    for part in parts:
        of_part = {**waiting, **by_part.get((part.start, part.end), {})}
        waiting = of_part if part.kind == "cut" else {}
        announces = text[part.start : part.end].endswith((":", "："))
        if of_part and part.kind not in ("code", "cut") and not announces:
            at = _place(text, part)
            marks = "".join(_mark(of_part[number], form) for number in sorted(of_part))
            before = "" if _UNSPACED.match(text[max(0, at - 1) : at]) else " "
            # With a bracket behind it, a mark would be a link of the answer's.
            after = " " if text[at : at + 1] in ("(", "[") else ""
            yield at, at, f"{before}{marks}{after}"


def _mark(citation: Citation, form: Form) -> str:
    number = citation.number
    if form == "footnotes":
        return f"[^{number}]"
    if form == "links" and citation.url:
        return f"[[{number}]]({_as_destination(citation.url)})"
    return f"[{number}]"


def _place(text: str, part: Place) -> int:
    """Where the mark of a part goes: before the sign that ends a sentence, or in the last cell."""
    said = text[part.start : part.end]
    if part.kind == "row":
        bare = said.rstrip()
        left = bare[:-1].rstrip() if bare.endswith("|") else said
    else:
        left = said.rstrip(_FINAL)
    return part.start + len(left or said)
