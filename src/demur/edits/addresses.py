"""Addresses that may stand in a link, and what may not."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import quote, urlsplit

from langchain_core.documents import Document

from demur._text import one_line

_KEYS = ("url", "source", "link")
_TITLES = ("title", "source", "file_name", "tool")
_SAFE = "%/:?#@!$&'*+,;=~-._"
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]+:", re.IGNORECASE)
_HARMLESS = ("http:", "https:", "mailto:", "tel:", "ftp:")
_RUNS = re.compile(r"(?:java|vb|live)script:|data:[\w+.-]*[/;,]", re.IGNORECASE)
_BLANK = re.compile(r"[\x00-\x20\x7f-\xa0\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]+")
_DESTINATION = re.compile(
    r"\]\(\s*<?(?P<link>[^\s()<>]*(?:\([^\s()]*\))?[^\s()<>]*)"
    r"|^[ \t]{0,3}\[[^\]\n]{1,100}\]:\s*<?(?P<defined>\S+)"
    r"|<(?P<auto>[a-zA-Z][a-zA-Z0-9+.-]{1,31}:[^\s<>]*)>"
    r"|(?i:\b(?:href|src|action|formaction|data))\s*=\s*(?:\"(?P<double>[^\"]*)|'(?P<single>[^']*)"
    r"|(?P<bare>[^\s\"'>]+))",
    re.MULTILINE,
)


def address_of(document: Document) -> str | None:
    """The address of a document, for a link: the `url`, `source` or `link` of its metadata.

    It is one of the web, http or https, and without a user's name or password. Signs that could
    end a link are percent-encoded.
    """
    for key in _KEYS:
        value = document.metadata.get(key)
        if isinstance(value, str) and (address := _web(value.strip())):
            return address
    return None


def title_of(document: Document, number: int) -> str:
    """What a document is called, on one line: its title or source, or its number."""
    for key in _TITLES:
        value = document.metadata.get(key)
        if isinstance(value, str) and (title := one_line(value)):
            is_path = key in ("source", "file_name") and "/" in title and "://" not in title
            return PurePosixPath(title).name if is_path else title
    return f"document {number}"


def without_scripts(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Metadata without the texts that are addresses which run something: "javascript:..."."""
    return {
        key: value
        for key, value in metadata.items()
        if not (isinstance(value, str) and _RUNS.match(_BLANK.sub("", value)))
    }


def unsafe_addresses(text: str) -> Iterator[tuple[int, int]]:
    """Where in a text, read as Markdown or HTML, addresses stand that may run something.

    Those are all with a scheme other than http, https, mailto, tel and ftp.
    """
    for match in _DESTINATION.finditer(text):
        name = match.lastgroup
        if name is not None:
            scheme = _SCHEME.match(_BLANK.sub("", html.unescape(match[name])))
            if scheme is not None and scheme[0].lower() not in _HARMLESS:
                yield match.span(name)


def _web(value: str) -> str | None:
    if any(ord(sign) < 0x21 or ord(sign) == 0x7F for sign in value):
        return None
    try:
        parts = urlsplit(value)
        if parts.scheme.lower() not in ("http", "https") or not parts.hostname:
            return None
        if parts.username is not None or parts.password is not None:
            return None
    except ValueError:
        return None
    return quote(value, safe=_SAFE)
