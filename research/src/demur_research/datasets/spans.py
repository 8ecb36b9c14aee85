"""Check spans that a publisher marks in an answer by offsets and by their words."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pydantic import JsonValue

from demur_research.datasets.rows import Part

MISPLACED = "misplaced spans"
TRAPS = {
    MISPLACED: "Marked spans whose words are not at their offsets. They are not among the parts of "
    "the answer but in the row's metadata, under misplaced. The answer keeps its label."
}


@dataclass(frozen=True)
class Quoted:
    """Hold a span, with the words that the publisher gives for it."""

    part: Part
    words: str


def split(text: str, spans: Iterable[Quoted]) -> tuple[tuple[Part, ...], list[JsonValue]]:
    """Return the spans whose words are at their offsets, in order, and the words of all others."""
    placed, misplaced = [], list[JsonValue]()
    for span in spans:
        start, end = span.part.start, span.part.end
        if 0 <= start < end and text[start:end] == span.words:
            placed.append(span.part)
        else:
            misplaced.append(span.words)
    return tuple(sorted(placed, key=lambda part: (part.start, part.end))), misplaced
