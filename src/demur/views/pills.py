"""Show a look in HTML: as a sign, or as a sign with a word."""

from __future__ import annotations

from demur.views.elements import Element, element, joined
from demur.views.words import Look


def sign(look: Look) -> Element:
    """Show the sign of a look, which screen readers leave out: a word says the same."""
    return element("span", look.sign, class_="demur-sign", aria_hidden="true")


def pill(look: Look, word: str | None = None, title: str | None = None) -> Element:
    """Show a look as its sign and a word.

    Args:
        look: The look.
        word: The word; None for the look's own.
        title: The tooltip.
    """
    shown = joined(sign(look), " ", look.word if word is None else word)
    return element("span", shown, class_=f"demur-label {look.css}", title=title)
