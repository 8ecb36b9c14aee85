"""Add citations to an answer, in one of several forms."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, Literal, get_args

from langchain_core.documents import Document
from langchain_core.messages.content import create_citation

from demur._text import code_in, marks_in_prose, named_notes_in, one_line, places
from demur.guard.edits.addresses import unsafe_addresses
from demur.guard.edits.citations import Citation, Place, citations_of, on_known
from demur.guard.edits.editing import Edit, Edited
from demur.guard.edits.remainder import announces
from demur.schema import Evaluation

Form = Literal["numbers", "footnotes", "links", "blocks", "list"]
FORMS: tuple[Form, ...] = get_args(Form)
_IN_TEXT = ("numbers", "footnotes", "links")

_FINAL = ".!?…。！？।؟"
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff。！？]")
# Characters that Markdown and HTML would read as more than text. At the beginning of a line they
# may be an item's marker. Plain addresses become links, with linkify-it also "a.com" and "//a.b".
_SPECIAL = re.compile(
    r"^(?:[-+:=]|\d{1,9}(?=[.)]))|[\\`*_\[\]<>|~&@#!$^{}]|:(?=//)|/(?=/)|(?<=[wW]{3})\."
    r"|(?<=\w)\.(?=(?:[^\W\d_]{2}|biz|com|edu|gov|net|org|pro|web|xxx|aero|asia|coop|info|museum"
    r"|name|shop)(?![^\W_])|xn--)",
    re.IGNORECASE,
)
_ENTITY = re.compile(r"&(?=#?\w+;)")
_LAYERS = 8
"""How often citations and addresses are taken out again, since removing one may form another. After
that, all brackets are removed."""
_BRACKETS = str.maketrans(dict.fromkeys("[]()【】［］&", " "))
_NOWHERE = "#"


@dataclass(frozen=True)
class Cited:
    """Hold an answer with its citations."""

    text: str
    """The text of the answer as it leaves, without the notes of footnotes."""
    citations: tuple[Citation, ...]
    """The citations, with places in `text`."""
    form: Form

    @property
    def content(self) -> str | list[dict[str, Any]]:
        """Return what leaves: a text with its notes, or a block with LangChain's citations."""
        if self.form == "blocks":
            annotations = [annotation(citation) for citation in self.citations]
            return [{"type": "text", "text": self.text, "annotations": annotations}]
        return self.text + (_notes(self.citations) if self.form == "footnotes" else "")


def cited(
    answer: str,
    parts: Sequence[Place],
    evaluations: Sequence[Evaluation],
    contexts: Sequence[Document],
    form: Form,
    unmarked: Collection[int] = (),
    known: str = "",
) -> Cited:
    """Return an answer that shows its sources.

    The chain's own citations are taken out, since nothing vouches for them. An address that would
    run code ("javascript:...") is replaced by one that does not. The text of a structured answer
    stays unchanged.

    Args:
        answer: The answer that was judged.
        parts: The parts of the answer, in order.
        evaluations: The evaluations of the answer.
        contexts: The documents that the answer was checked against.
        form: How the text shows its sources: "numbers" as [1], "footnotes" as [^1], "links" as
            [[1]](address). The text has no marks in the other forms.
        unmarked: The beginnings of parts that must not be cited.
        known: The mark of parts that a text supports which is always known; empty: no mark.
    """
    parts = on_known(parts, evaluations) if known else parts
    parts = [part for part in parts if part.start not in unmarked]
    citations = citations_of(answer, parts, evaluations, contexts)
    if places(answer) is not None:
        return Cited(answer, citations, form)
    text = answer
    for cleaned in _cleaned(answer, contexts):
        text = cleaned.text
        parts = [Place(kind=o.kind, known=o.known, **cleaned.span(o.start, o.end)) for o in parts]
        citations = tuple(c.model_copy(update=cleaned.span(c.start, c.end)) for c in citations)
    # A part that is empty now consisted of citations only, such as a list of sources.
    parts = [part for part in parts if part.start < part.end]
    citations = tuple(c for c in citations if c.start < c.end)
    if form not in _IN_TEXT:
        return Cited(text, citations, form)
    edited = Edited.of(text, _outside(code_in(text), _marks(text, parts, citations, form, known)))
    moved = [c.model_copy(update=edited.span(c.start, c.end)) for c in citations]
    return Cited(edited.text, tuple(moved), form)


def _cleaned(answer: str, contexts: Sequence[Document]) -> Iterator[Edited]:
    """Yield an answer without its own citations and without addresses that run code, step by step.

    When something is taken out, the text around it comes together and may form such a thing again:
    "[【1】2]", "java[1]script:".
    """
    text = answer
    for layer in count():
        if layer == _LAYERS:  # only an attacker gets here, and could nest without end
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
    """Return a citation in LangChain's form, as `langchain_core.messages.Citation` defines it."""
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
    """Return the footnotes below an answer: for each document its quotes."""
    quotes: dict[int, dict[str, None]] = {}
    documents: dict[int, Citation] = {}
    for citation in citations:
        if citation.path is not None:  # notes would break the JSON of a structured answer
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
    """Return an address for Markdown, which would decode entities in it."""
    return _ENTITY.sub("&amp;", url)


def _plain(text: str) -> str:
    """Return a foreign text on one line, escaped so that it is plain text in Markdown and HTML."""
    escaped = _SPECIAL.sub(
        lambda match: f"{match[0]}\\" if match[0].isdigit() else f"\\{match[0]}", one_line(text)
    )
    return escaped.replace("\\<", "&lt;").replace("\\>", "&gt;")


def _outside(code: Sequence[tuple[int, int]], edits: Iterable[Edit]) -> Iterator[Edit]:
    """Yield the edits that are not in code, because code is shown as it stands."""
    ends = [end for _, end in code]
    for start, end, new in edits:
        at = bisect_right(ends, start)
        if at == len(code) or end <= code[at][0]:
            yield start, end, new


def _marks(
    text: str, parts: Sequence[Place], citations: Sequence[Citation], form: Form, known: str
) -> Iterator[Edit]:
    by_part: dict[tuple[int, int], dict[int, Citation]] = {}
    for citation in citations:
        of_part = by_part.setdefault((citation.start, citation.end), {})
        of_part[citation.number] = citation
    waiting: dict[int, Citation] = {}
    for part in parts:
        of_part = {**waiting, **by_part.get((part.start, part.end), {})}
        waiting = of_part if part.kind == "cut" else {}
        own = part.kind not in ("code", "cut") and not announces(text[part.start : part.end])
        marks = "".join(_mark(of_part[number], form) for number in sorted(of_part))
        marks += known if part.known else ""
        if marks and own:
            at = _place(text, part)
            before = "" if _UNSPACED.match(text[max(0, at - 1) : at]) else " "
            # A mark directly before a bracket would become a link that the answer made.
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
    """Return where the mark of a part goes: before its final signs, or in a row's last cell."""
    said = text[part.start : part.end]
    if part.kind == "row":
        bare = said.rstrip()
        left = bare[:-1].rstrip() if bare.endswith("|") else said
    else:
        left = said.rstrip(_FINAL)
    return part.start + len(left or said)
