"""The style sheet of the views."""

from __future__ import annotations

from functools import cache
from importlib import resources

from demur.views.elements import Element, element, joined


@cache
def stylesheet() -> str:
    """The CSS of every view: all of it under the class `demur`, so that it styles nothing else.

    A page needs it once. The class `demur-colors` alone sets the colours, as custom properties.
    """
    return resources.files("demur.views").joinpath("style.css").read_text(encoding="utf-8")


def styled(view: Element) -> Element:
    """A view with the style sheet in front of it, for a page that knows nothing of demur."""
    # Ours, and without "</": an element of style has no escapes.
    return joined(element("style", Element(stylesheet())), view)
