"""Split an answer of any form into units: sentences, items, rows, values and blocks of code.

Each unit is a piece that may state something, with its place in the answer. Markup, JSON keys,
table heads and citations are not units, but the text of a unit includes its key or head.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

from demur._text import NUMBERED, places, sentences
from demur.evaluators.refchecker.assertion import stated_from, states_nothing
from demur.evaluators.refchecker.content_words import content_words, too_short

Kind = Literal["sentence", "item", "heading", "row", "value", "code"]


@dataclass(frozen=True)
class Unit:
    """Hold a piece of an answer that may state something."""

    start: int
    """The unit's offset in the answer, which has the unit at `answer[start:end]`."""
    end: int
    said: str
    """The unit's own words, without markup and citations, and without leading clauses that state
    nothing."""
    text: str
    """The same words as a statement: a value behind its path, a cell behind its head, an item
    behind the words that announce the list."""
    kind: Kind = "sentence"
    after: str = ""
    """The unit before it in running text, which it may refer to; empty if there is none."""


@dataclass(frozen=True)
class Piece:
    """Hold a part of an answer that is kept or removed as a whole.

    The pieces of an answer cover all of it except white space.
    """

    start: int
    end: int
    kind: Literal["sentence", "item", "heading", "table", "code"]
    begin: int
    """The offset of the piece's own words, after the marker of an item."""


UnitReader = Callable[[str, int, int], Iterator[Unit]]

_FENCE = re.compile(r"^[ \t]*(`{3,}|~{3,})[ \t]*([^\s`]*)[ \t]*$", re.MULTILINE)
_LINE = re.compile(r"[^\n]*(?:\n|$)")
_RULE = re.compile(r"[-|: \t]*-[-|: \t]*\n?")
_MARKER = re.compile(r"(?:[-*+•–>]|#{1,6}|[a-zA-Z]\)|(\d{1,3}[.)]))[ \t]+")
_LONE_MARKER = re.compile(r"\d{1,3}[.)]|[a-zA-Z]\)")
# A number belongs to a list if other lines have one too: "42. That is how many there are."
_NUMBERED = re.compile(r"^[ \t]*\d{1,3}[.)][ \t]+\S", re.MULTILINE)
_LEAST_NUMBERED = 2
_END_OF_LINE = re.compile(r"[ \t]*(?:\n|$)")
_MORE = re.compile(r"[ \t]*[^\s]")
# "Closed: Mondays" is no title.
_NAMED_VALUE = re.compile(r"[:：]\s*\w")
_EMPHASIS = re.compile(r"\*\*|__")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])|[_-]+")
# A value that is a sentence needs no path in front of it.
_SENTENCE = re.compile(r"\S+\s+\S+\s+\S+.*[.!?。！？।]\s*", re.DOTALL)


@lru_cache(maxsize=64)  # each part of an evaluation asks for the units of the same answer
def units(answer: str) -> tuple[Unit, ...]:
    """Split an answer into its units, in order.

    Text without a letter or a digit is not a unit, nor is a short title above other units. A line
    that announces other units ("The largest rivers are:") is not a unit either; the text of each of
    these units includes it.
    """
    pieces = _json_units(answer, 0)
    if pieces is None:
        pieces = [unit for start, end, read in _blocks(answer) for unit in read(answer, start, end)]
    return tuple(_announced(unit for unit in pieces if any(map(str.isalnum, unit.said))))


def pieces(answer: str) -> list[Piece]:
    """Cut an answer that is not JSON into its pieces, in order."""
    found: list[Piece] = []
    for start, end, read in _blocks(answer):
        if read is _prose:
            spans = _sentences(answer[start:end])
            found += [piece_at(answer, start + first, start + last) for first, last in spans]
            continue
        if read is _code:  # with its fences
            start = answer.rfind("\n", 0, start) + 1
            closed = answer.find("\n", end)
            end = len(answer) if closed < 0 else closed
        block = answer[start:end]
        if said := block.strip():
            begin = start + block.index(said)
            kind: Literal["table", "code"] = "code" if read is _code else "table"
            found.append(Piece(begin, begin + len(said), kind, begin))
    return found


def piece_at(answer: str, start: int, end: int) -> Piece:
    """Return the sentence at these offsets as a piece: a sentence, a list item or a heading."""
    marker = _marker(answer, start, end)
    if marker is None:
        return Piece(start, end, "sentence", start)
    heads = marker[0].startswith("#") and _END_OF_LINE.match(answer, end)
    return Piece(start, end, "heading" if heads else "item", marker.end())


def _marker(answer: str, start: int, end: int) -> re.Match[str] | None:
    """Return the marker at the beginning of an item or a heading."""
    marker = _MARKER.match(answer, start, end)
    return marker if marker and (not marker[1] or _numbers_lines(answer)) else None


def _announced(stated: Iterable[Unit]) -> Iterator[Unit]:
    listed = list(stated)
    announcement = ""
    begins: int | None = None
    for at, unit in enumerate(listed):
        following = listed[at + 1] if at + 1 < len(listed) else None
        if following is not None and unit.said.endswith((":", "：")):
            # An announcement that has no item yet continues in the next one.
            waiting = announcement if begins is not None else ""
            text = "" if states_nothing(unit.said) else unit.said
            announcement = f"{waiting} {text}".strip()
            begins = begins if waiting else unit.start if announcement else None
            continue
        if following is not None and _is_title(unit, following):
            announcement = announcement if begins is not None else ""
            continue
        if announcement:
            whole = f"{announcement} {unit.text}"
            begin = unit.start if begins is None else begins
            unit, begins = replace(unit, start=begin, said=whole, text=whole), None
        if unit.kind == "sentence" or following is None or following.kind != unit.kind:
            announcement = ""
        yield unit


def _is_title(unit: Unit, following: Unit) -> bool:
    """Return whether a unit is a mere title, such as "## Prices".

    Above what states nothing, two words may be all that an answer states: "## Closed on Mondays".
    """
    return (
        unit.kind == "heading"
        and too_short(unit.said)
        and not _NAMED_VALUE.search(unit.said)
        and (len(content_words(unit.said)) < 2 or not states_nothing(following.said))
    )


# --- Blocks --------------------------------------------------------------------------------------


def _blocks(answer: str) -> Iterator[tuple[int, int, UnitReader]]:
    """Yield the stretches of prose, tables and fenced code, in order."""
    at = 0
    for opening, closing in _fenced(answer):
        yield from _tables(answer, at, opening.start())
        yield opening.end(), closing.start(), _code
        at = closing.end()
    yield from _tables(answer, at, len(answer))


def _fenced(answer: str) -> Iterator[tuple[re.Match[str], re.Match[str]]]:
    """Yield the fences around each block of code; a block that is not closed is read as prose."""
    opening: re.Match[str] | None = None
    for mark in _FENCE.finditer(answer):
        if opening is None:
            opening = mark
        elif mark[1].startswith(opening[1]) and not mark[2].strip():
            yield opening, mark
            opening = None


def _tables(answer: str, start: int, end: int) -> Iterator[tuple[int, int, UnitReader]]:
    """Yield the stretches of prose and tables.

    A table is a line with bars, a rule below it, and further lines with bars.
    """
    at = start
    lines = [match for match in _LINE.finditer(answer, start, end) if match[0]]
    number = 0
    while number + 1 < len(lines):
        head, rule = lines[number], lines[number + 1]
        number += 1
        if "|" not in head[0] or "|" not in rule[0] or not _RULE.fullmatch(rule[0]):
            continue
        while number < len(lines) and "|" in lines[number][0]:
            number += 1
        yield at, head.start(), _prose
        yield head.start(), lines[number - 1].end(), _table
        at = lines[number - 1].end()
    yield at, end, _prose


def _code(answer: str, start: int, end: int) -> Iterator[Unit]:
    values = _json_units(answer[start:end], start)
    if values is not None:
        yield from values
        return
    block = answer[start:end]
    code = block.strip()
    if code:
        begin = start + block.index(code)
        yield Unit(begin, begin + len(code), code, code, "code")


def _table(answer: str, start: int, end: int) -> Iterator[Unit]:
    at = start
    heads: list[str] = []
    if not "".join(answer[start:end].split("\n", 2)[2:]).strip():
        yield from _prose(answer, start, end)  # no row under its head
        return
    for number, line in enumerate(answer[start:end].split("\n")):
        cells = [_clean(cell).strip() for cell in line.strip().strip("|").split("|")]
        if number == 0:
            heads = cells
        elif number > 1 and line.strip():
            named = [
                f"{head}: {cell}" if head else cell
                for head, cell in zip([*heads, *[""] * len(cells)], cells, strict=False)
                if cell
            ]
            begin = at + len(line) - len(line.lstrip())
            row = "; ".join(named)
            yield Unit(begin, begin + len(line.strip()), " ".join(filter(None, cells)), row, "row")
        at += len(line) + 1


def _prose(answer: str, start: int, end: int) -> Iterator[Unit]:
    before = ""
    for first, last in _sentences(answer[start:end]):
        begin, stop = start + first, start + last
        kind: Kind = "sentence"
        marker = _marker(answer, begin, stop)
        if marker:
            begin = marker.end()
            whole = _END_OF_LINE.match(answer, stop)
            kind = "heading" if marker[0].startswith("#") and whole else "item"
        begin += stated_from(answer[begin:stop])
        sentence = _clean(answer[begin:stop]).strip()
        if sentence:
            yield Unit(begin, stop, sentence, sentence, kind, before)
            before = sentence


@lru_cache(maxsize=8)
def _numbers_lines(answer: str) -> bool:
    return len(_NUMBERED.findall(answer)) >= _LEAST_NUMBERED


def _sentences(text: str) -> Iterator[tuple[int, int]]:
    """Yield sentences as `sentences` of `_text` does, but keep a list number with its item."""
    begin: int | None = None
    for start, end in sentences(text):
        begin = start if begin is None else begin
        marker = _LONE_MARKER.fullmatch(text, start, end)
        if (
            marker
            and "\n" not in text[end : end + 1]
            and text[end:].strip(" \t")[:1] not in ("", "\n")
        ):
            continue
        yield begin, end
        begin = None


def _clean(text: str) -> str:
    return _EMPHASIS.sub("", NUMBERED.sub("", text))


# --- JSON ----------------------------------------------------------------------------------------


def _json_units(text: str, offset: int) -> list[Unit] | None:
    """Return the values of a JSON object or list as units, or None if the text is not JSON."""
    values = places(text)
    if values is None:
        return None
    return [
        unit
        for place in values
        if place.is_leaf
        for unit in _of_value(
            place.value,
            text[place.start : place.end],
            place.start + offset,
            [step for step in place.path if isinstance(step, str)],
        )
    ]


def _of_value(value: object, raw: str, at: int, path: Sequence[str]) -> Iterator[Unit]:
    if value is None:
        return
    if not isinstance(value, str):
        yield Unit(at, at + len(raw), raw, f"{_named(path)}{raw}", "value")
    elif raw[1:-1] == value and _SENTENCE.fullmatch(value):
        yield from _moved(_prose(value, 0, len(value)), at + 1)
    else:
        yield Unit(at + 1, at + len(raw) - 1, value, f"{_named(path)}{value}", "value")


def _named(path: Sequence[str]) -> str:
    names = (" ".join(_CAMEL.sub(" ", key).split()) for key in path)
    return f"{', '.join(names)}: " if path else ""


def _moved(unmoved: Iterator[Unit], by: int) -> Iterator[Unit]:
    for unit in unmoved:
        yield replace(unit, start=unit.start + by, end=unit.end + by)
