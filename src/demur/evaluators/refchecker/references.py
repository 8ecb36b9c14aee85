"""Cut the references into windows that a checker can read at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from langchain_core.documents import Document

from demur._text import count_tokens, windows


@dataclass(frozen=True)
class Passage:
    """Hold a stretch of one reference."""

    context: int | None
    """The index of the context, or None for `Sample.reference`."""
    start: int
    """The passage's offset in the original string. It is `len(text)` characters long."""
    text: str
    worked_out: bool = False
    """Whether it is a calculation, which stands in no reference and is no evidence."""


Window = tuple[Passage, ...]
"""The passages that a checker reads together."""


def passages(
    contexts: Sequence[Document], reference: str | None, size: int, overlap: int
) -> list[Passage]:
    """Cut all references into passages of at most `size` tokens; a blank reference has none."""
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
        return [tuple(pieces)] if pieces else []  # each token has at least one character
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


def with_lines(
    windows: Sequence[tuple[Window, ...]], lines: Sequence[Sequence[str]], together: bool
) -> list[tuple[Window, ...]]:
    """Return the windows of each claim with lines of calculations behind their passages.

    Args:
        windows: The windows of each claim.
        lines: The lines of each claim.
        together: Whether claims with the same windows are asked about in one request. Then each of
            these windows has the lines of all of them.
    """
    shared: dict[object, dict[str, None]] = {}
    keys = [of if together else at for at, of in enumerate(windows)]
    for key, of_claim in zip(keys, lines, strict=True):
        shared.setdefault(key, {}).update(dict.fromkeys(of_claim))
    notes = {
        key: tuple(Passage(None, 0, line, worked_out=True) for line in of_key)
        for key, of_key in shared.items()
    }
    return [
        tuple((*window, *notes[key]) for window in of_claim)
        for key, of_claim in zip(keys, windows, strict=True)
    ]


def window_text(window: Window) -> str:
    """Return the window as one text, with a blank line between its passages."""
    return "\n\n".join(passage.text.strip() for passage in window)
