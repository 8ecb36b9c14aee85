"""A text cut into pieces, so that spans which overlap can each be shown."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple
from unicodedata import category

_JOINER = "\u200d"
_LONGEST_SIGN = 32
"""Characters; a text of accents alone is no sign."""


class Segment(NamedTuple):
    """A piece of a text."""

    text: str
    """Not empty."""
    members: tuple[int, ...]
    """The spans that cover it, in ascending order, each once."""


def segments(text: str, spans: Sequence[tuple[int, int, int]]) -> list[Segment]:
    """Cut `text` where one of `spans` begins or ends.

    Args:
        text: What is cut.
        spans: `(start, end, member)`, half-open, in any order; they may overlap and nest, and a
            member may have several. One that is empty, or that is not in the text, is left out
            whole: its offsets are those of another text, so no part of it can be right. One that
            begins or ends within a letter and its accents, or within an emoji, gets all of it.

    Returns:
        The pieces in order; together they are the text, and no two neighbours have equal members.
    """
    begin: dict[int, list[int]] = {}
    finish: dict[int, list[int]] = {}
    for start, end, member in spans:
        if 0 <= start < end <= len(text):
            begin.setdefault(_whole(text, start, -1), []).append(member)
            finish.setdefault(_whole(text, end, 1), []).append(member)
    cuts = sorted({0, len(text), *begin, *finish})
    covering: dict[int, int] = {}
    pieces: list[Segment] = []
    for at, until in pairwise(cuts):
        for member in finish.get(at, ()):
            covering[member] -= 1
            if not covering[member]:
                del covering[member]
        for member in begin.get(at, ()):
            covering[member] = covering.get(member, 0) + 1
        piece = Segment(text[at:until], tuple(sorted(covering)))
        if pieces and pieces[-1].members == piece.members:
            piece = Segment(pieces.pop().text + piece.text, piece.members)
        pieces.append(piece)
    return pieces


def _whole(text: str, at: int, step: int) -> int:
    """`at`, moved out of a sign that several characters make: apart, they are shown otherwise."""
    for _ in range(_LONGEST_SIGN):
        if not 0 < at < len(text) or not _belongs(text[at - 1], text[at]):
            break
        at += step
    return at


def _belongs(before: str, after: str) -> bool:
    return (
        category(after).startswith("M")
        or _JOINER in (before, after)
        or "\U0001f3fb" <= after <= "\U0001f3ff"  # the colour of a skin
        or (before, after) == ("\r", "\n")
    )
