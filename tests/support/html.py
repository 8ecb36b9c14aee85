"""Read demur's HTML as a browser would, and refuse elements that are not closed in order."""

from __future__ import annotations

import re
from collections.abc import Set
from html.parser import HTMLParser

ATTACKS = (
    "<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "' onmouseover='alert(1)",
    "</style><svg onload=alert(1)>", "</details></div></section></article>", "&",
    "</cite></a></li></ol>", "javascript:alert(1)", "<!-- ", "-->", "<![CDATA[", "&lt;b&gt;",
    "&#0;", "<", "{0}", "%s",
    "\x00", "\x1b]0;x\x07", "\u202e", "\u2066", "\ud800", "\udfff", "\u2028", "\r\n", "\x85",
    "\ufffe", "سلام. ", "A word. ",
)  # fmt: skip
"""Pieces of hostile texts."""


class Page(HTMLParser):
    """Parse elements with their attributes and text; a link leads to an element."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[dict[str, str]] = []
        self._open: list[dict[str, str]] = []
        # A plain string is needed, because markup escapes what it is compared with.
        self.feed(str(html))
        self.close()
        assert not self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        one = {"tag": tag, "text": "", "unmarked": "", **{key: value or "" for key, value in attrs}}
        self.elements.append(one)
        self._open.append(one)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop()["tag"] == tag

    def handle_data(self, data: str) -> None:
        in_mark = any(one["tag"] == "sup" for one in self._open)
        for one in self._open:
            one["text"] += data
            one["unmarked"] += "" if in_mark else data

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data!r}")

    def all(self, what: str) -> list[dict[str, str]]:
        """Return the elements with this tag, class or role."""
        return [
            one
            for one in self.elements
            if what in (one["tag"], one.get("role"), *one.get("class", "").split())
        ]

    def texts(self, what: str) -> list[str]:
        return [one["text"] for one in self.all(what)]

    def one(self, what: str) -> dict[str, str]:
        (only,) = self.all(what)
        return only

    def behind(self, link: dict[str, str]) -> dict[str, str]:
        """Return the element that a link leads to."""
        (only,) = [one for one in self.elements if f"#{one.get('id')}" == link["href"]]
        return only

    @property
    def ids(self) -> list[str]:
        return [one["id"] for one in self.elements if "id" in one]


def page_of_own(html: str, elements: Set[str], attributes: Set[str]) -> Page:
    """Parse HTML that has these elements and attributes only, and no text that could do harm."""
    html.encode()  # The HTML has no surrogates.
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]", html)
    page = Page(html)
    assert {one["tag"] for one in page.elements} <= elements
    assert {key for one in page.elements for key in one} - {"tag", "text", "unmarked"} <= attributes
    assert len(page.ids) == len(set(page.ids))
    return page
