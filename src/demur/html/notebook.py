"""What a notebook is given: the style sheet, and then the view."""

from __future__ import annotations

from functools import cache
from importlib import resources

from demur.html.elements import Element, element, joined


@cache
def stylesheet() -> str:
    """The CSS of every view: all of it under the class `demur`, so that it styles nothing else.

    A page needs it once. The class `demur-colors` alone sets the colours, as custom properties.
    """
    return resources.files("demur.html").joinpath("style.css").read_text(encoding="utf-8")


def in_notebook(view: Element) -> str:
    """A view that stands by itself."""
    # Ours, and without "</": an element of style has no escapes.
    style = element("style", Element(stylesheet()))
    return str.__str__(joined(style, view))
