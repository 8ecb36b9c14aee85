"""Find the sentences of plain text, as offsets into the original string."""

from __future__ import annotations

import re
from collections.abc import Iterator

from demur._text.cleaning import replace_surrogates

# In a line full of quotes, the time that sentencex takes grows with the square of its length.
_STRETCH = 4000
_GLUED = re.compile(r"\.[A-Za-z_]")
# A name such as collections.Counter. Two sentences without a space between them may look like one
# too. They are read as one sentence then, all of which has to be supported.
_DOTTED = re.compile(r"(?<![\w.])[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+", re.ASCII)
_SPACE = re.compile(r"\s")
_LINE = re.compile(r"[^\r\n\u2028\u2029]+")
_INDENT = re.compile(r"[^\S\r\n\u2028\u2029]*")
# A line shorter than this was not broken because of a maximal width.
_SHORTEST_WRAPPED = 40
_ITEM = re.compile(r"\s*(?:[-*•–#|>`=]|\d{1,3}[.)]\s|[a-zA-Z][.)]\s)")


def sentences(text: str, start: int = 0, line: int = 0) -> list[tuple[int, int]]:
    """Return the spans of the sentences in `text`, without the white space around them.

    A line break ends a sentence, unless it only wraps a paragraph to a width.

    Args:
        text: Any text.
        start: The offset at which the first sentence to find begins.
        line: The offset at which the line that contains `start` begins.
    """
    spans = []
    for begin, stop in _blocks(text, start, line):
        block = text[begin:stop]
        for first, end in _block_sentences(block):
            stripped = block[first:end].strip()
            if stripped:
                first += begin + block[first:end].index(stripped)
                spans.append((first, first + len(stripped)))
    return spans


def _blocks(text: str, start: int, line: int) -> Iterator[tuple[int, int]]:
    """Yield the spans of lines that belong together: paragraphs, items of a list, headings."""
    lines = [match.span() for match in _LINE.finditer(text, start)]
    begin = 0
    for at, (first, end) in enumerate(lines):
        following = lines[at + 1] if at + 1 < len(lines) else None
        whole = line if first == start else first
        if following is None or not _wraps(text, (whole, end), following):
            yield lines[begin][0], end
            begin = at + 1


def _wraps(text: str, line: tuple[int, int], following: tuple[int, int]) -> bool:
    """Return whether the break between two lines only wraps a paragraph to a width."""
    return (
        text[line[1] : following[0]] in ("\n", "\r\n")
        and line[1] - line[0] >= _SHORTEST_WRAPPED
        and not _ITEM.match(text, *following)
        and _indent(text, line) == _indent(text, following)
    )


def _indent(text: str, line: tuple[int, int]) -> str:
    match = _INDENT.match(text, *line)
    return match.group() if match else ""


def _block_sentences(block: str) -> Iterator[tuple[int, int]]:
    from sentencex import get_sentence_boundaries

    # A break that wraps is no end. Behind an initial, sentencex panics at a space of two bytes.
    line = _SPACE.sub(" ", replace_surrogates(block))
    at = 0
    while at < len(line):
        stretch = line[at : at + _STRETCH]
        ends = [found["end_index"] for found in get_sentence_boundaries("en", stretch)]
        if any(_GLUED.match(stretch, end - 1) for end in ends):
            names = [name.span() for name in _DOTTED.finditer(stretch)]
            ends = [end for end in ends if not any(first < end < last for first, last in names)]
        if at + _STRETCH < len(line):
            # The last sentence may continue after the stretch, so it begins the next stretch. A
            # sentence that fills the whole stretch is cut, between words if possible.
            ends = ends[:-1] or [stretch.rfind(" ") + 1 or len(stretch)]
        start = at
        for end in ends or [len(stretch)]:
            yield start, at + end
            start = at + end
        at = start
