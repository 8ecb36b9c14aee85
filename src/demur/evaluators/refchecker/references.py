"""Cut what an answer is held against into windows that a checker can read at once."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass

from langchain_core.documents import Document

from demur._text import count_tokens, windows


@dataclass(frozen=True)
class Passage:
    """A stretch of one reference."""

    context: int | None
    """Index of the context, None for `Sample.reference`."""
    start: int
    """Where it begins in the original string; it goes on for `len(text)` characters."""
    text: str


Window = tuple[Passage, ...]
"""Passages that a checker reads together."""


def passages(
    contexts: Sequence[Document], reference: str | None, size: int, overlap: int
) -> list[Passage]:
    """All references as passages of at most `size` tokens; blank ones have none."""
    texts: list[tuple[int | None, str]] = [
        (at, document.page_content) for at, document in enumerate(contexts)
    ]
    if reference is not None:
        texts.append((None, reference))
    return [
        Passage(at, start, text[start:end])
        for at, text in texts
        for start, end in windows(text, size, overlap)
    ]


def pack(pieces: Sequence[Passage], size: int) -> list[Window]:
    """Put short passages together, in order, into windows of at most `size` tokens."""
    if sum(len(passage.text) for passage in pieces) <= size:
        return [tuple(pieces)] if pieces else []  # no token is shorter than a sign
    packed: list[Window] = []
    current: Window = ()
    total = 0
    for passage in pieces:
        tokens = count_tokens(passage.text)
        if current and total + tokens > size:
            packed.append(current)
            current, total = (), 0
        current, total = (*current, passage), total + tokens
    return [*packed, current] if current else packed


def pack_again(
    pieces: Sequence[Passage], size: int, earlier: Sequence[Sequence[str]]
) -> list[Window]:
    """As `pack`, but passages that were packed together before stay together.

    Args:
        pieces: The passages.
        size: Of a window, in tokens.
        earlier: The texts of earlier windows of this size. One is kept if all of it is there.

    Returns:
        The windows that were kept, then those of the other passages.
    """
    by_text: dict[str, deque[Passage]] = defaultdict(deque)
    for passage in pieces:
        by_text[passage.text].append(passage)
    kept: list[Window] = []
    for texts in earlier:
        if all(len(by_text[text]) >= count for text, count in Counter(texts).items()):
            kept.append(tuple(by_text[text].popleft() for text in texts))
    left = set().union(*by_text.values())
    return [*kept, *pack([passage for passage in pieces if passage in left], size)]


def window_text(window: Window) -> str:
    """The window as one text, its passages apart by a blank line."""
    return "\n\n".join(passage.text.strip() for passage in window)
