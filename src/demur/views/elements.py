"""HTML elements: the one place where text becomes HTML."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from itertools import chain

from markupsafe import Markup, escape

from demur._text import harmless


class Element(Markup):
    """HTML that was made here.

    `Markup` alone would not do: a text of somebody else's can be one, and would not be escaped.
    """

    __slots__ = ()


def element(name: str, /, *content: str | None, **attributes: str | None) -> Element:
    """Make one element.

    Args:
        name: Of the element; ours, as are the attributes' names.
        content: Elements and texts in order; None is left out. Whatever is no `Element` is text: it
            is escaped, and its control characters are made visible.
        attributes: Escaped likewise; None is left out. `class_` is `class`, `data_claim` is
            `data-claim`.
    """
    opened = chain.from_iterable(
        (" ", key.rstrip("_").replace("_", "-"), '="', _shown(value), '"')
        for key, value in attributes.items()
        if value is not None
    )
    return Element("".join(("<", name, *opened, ">", joined(*content), "</", name, ">")))


def joined(*content: str | None) -> Element:
    """Elements and texts one after the other."""
    return Element("".join(_shown(part) for part in content if part is not None))


def separated(content: Iterable[str | None], by: str) -> Element:
    """Elements and texts with a text between them; None and empty ones are left out."""
    parts = [part for part in content if part]
    return joined(
        *chain.from_iterable((by, part) if at else (part,) for at, part in enumerate(parts))
    )


def _shown(text: str) -> str:
    if isinstance(text, Element):
        return str.__str__(text)
    # A plain string, whatever class of string it was.
    return str.__str__(escape(harmless(str.__str__(text))))


def prefix_of(parts: Iterable[str | None]) -> str:
    """What the ids of a view begin with: another one for other content, the same in each run."""
    digest = hashlib.sha256()
    for part in parts:
        text = b"-" if part is None else b"+" + part.encode("utf-8", "surrogatepass")
        digest.update(b"%d:" % len(text) + text)
    return f"demur-{digest.hexdigest()[:12]}"
