"""A text with pieces put in and taken out, and where the rest of it has gone."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

Edit = tuple[int, int, str]
"""`text[start:end]` becomes another text."""


@dataclass(frozen=True)
class Edited:
    """A text after edits."""

    text: str
    edits: Sequence[Edit]
    """Those that were made, in order; none overlaps another."""

    @classmethod
    def of(cls, text: str, edits: Iterable[Edit]) -> Edited:
        """Make edits; one within what an earlier one takes out is left out."""
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
        """Where a span of the text stands now, without white space around it."""
        first, last = self._moved(start), self._moved(end)
        said = self.text[first:last]
        return {
            "start": first + len(said) - len(said.lstrip()),
            "end": first + len(said.rstrip()) if said.strip() else last,
        }

    def _moved(self, at: int) -> int:
        """Where a place has gone: behind what was put in there, or to what was taken out."""
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
        """By how much the text has grown after so many edits."""
        return [
            *accumulate((len(new) - (end - start) for start, end, new in self.edits), initial=0)
        ]
