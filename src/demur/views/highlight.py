"""Cut a text into pieces, so that overlapping spans can be shown."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple
from unicodedata import category

_JOINER = "\u200d"
_LONGEST_SIGN = 32
"""The most characters of a sign; a longer run of accents is not taken for a sign."""


class Segment(NamedTuple):
    """Hold a piece of a text, and the spans that cover it."""

    text: str
    """The text of the piece, not empty."""
    members: tuple[int, ...]
    """The members whose spans cover the piece, in ascending order, each once."""


def segments(text: str, spans: Sequence[tuple[int, int, int]]) -> list[Segment]:
    """Cut `text` at every place where a span begins or ends.

    Args:
        text: The text to cut.
        spans: Tuples `(start, end, member)`, half-open, in any order. Spans may overlap and nest,
            and a member may have several. A span that is empty or reaches beyond the text is left
            out: its offsets belong to another text. A span that begins or ends inside a letter with
            accents, or inside an emoji, is extended to cover it completely.

    Returns:
        The pieces in order. Joined, they are the text. Neighbours have different members.
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
    """Move `at` out of a sign that consists of several characters, which must stay together."""
    for _ in range(_LONGEST_SIGN):
        if not 0 < at < len(text) or not _belongs(text[at - 1], text[at]):
            break
        at += step
    return at


def _belongs(before: str, after: str) -> bool:
    return (
        category(after).startswith("M")
        or _JOINER in (before, after)
        or "\U0001f3fb" <= after <= "\U0001f3ff"  # the skin tone of an emoji
        or (before, after) == ("\r", "\n")
    )
