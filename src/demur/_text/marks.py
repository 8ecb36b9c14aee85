"""Find the citations that an answer already contains, and the documents that they name."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from demur._text.json_places import places
from demur._text.markdown_code import code_in

if TYPE_CHECKING:
    from langchain_core.documents import Document

_NUMBERS = r"\^?\d{1,3}(?:\s?[,;–-]\s?\^?\d{1,3})*"
_WORD = (
    r"(?:sources?|ref(?:erence)?s?|quellen?|fuentes?|fontes?|fonti|bron(?:nen)?|źród[łl][oa]"
    r"|kaynak(?:lar)?|источники?|джерел[оа]|sumber|nguồn|ال(?:مصدر|مصادر)|स्रोत|来源|來源|出典|출처)"
)
# A match may begin only at the first of a run of spaces or line breaks. If it could begin at each
# of them, the time would grow with the square of the run's length.
_SPACES = r"(?<![ \t])[ \t]*"
_BREAKS = r"(?<!\n)\n*"
NUMBERED = re.compile(
    rf"{_SPACES}(?:\[{_NUMBERS}\]|【[^】\n]{{0,40}}】|\((?i:{_WORD})[:：]?\s*[\d,;\s]{{1,20}}\))"
)
"""A citation by number, with the white space before it: "[1]", "[^2]", "[1, 3]", "【1】"."""
FORM = re.compile(r"\[\^?\d{1,3}\]|【\d{1,3}】|\(\d{1,2}\)(?=[.,;]|\s*$)", re.MULTILINE)
"""A citation by one number, in a form that another answer can keep."""

# Brackets, and character references that are shown as brackets.
_OPEN = r"(?:\\?\[|［|&(?:#0*91|#[xX]0*5[bB]|lbrack|lsqb);)"
_CLOSE = r"(?:\\?\]|］|&(?:#0*93|#[xX]0*5[dD]|rbrack|rsqb);)"
# What a page does not show beside a number: "[7<b>]" reads "[7]" there.
_UNSEEN = r"(?:[\s\xad\u200b-\u200f\u2060\ufeff]|<[/!a-zA-Z][^<>\n]{0,99}>){0,9}"
# A citation by number, with the address that may follow in Markdown, or a citation by name.
_INLINE = re.compile(
    rf"{_SPACES}(?:{_OPEN}{{1,2}}{_UNSEEN}(?P<bracket>{_NUMBERS}){_UNSEEN}{_CLOSE}{{1,2}}"
    r"(?:\((?:[^()\n]|\([^()\n]{0,99}\)){0,500}\))?"
    rf"|【(?P<corner>[^【】\n]{{0,40}})】"
    rf"|\(\s*(?i:{_WORD})\s*[:：]\s*(?P<named>[^()\n]{{1,200}})\))"
)
_LIST = re.compile(
    rf"{_BREAKS}^[ \t>*_#-]*(?i:{_WORD})[*_]*\s*[:：][*_]*[ \t]*(?P<rest>[^\n]*)"
    r"(?P<more>(?:\n{1,2}[ \t]*(?:[-*•]|\[\^?\d{1,3}\]|\d{1,3}[.)])[^\n]*)*)",
    re.MULTILINE,
)
"""A line "Source: ...", or a list under "Sources:"."""
# Quotations and items count too: in Markdown, a definition there is valid for the whole text.
_BEGIN = rf"{_BREAKS}^(?:[ \t>]|[-*+][ \t]|\d{{1,9}}[.)][ \t])*"
_DEFINITION = re.compile(
    rf"{_BEGIN}\[[\s>]*\^?[\s>]*(?P<number>\d{{1,3}})[\s>]*\]:(?P<rest>[^\n]*)", re.MULTILINE
)
"""The definition of a footnote or a link in Markdown: "[^1]: ..."."""
_NAMED_NOTE = re.compile(rf"{_BEGIN}\[\^(?P<label>[^\]\s]{{1,200}})\]:[^\n]*", re.MULTILINE)
_TO_NOTE = re.compile(rf"{_SPACES}\[\^(?P<label>[^\]\s]{{1,200}})\]")
_INDEX = re.compile(r"\[[\d\s,;–-]+\]")
_NAME = re.compile(r"(?<![\w.])[\w.]*[^\W_]$")
_FIRST = re.compile(r"\b(\w{1,60})\[0\]")
_RANGE = re.compile(r"(\d{1,3})\s?[–-]\s?\^?(\d{1,3})")
_NUMBER = re.compile(r"\d{1,3}")
_ENTRY = re.compile(
    r"[\s\-*•]*(?:\[?\^?(?P<number>\d{1,3})(?:\]:?|[.):](?=\s|$)|(?=\s*$)))?\s*(?P<name>.*)"
)
_NAMES = ("title", "source", "file_name", "url")
_MOST_IN_A_RANGE = 20


@dataclass(frozen=True)
class Mark:
    """Describe a citation in an answer."""

    start: int
    end: int
    """The mark is `answer[start:end]`, including the white space before it."""
    documents: tuple[int | None, ...]
    """The indices of the documents that it names, from 0; None for each that does not exist."""
    is_list: bool = False
    """Whether it names sources for everything above it, and not only for its own sentence."""
    states_nothing: bool = True
    """Whether it contains nothing but numbers and names of documents."""


def marks_in(answer: str, contexts: Sequence[Document]) -> tuple[Mark, ...]:
    """Return the citations in an answer, in order.

    A citation names documents in one of two ways:

    - By number, where 1 is the first document: "[2]", "[^2]", "[[2]](address)", "【2】", "(Source:
      2)".
    - By name after "Source:". A name is a document's id, the `title`, `source`, `file_name` or
      `url` of its metadata, or the last part of one of these.

    An answer in JSON has no citations, and neither has code.
    """
    if places(answer) is not None:
        return ()
    return marks_in_prose(answer, contexts)


def marks_in_prose(answer: str, contexts: Sequence[Document]) -> tuple[Mark, ...]:
    """Return the same as `marks_in`, but do not check whether the answer is JSON."""
    names = _names(contexts)
    taken = bytearray(len(answer))  # with a list, the time would grow with the square of the marks
    for start, end in code_in(answer):
        taken[start:end] = b"\1" * (end - start)
    found: list[Mark] = []
    for mark in (*_lists(answer, names, len(contexts)), *_inline(answer, names, len(contexts))):
        if 1 not in taken[mark.start : mark.end]:
            taken[mark.start : mark.end] = b"\1" * (mark.end - mark.start)
            found.append(mark)
    return tuple(sorted(found, key=lambda mark: mark.start))


def named_notes_in(answer: str) -> list[tuple[int, int]]:
    """Return the spans of footnotes with names, "[^a]: ...", and of the marks that lead to them.

    Such a footnote describes its source in the answer's own words, and names no document.
    """
    notes = [*_NAMED_NOTE.finditer(answer)]
    labels = {note["label"].casefold() for note in notes}
    begins = {note.end() - len(note[0].lstrip()) for note in notes}
    leading = (one for one in _TO_NOTE.finditer(answer) if one["label"].casefold() in labels)
    return [note.span() for note in notes] + [
        one.span()
        for one in leading
        if one.start() not in begins and answer[one.end() : one.end() + 1] != ":"
    ]


def without_sources(answer: str, contexts: Sequence[Document]) -> str:
    """Return the answer with spaces in place of lines that only name documents: "Source: guide"."""
    if not (_LIST.search(answer) or _DEFINITION.search(answer)):
        return answer  # nearly every answer ends here
    for mark in marks_in(answer, contexts):
        if mark.is_list and mark.states_nothing and None not in mark.documents:
            blank = re.sub(r"[^\n]", " ", answer[mark.start : mark.end])
            answer = f"{answer[: mark.start]}{blank}{answer[mark.end :]}"
    return answer


def _lists(answer: str, names: dict[str, int], count: int) -> Iterator[Mark]:
    for match in _LIST.finditer(answer):
        entries = [*re.split(r"[,;]", match["rest"]), *match["more"].split("\n")]
        documents, exact = _of_entries(entries, names, count)
        if documents:
            yield Mark(match.start(), match.end(), documents, True, exact)
    for match in _DEFINITION.finditer(answer):
        entry = f"[{match['number']}] {match['rest']}"
        documents, exact = _of_entries([entry], names, count)
        yield Mark(match.start(), match.end(), documents, True, exact)


def _inline(answer: str, names: dict[str, int], count: int) -> Iterator[Mark]:
    indexed = {first[1] for first in _FIRST.finditer(answer)}
    for match in _INLINE.finditer(answer):
        exact = True
        if match["named"] is not None:
            documents, exact = _of_entries(re.split(r"[,;]", match["named"]), names, count)
        else:
            # "【1†source】", "【1:0†L3-L9】"
            corner = _NUMBER.match((match["corner"] or "").strip())
            documents = _of_numbers(corner[0] if corner else match["bracket"] or "", count)
        if documents and not _is_index(answer, match, indexed):
            yield Mark(match.start(), match.end(), documents, states_nothing=exact)


def _is_index(answer: str, match: re.Match[str], indexed: Collection[str]) -> bool:
    """Return whether a match is an index, as in "sys.argv[1] holds ...", and not a citation.

    An index stands directly behind a name of a program, in the middle of a clause. Such a name has
    a dot or an underscore in it, or is indexed with 0 elsewhere. A bracket behind an ordinary word
    is a citation: "84 metres tall[1] and ...".
    """
    start, end = match.span()
    name = _NAME.search(answer, max(0, start - 60), start)
    after = answer[end : end + 2]
    return (
        _INDEX.fullmatch(match[0]) is not None
        and name is not None
        and (not name[0].replace(".", "").isalnum() or "." in name[0] or name[0] in indexed)
        and after[:1] not in ("", *".,;:!?)[\n。，")
        and not after[1:].isupper()
    )


def _of_numbers(text: str, count: int) -> tuple[int | None, ...]:
    numbers: list[int] = []
    for first, last in _RANGE.findall(text):
        numbers += range(int(first), min(int(last), int(first) + _MOST_IN_A_RANGE) + 1)
    numbers += map(int, _NUMBER.findall(_RANGE.sub("", text)))
    if 0 in numbers:  # documents are counted from 1, but programs count from 0
        return ()
    return tuple(dict.fromkeys(_numbered(number, count) for number in sorted(numbers)))


def _numbered(number: int, count: int) -> int | None:
    return number - 1 if 1 <= number <= count else None


def _of_entries(
    entries: Sequence[str], names: dict[str, int], count: int
) -> tuple[tuple[int | None, ...], bool]:
    """Return the documents that entries name, and whether the entries say nothing else."""
    documents: list[int | None] = []
    exact = True
    for entry in entries:
        match = _ENTRY.fullmatch(entry.strip())
        if match is None or not (match["number"] or match["name"]):
            continue
        known = names.get(_plain(match["name"]))
        exact = exact and (known is not None or not match["name"])
        if known is None and match["number"]:
            known = _numbered(int(match["number"]), count)
        documents.append(known)
    return tuple(dict.fromkeys(documents)), exact


def _names(contexts: Sequence[Document]) -> dict[str, int]:
    names: dict[str, int] = {}
    for at, document in enumerate(contexts):
        for name in (document.id, *(document.metadata.get(key) for key in _NAMES)):
            if isinstance(name, str) and name.strip():
                path = PurePosixPath(name.replace("\\", "/"))
                for called in map(_plain, (name, path.name, path.stem)):
                    if called:  # otherwise the title "/" would match each entry without a name
                        names.setdefault(called, at)
    return names


def _plain(name: str) -> str:
    return " ".join(name.strip(" \t\"'“”*_<>[]().").casefold().split())
