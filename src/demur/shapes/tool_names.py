"""Know the words in the names of tools that only read."""

from __future__ import annotations

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
