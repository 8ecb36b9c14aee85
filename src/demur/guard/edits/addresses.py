"""Decide which addresses may stand in a link, and which must not."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath
from urllib.parse import quote, urlsplit

from langchain_core.documents import Document

from demur._text import one_line

_KEYS = ("url", "source", "link")
_TITLES = ("title", "source", "file_name", "tool")
_SAFE = "%/:?#@!$&'*+,;=~-._"
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]+:", re.IGNORECASE)
_HARMLESS = ("http:", "https:", "mailto:", "tel:", "ftp:")
_RUNS = re.compile(r"(?:java|vb|live)script:|data:[\w+.-]*[/;,]", re.IGNORECASE)
_BLANK = re.compile(r"[\x00-\x20\x7f-\xa0\xad\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]+")
_USER = re.compile(r"(?<=://)[^\s/?#]*@")
_HOST = re.compile(r"[\w.-]+(?::\d{1,5})?")
# Only the beginning of each address is consumed, and the address itself is a lookahead: text that
# looks like an attribute can hold a link. No address runs on over the beginning of the next one,
# or a row of addresses would take quadratic time.
_DESTINATION = re.compile(
    r"\]\([\s>]*(?=<(?P<angled>[^<>\n]*)"
    r"|(?P<link>[^\s()<>]*(?:\([^\s()]*\))?[^\s()<>]*))"
    r"|\]:[\s>]*(?=<?(?P<defined>[^\s<>\]]+))"
    r"|<(?=(?P<auto>[a-zA-Z][a-zA-Z0-9+.-]{1,31}:[^\s<>]*)>)"
    r"|\b(?i:href|src|action|formaction|data)\s*=\s*(?=\"(?P<double>[^\"]*)|'(?P<single>[^']*)"
    r"|(?P<bare>[^\s\"'>=]+))"
)
_TITLE = re.compile(r">?[ \t]*(?:$|[\"'(])", re.MULTILINE)
"""The text that may follow the address of a definition. "[note]: Beware: of the dog" is not one."""


def address_of(document: Document) -> str | None:
    """Return the address of a document for a link: the `url`, `source` or `link` of its metadata.

    Only http and https addresses count, and none with a user's name or password. Characters that
    could end a link are percent-encoded. The result is None if there is no such address.
    """
    for _, value in _under(_KEYS, document):
        if address := _web(value.strip()):
            return address
    return None


def title_of(document: Document, number: int) -> str:
    """Return the name of a document on one line: its title or source, or else its number."""
    for key, value in _under(_TITLES, document):
        if title := without_user(one_line(value)):
            is_path = key in ("source", "file_name") and "/" in title and "://" not in title
            title = PurePosixPath(title).name if is_path else title
            if any(sign.isprintable() and not sign.isspace() for sign in title):
                return title
    return f"document {number}"


def _under(keys: Sequence[str], document: Document) -> Iterator[tuple[str, str]]:
    """Yield the texts under these keys of a document's metadata, ignoring the case of its keys.

    Loaders of web pages write "URL", for example.
    """
    plain = {str(key).lower(): value for key, value in reversed(document.metadata.items())}
    for key in keys:
        if isinstance(value := document.metadata.get(key, plain.get(key)), str):
            yield key, value


def without_user(text: str) -> str:
    """Return a text without user names and passwords in its addresses: "https://me:secret@host"."""
    return _USER.sub("", text)


def runs(value: str) -> bool:
    """Return whether a text is an address that runs code, such as "javascript:..."."""
    return _RUNS.match(_decoded(value)) is not None


def unsafe_addresses(text: str) -> Iterator[tuple[int, int]]:
    """Yield the places of addresses that may run code, in a text read as Markdown or HTML.

    These are all addresses with a scheme other than http, https, mailto, tel and ftp.
    """
    for match in _DESTINATION.finditer(text):
        name = next(name for name, value in match.groupdict().items() if value is not None)
        address = _decoded(match[name])
        scheme = _SCHEME.match(address)
        if scheme is None or scheme[0].lower() in _HARMLESS:
            continue
        if name != "defined" or _TITLE.match(text, match.end(name)) or _RUNS.match(address):
            yield match.span(name)


def _decoded(address: str) -> str:
    """Return an address as a browser may decode it: without escapes, entities and blanks."""
    return _BLANK.sub("", html.unescape(address.replace("\\", "")))


def _web(value: str) -> str | None:
    if any(ord(sign) < 0x21 or ord(sign) == 0x7F for sign in value):
        return None
    try:
        parts = urlsplit(value)
        if parts.scheme.lower() not in ("http", "https") or not parts.hostname:
            return None
        # A host must not need decoding: "a.example&commat;b.example" would lead to b.example.
        if not _HOST.fullmatch(parts.netloc):
            return None
        return quote(value, safe=_SAFE)
    except ValueError:
        return None
