"""Long texts: whole, with what nobody asks for at once folded."""

from __future__ import annotations

from demur.views.elements import Element, element

_LONGEST = 600
"""Characters up to which a text is never folded."""
_KEPT = 240
"""Characters that are shown beside a fold."""


def folded(text: str, *, head: bool = True, tail: bool = False) -> list[str]:
    """The text and, where it is long, a fold in it, to open by a click.

    Args:
        text: What to show.
        head: Show how it begins.
        tail: Show how it ends.
    """
    if len(text) <= _LONGEST:
        return [text]
    start = _after_word(text, _KEPT) if head else 0
    end = _before_word(text, len(text) - _KEPT) if tail else len(text)
    return [text[:start], fold(f"{end - start:,} more characters", text[start:end]), text[end:]]


def fold(summary: str, *content: str) -> Element:
    """Something to open by a click."""
    head = element("summary", summary)
    return element("details", head, *content, class_="demur-fold")


def shortened(text: str, longest: int = 300) -> str:
    """For a tooltip: its begin and end."""
    if len(text) <= longest:
        return text
    half = longest // 2
    return f"{text[:half].rstrip()} […] {text[-half:].lstrip()}"


def _after_word(text: str, at: int) -> int:
    """The first place after white space from `at` on, unless it is far away."""
    for place in range(at, at + _KEPT // 2):
        if text[place].isspace():
            return place + 1
    return at


def _before_word(text: str, at: int) -> int:
    """The last place before white space down from `at`, unless it is far away."""
    for place in range(at, at - _KEPT // 2, -1):
        if text[place].isspace():
            return place
    return at
