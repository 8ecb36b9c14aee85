"""Take failing sentences out of an answer, so that the rest still reads well."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache

from demur._text import words
from demur.evaluators import Piece, content_words, pieces, refers
from demur.schema import Claim

_NUMBERED = re.compile(r"(\d{1,3})(?=[.)])")
_JOINS = re.compile(
    r"\W*(?:however|but|yet|therefore|thus|hence|so|consequently|accordingly|nevertheless|"
    r"nonetheless|instead|otherwise|then|still|that is why|for this reason|as a result|in contrast|"
    r"on the other hand|aber|jedoch|doch|daher|deshalb|deswegen|somit|folglich|trotzdem|dennoch|"
    r"stattdessen|sonst|dagegen|hingegen)(?!\w)"
    r"|.{0,2}(?:但是?|然而|因此|所以|しかし|だから|したがって|그러나|하지만|따라서)",
    re.IGNORECASE,
)
"""How a sentence begins that continues the one before: "However, ..."."""


@dataclass(frozen=True)
class Remainder:
    """Hold an answer without some of its pieces."""

    answer: str
    pieces: Sequence[Piece]
    removed: frozenset[int] = frozenset()
    """The numbers of the pieces that are taken out."""
    reworded: Mapping[int, str] = field(default_factory=dict)
    """The new words of reworded pieces, by the numbers of the pieces."""

    def without(self, further: Iterable[int]) -> Remainder:
        """Take out further pieces, and pieces that are then alone, such as an empty heading."""
        removed = {*self.removed, *further}
        while more := self._alone(removed) - removed:
            removed |= more
        return replace(self, removed=frozenset(removed))

    def without_lost(self) -> Remainder:
        """Take out, too, the pieces that continue or refer to a removed piece."""
        left = self
        while left.lost:
            removed = set(left.removed)
            begins: dict[int, int] = {}
            for at in range(1, len(self.pieces)):
                if left._is_lost(at, removed, begins):
                    removed.add(at)
            left = left.without(removed)
        return left

    def with_reworded(self, reworded: Mapping[int, str]) -> Remainder:
        """Replace the words of these pieces."""
        return replace(self, reworded={**self.reworded, **reworded})

    @property
    def texts_removed(self) -> tuple[str, ...]:
        """Return the texts of the removed pieces, in order."""
        return tuple(
            self.answer[self.pieces[at].start : self.pieces[at].end] for at in sorted(self.removed)
        )

    @property
    def lost(self) -> list[int]:
        """Return the kept pieces that refer to a removed piece: "It is ...", "However, ..."."""
        begins: dict[int, int] = {}
        return [at for at in range(len(self.pieces)) if self._is_lost(at, self.removed, begins)]

    def is_lost(self, at: int) -> bool:
        """Return whether a piece refers to a removed piece."""
        return self._is_lost(at, self.removed, {})

    def said(self, at: int) -> str:
        """Return the words of a piece, without the marker of an item."""
        return self.answer[self.pieces[at].begin : self.pieces[at].end]

    def answers(self, question: str | None) -> bool:
        """Return whether the rest has all words of the question that the whole answer has."""
        asked = content_words(question or "") & content_words(self.answer)
        return asked <= content_words(self.text)

    @property
    def text(self) -> str:
        """Return the rest of the answer. Paragraphs stay apart, and lists are numbered anew."""
        text = marker = ""
        gap: str | None = None
        numbering = _Numbering()
        end = 0
        for at, piece in enumerate(self.pieces):
            between = self.answer[end : piece.start]
            gap = between if gap is None else _wider(gap, between)
            end = piece.end
            if self._indents[at] is not None:
                marker = ""
            head = self.answer[piece.start : piece.begin]
            if piece.kind == "item":
                head = numbering.next(head, self._indents[at], self._stays(at))
            if at in self.removed:
                marker = head or marker
                continue
            said = self.reworded.get(at, self.said(at))
            text += f"{gap if text else self.answer[: self.pieces[0].start]}{marker}{head}{said}"
            gap, marker = None, ""
        return text

    def _is_lost(self, at: int, removed: AbstractSet[int], begins: dict[int, int]) -> bool:
        """Return whether a piece refers to one of `removed`.

        `begins` caches what stands before a row of sentences like "It ... It ...", for later
        pieces.
        """
        piece, before = self.pieces[at], at - 1
        kept = at not in removed and at not in self.reworded
        if not kept or before not in removed or piece.kind not in ("sentence", "item"):
            return False
        if _JOINS.match(self.said(at)):
            return True
        refers_to = _reference(self.said(at))
        if refers_to is None:
            return False
        while before in removed and _reference(self.said(before)) == refers_to:
            before = begins.get(before, before - 1)  # both speak of what stands before them
        begins[at] = before
        return before < 0 or before in removed

    def _alone(self, removed: set[int]) -> set[int]:
        """Return the pieces that lose their purpose with the removed pieces.

        These are headings over nothing, sentences that announce nothing, and items under a removed
        item.
        """
        alone = set[int]()
        for at in sorted(removed):
            if self.pieces[at].kind == "item" and self._line(at) <= removed:
                alone.update(self._under_item(at))
        # Backwards, so that one pass finds an announcement of an announcement that is alone.
        kept = len(self.pieces)
        for at in reversed(range(len(self.pieces))):
            if at in removed or at in alone:
                continue
            if at + 1 < self._ends_under[at] <= kept:
                alone.add(at)
            else:
                kept = at
        return alone

    @cached_property
    def _ends_under(self) -> list[int]:
        """Return the end of what stands under each piece, if it is a heading or announces a list.

        Under an announcement stands the list, table or code that follows, or else the next
        sentence.
        """
        count = len(self.pieces)
        ends = [at + 1 for at in range(count)]
        headings: dict[int, int] = {}
        stop = after = count  # the end of the list that holds the next piece, and of the one after
        for at in reversed(range(count)):
            listed = at + 1 < count and self.pieces[at + 1].kind in ("item", "table", "code")
            if self.pieces[at].kind == "heading":
                level = self._level(at)
                higher = [n for of, n in headings.items() if of <= level]
                ends[at] = min(higher, default=count)
                headings[level] = at
            elif announces(self.said(at)):
                ends[at] = after if listed else min(at + 2, count)
            is_listed = self.pieces[at].kind in ("item", "table", "code")
            stop, after = (stop if is_listed or self._indents[at] is None else at), stop
        return ends

    def _under_item(self, at: int) -> Iterator[int]:
        depth = self._indents[at] or 0
        for n in range(at + 1, len(self.pieces)):
            indent = self._indents[n]
            if indent is not None and indent <= depth:
                return
            yield n

    def _line(self, at: int) -> set[int]:
        """Return the numbers of an item and of the sentences that follow in its line."""
        end = at + 1
        while end < len(self.pieces) and self._indents[end] is None:
            end += 1
        return {*range(at, end)}

    def _stays(self, at: int) -> bool:
        """Return whether any piece of an item's line is left."""
        return not self._line(at) <= self.removed

    def _level(self, at: int) -> int:
        """Return the level of a heading, from 1; 0 for other pieces."""
        piece = self.pieces[at]
        return self.answer[piece.start : piece.begin].count("#") if piece.kind == "heading" else 0

    @cached_property
    def _indents(self) -> list[int | None]:
        """Return each piece's distance from the beginning of its line.

        The distance is None if another piece stands before it in the line.
        """
        indents: list[int | None] = []
        line = end = 0
        for piece in self.pieces:
            line = max(line, self.answer.rfind("\n", line, piece.start) + 1)
            indents.append(piece.start - line if end <= line else None)
            end = piece.end
        return indents


def remainder(answer: str, failing: Iterable[Claim]) -> Remainder | None:
    """Return an answer without the pieces in which these claims stand.

    A table or a block of code is removed as a whole. A sentence that announces a list is removed
    only with the list's last item.

    Args:
        answer: An answer in prose, which may hold lists, tables and code.
        failing: The claims that do not hold.

    Returns:
        The remainder; None if there is no such claim, or if one stands nowhere in the answer.
    """
    cut = pieces(answer)
    whole = Remainder(answer, cut)
    ends = [piece.end for piece in cut]
    removed: set[int] = set()
    for claim in failing:
        held: list[int] = []
        if claim.span is not None:
            first = bisect_right(ends, claim.span.start)
            after = (at for at in range(first, len(cut)) if cut[at].start >= claim.span.end)
            held = [*range(first, next(after, len(cut)))]
        if not held:
            return None
        own = [at for at in held if not announces(whole.said(at))]
        removed.update(own or held)
    return whole.without(removed) if removed else None


class _Numbering:
    """Number the items of lists anew after some were removed."""

    def __init__(self) -> None:
        self._gone: dict[int | None, tuple[int, int]] = {}
        """The last number and the count of removed items of each list, by the list's
        indentation."""

    def next(self, marker: str, indent: int | None, stays: bool) -> str:
        """Return the marker of the next item."""
        numbered = _NUMBERED.match(marker)
        if numbered is None:
            return marker
        number = int(numbered[0])
        last, gone = self._gone.get(indent, (0, 0))
        gone = gone if number > last else 0  # a number that falls begins another list
        self._gone[indent] = number, gone + (not stays)
        return f"{number - gone}{marker[numbered.end() :]}"


@lru_cache(maxsize=1024)  # a stream asks again with each sentence
def _reference(text: str) -> str | None:
    """Return the first word of a text that refers to the text before it; None for other texts."""
    return next((word for word, _, _ in words(text)), "") if refers(text) else None


def _wider(first: str, second: str) -> str:
    """Return the white space with more line breaks, indented as the second."""
    if second.count("\n") >= first.count("\n"):
        return second
    breaks = first[: first.rindex("\n") + 1]
    return breaks + second[second.rindex("\n") + 1 :] if "\n" in second else first


def announces(text: str) -> bool:
    """Return whether a sentence announces what stands under it, such as a list."""
    return text.endswith((":", "："))
