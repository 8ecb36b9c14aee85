"""Find the figures of the references that a calculation may take, and the words around each."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from demur._text import sentences
from demur.evaluators.refchecker.content_words import beginnings
from demur.evaluators.refchecker.figures import NUMBER, PERCENT, YEAR, Figure, figures, with_unit
from demur.evaluators.refchecker.languages import likely, plain
from demur.schema import ClaimLabel, Evidence, Sample, Span

# Of references with more figures, those are taken whose sentence, list or table is nearest.
_MOST, _MOST_OF_TABLES = 14, 60
_ITEM = re.compile(r"\s*(?:[-*+•–]|\d{1,2}[.)])\s|\s*[\"'{\[]*[^.!?:|]{1,60}:(?!//)")
_LITTLE = re.compile(r"[\d\u3040-\u309f]")  # a digit, or a sign of hiragana
_SEPARATED = re.compile(r"\d+(?:[.,' \u00a0\u202f]\d+)+")
_RULE = re.compile(r"[-|: \t]*-[-|: \t]*")
# The unit of a table's column: "Rain (mm)", "Price in €".
_UNIT = re.compile(r"[(\[]([^()\[\]]{1,12})[)\]]\W*$|(?: in |, |_)([^\s:_\"']{1,12})\W*$")


@dataclass(frozen=True)
class Operand:
    """Hold a figure of a reference, its place, and the words around it."""

    context: int | None
    """The index of its context; None for `Sample.reference`."""
    figure: Figure
    written: str
    """The figure as it stands there."""
    line: int
    """The number of its sentence, item or row, counted over all references."""
    column: tuple[int, int] | None
    """Its table or list, and its column there; None in running text."""
    own: frozenset[str]
    """The words that tell it from the figures beside it: behind it or before it, or of its row."""
    around: frozenset[str]
    """All words of its sentence, item or row, and of its column's head."""
    quote: tuple[int, str]
    """The offset and the text of its sentence, item or row."""
    said: str
    """This text, behind the head of its column."""

    def evidence(self, label: ClaimLabel, whole: bool = False) -> Evidence:
        """Return the figure, or its `whole` sentence, item or row, as evidence."""
        start, text = self.quote if whole else (self.figure.start, self.written)
        span = Span(start=start, end=start + len(text))
        return Evidence(context=self.context, span=span, text=text, label=label)


def cued(name: str, text: str) -> bool:
    """Return whether a text has words of a list, such as "figures.total", in its language."""
    said = plain(text)
    patterns = (one.pattern(name, whole_words=True) for one in likely(said))
    return any(pattern.search(said) for pattern in patterns)


def telling(text: str) -> frozenset[str]:
    """Return the beginnings of a text's content words, so that "night" and "nights" are alike."""
    return frozenset(
        word[:5].rstrip("s")
        for word in beginnings(_SEPARATED.sub(" ", text))
        if len(word) > 1 or not _LITTLE.fullmatch(word)
    )


def operands(sample: Sample, words: frozenset[str]) -> tuple[Sequence[Operand], Sequence[Operand]]:
    """Return the figures of a sample's references: all, and those that are nearest to some words.

    The nearest ones are those of the sentences, items and rows that have the most of the words,
    with the lists and tables that these are in.
    """
    texts = tuple(document.page_content for document in sample.contexts)
    every = _every(texts, sample.reference or "")
    usable = [one for one in every if not (one.figure.in_words and one.figure.kind == PERCENT)]
    if len(usable) <= _MOST:
        return every, usable
    ranked = sorted(usable, key=lambda one: -len(words & one.around))[:_MOST]
    tables = {one.column[0] for one in ranked if one.column and words & one.around}
    kept = {*map(id, ranked)}
    near = [one for one in usable if id(one) in kept or (one.column and one.column[0] in tables)]
    return every, near if len(near) <= _MOST_OF_TABLES else sorted(ranked, key=lambda one: one.line)


@lru_cache(maxsize=4)  # the claims of an answer are held against the same texts
def _every(contexts: tuple[str, ...], reference: str) -> tuple[Operand, ...]:
    """Return the figures of all texts; sentences of two texts are not neighbours."""
    found: list[Operand] = []
    before = 0
    for at, text in enumerate((*contexts, reference)):
        found += [
            replace(
                one,
                context=at if at < len(contexts) else None,
                line=one.line + before,
                column=one.column and (one.column[0] + before, one.column[1]),
            )
            for one in _placed(text)
        ]
        before += len(text) + 2
    return tuple(found)


@lru_cache(maxsize=256)
def _placed(text: str) -> tuple[Operand, ...]:
    """Return the figures of a text; lines and columns are counted from 0."""
    found: list[Operand] = []
    every = figures(text)
    block, before, heads = 0, "", [""]
    title = last = frozenset[str]()
    for line, (start, end, kind) in enumerate(_lines(text)):
        quote = (start, text[start:end])
        if kind != before or kind == "sentence":
            # The first row has the heads of a table, and what stands before a list is its title.
            block, heads, title = block + 1, _cells(quote[1]), last
        before, last = kind, telling(quote[1])
        inside = [one for one in every if start <= one.start < end]
        own = [last] * len(inside) if kind == "row" else _own_words(text, start, end, inside)
        for at, (one, words) in enumerate(zip(inside, own, strict=True)):
            ahead = text[start : one.start]
            cell = ahead.strip().removeprefix("|").count("|")
            head = heads[cell] if kind == "row" and cell < len(heads) else ahead
            if kind != "sentence" and one.kind == NUMBER and (unit := _UNIT.search(head)):
                one = with_unit(one, unit[1] or unit[2])
            said, around, column = quote[1], last, None
            if kind == "row":
                words, said, column = words | telling(head), f"{head}: {said}", (block, cell)
            elif kind == "item":
                column = (block, sum(other.kind == one.kind for other in inside[:at]))
            if kind != "sentence":
                around = words | last | title
            written = text[one.start : one.end]
            found.append(Operand(None, one, written, line, column, words, around, quote, said))
    return tuple(found)


def _cells(row: str) -> list[str]:
    return row.strip().removeprefix("|").removesuffix("|").split("|")


def _lines(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield the places of rows, items and sentences, each with its kind."""
    at = 0
    for line in text.split("\n"):
        start, at = at, at + len(line) + 1
        if not line.strip() or _RULE.fullmatch(line):
            continue
        if line.count("|") > 1:
            yield start, start + len(line), "row"
        elif _ITEM.match(line):
            yield start, start + len(line), "item"
        else:
            for first, last in sentences(line):
                yield start + first, start + last, "sentence"


def _own_words(text: str, start: int, end: int, inside: Sequence[Figure]) -> list[frozenset[str]]:
    """Return the words that belong to each figure of a sentence: those behind it, or before it.

    They stand behind if words follow the last figure that the others do not have: "12 in Leeds and
    17 in York", but "Leeds has 12 employees, York has 17 employees".
    """
    # A year tells one figure from the next: "120 in 2023 and 140 in 2024".
    apart = [one for one in inside if one.kind != YEAR]
    bounds = [start, *(place for one in apart for place in (one.start, one.end)), end]
    gaps = [telling(text[a:b]) for a, b in zip(bounds[::2], bounds[1::2], strict=True)]
    if len(apart) < 2:
        return [frozenset().union(*gaps)] * len(inside)
    behind = bool(gaps[-1].difference(*gaps[:-1]))
    own = gaps[1:] if behind else gaps[:-1]
    for at in range(len(own) - 1, 0, -1):  # "12 and 17 employees"
        own[at - 1] = own[at - 1] or own[at]
    of = {one.start: words for one, words in zip(apart, own, strict=True)}
    return [of.get(one.start, frozenset()) for one in inside]
