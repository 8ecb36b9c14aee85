"""Insert and remove pieces of a text, and find where the rest of the text has moved."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

Edit = tuple[int, int, str]
"""A replacement of `text[start:end]` by another text."""


@dataclass(frozen=True)
class Edited:
    """Hold a text after edits."""

    text: str
    edits: Sequence[Edit]
    """The edits that were made, in order; no two of them overlap."""

    @classmethod
    def of(cls, text: str, edits: Iterable[Edit]) -> Edited:
        """Apply edits to a text. An edit that begins inside a text removed earlier is skipped."""
        pieces: list[str] = []
        made: list[Edit] = []
        at = 0
        for start, end, new in sorted(edits, key=lambda edit: edit[:2]):
            if start >= at:
                pieces += [text[at:start], new]
                made.append((start, end, new))
                at = end
        return cls("".join([*pieces, text[at:]]), made)

    def span(self, start: int, end: int) -> dict[str, int]:
        """Return the new place of a span of the original text, without white space around it."""
        first, last = self._moved(start), self._moved(end)
        said = self.text[first:last]
        return {
            "start": first + len(said) - len(said.lstrip()),
            "end": first + len(said.rstrip()) if said.strip() else last,
        }

    def _moved(self, at: int) -> int:
        """Return where an original place is now: behind an insertion there, or at a removal."""
        before = bisect_right(self._ends, at)
        moved = at + self._grown[before]
        if before < len(self.edits) and self.edits[before][0] < at:
            moved -= at - self.edits[before][0]
        return moved

    @cached_property
    def _ends(self) -> list[int]:
        return [end for _, end, _ in self.edits]

    @cached_property
    def _grown(self) -> list[int]:
        """Return the growth of the text after each number of edits, from 0."""
        return [
            *accumulate((len(new) - (end - start) for start, end, new in self.edits), initial=0)
        ]
