"""Fold the parts of long texts that are not needed at first sight."""

from __future__ import annotations

from demur.views.elements import Element, element

_LONGEST = 600
"""The number of characters up to which a text is never folded."""
_KEPT = 240
"""The number of characters that are shown beside a fold."""


def folded(text: str, *, head: bool = True, tail: bool = False) -> list[str]:
    """Return the text in parts; a long text has a fold, which opens by a click.

    Args:
        text: The text to show.
        head: Whether to show the beginning in front of the fold.
        tail: Whether to show the end behind the fold.
    """
    if len(text) <= _LONGEST:
        return [text]
    start = _after_word(text, _KEPT) if head else 0
    end = _before_word(text, len(text) - _KEPT) if tail else len(text)
    return [text[:start], fold(f"{end - start:,} more characters", text[start:end]), text[end:]]


def fold(summary: str, *content: str) -> Element:
    """Make a fold, which opens by a click on its summary."""
    head = element("summary", summary)
    return element("details", head, *content, class_="demur-fold")


def quotation(text: str, *where: str | None) -> Element:
    """Quote a text, with a fold in it if it is long; `where` says where it stands."""
    quoted = element("span", "“", *folded(text, tail=True), "”", dir="auto")
    return element("blockquote", quoted, *where, class_="demur-quote")


def shortened(text: str, longest: int = 300) -> str:
    """Shorten a text to its beginning and its end."""
    if len(text) <= longest:
        return text
    half = longest // 2
    return f"{text[:half].rstrip()} […] {text[-half:].lstrip()}"


def _after_word(text: str, at: int) -> int:
    """Return the first offset from `at` on that follows white space, or `at` if none is near."""
    for place in range(at, at + _KEPT // 2):
        if text[place].isspace():
            return place + 1
    return at


def _before_word(text: str, at: int) -> int:
    """Return the last offset up to `at` that has white space, or `at` if none is near."""
    for place in range(at, at - _KEPT // 2, -1):
        if text[place].isspace():
            return place
    return at
