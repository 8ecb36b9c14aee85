"""Know the words in the names of tools that only read."""

from __future__ import annotations

import re

SEEKING = ("check", "fetch", "find", "get", "list", "look", "query", "read", "search")
"""The verbs of tools that did their work if they found nothing; also inside of longer words."""
READING = frozenset(
    [
        *SEEKING,
        *("browse", "calculate", "compute", "count", "describe", "grep", "inspect", "lookup", "ls"),
        *("retrieve", "scrape", "select", "show", "view"),
    ]
)
"""The verbs of tools that change nothing."""
_NAMESPACE = re.compile(r"\A.*(?:[./:]|__)")
_NAME_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


def words_of(tool: str) -> list[str]:
    """Return the words in the name of a tool, in small letters."""
    return [word.lower() for word in _NAME_PARTS.findall(tool)]


def only_reads(tool: str) -> bool:
    """Return whether a tool's name begins with reading: "search_flights", "orders.lookup"."""
    return not READING.isdisjoint(words_of(_NAMESPACE.sub("", tool))[:1])
