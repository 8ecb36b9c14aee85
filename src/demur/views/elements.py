"""Make HTML elements; text becomes HTML nowhere else."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from itertools import chain

from markupsafe import Markup, escape

from demur._text import harmless


class Element(Markup):
    """Mark HTML that this module made.

    `Markup` alone is not enough: a text from elsewhere may be a `Markup`, and would not be escaped.
    """

    __slots__ = ()


def element(name: str, /, *content: str | None, **attributes: str | None) -> Element:
    """Make one element.

    Args:
        name: The name of the element. It is not escaped, so it must be a constant, as must the
            names of attributes.
        content: Elements and texts in order; None is left out. A value that is not an `Element` is
            a text: it is escaped, and its control characters are made visible.
        attributes: The attributes, whose values are escaped in the same way; None is left out.
            `class_` stands for `class`, and `data_claim` for `data-claim`.
    """
    opened = chain.from_iterable(
        (" ", key.rstrip("_").replace("_", "-"), '="', _shown(value), '"')
        for key, value in attributes.items()
        if value is not None
    )
    return Element("".join(("<", name, *opened, ">", joined(*content), "</", name, ">")))


def joined(*content: str | None) -> Element:
    """Join elements and texts."""
    return Element("".join(_shown(part) for part in content if part is not None))


def separated(content: Iterable[str | None], by: str) -> Element:
    """Join elements and texts with a text between them; None and empty parts are left out."""
    parts = [part for part in content if part]
    return joined(
        *chain.from_iterable((by, part) if at else (part,) for at, part in enumerate(parts))
    )


def _shown(text: str) -> str:
    if isinstance(text, Element):
        return str.__str__(text)
    # A plain str: a subclass may have methods of its own.
    return str.__str__(escape(harmless(str.__str__(text))))


def prefix_of(parts: Iterable[str | None]) -> str:
    """Return a prefix for the ids of a view: the same for the same content, else another one."""
    digest = hashlib.sha256()
    for part in parts:
        text = b"-" if part is None else b"+" + part.encode("utf-8", "surrogatepass")
        digest.update(b"%d:" % len(text) + text)
    return f"demur-{digest.hexdigest()[:12]}"
