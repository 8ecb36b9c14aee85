"""Load the style sheet of the views."""

from __future__ import annotations

from functools import cache
from importlib import resources

from demur.views.elements import Element, element, joined


@cache
def stylesheet() -> str:
    """Return the CSS of all views. Its rules apply to the class `demur` only.

    A page needs it once. The class `demur-colors` sets only the colours, as custom properties.
    """
    return resources.files("demur.views").joinpath("style.css").read_text(encoding="utf-8")


def styled(view: Element) -> Element:
    """Put the style sheet in front of a view, for a page that does not have it."""
    # The style sheet is demur's own, and has no "</": a style element cannot escape it.
    return joined(element("style", Element(stylesheet())), view)
