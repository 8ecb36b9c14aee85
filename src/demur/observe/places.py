"""Where a log is: a file, or a database on a server. The words for it hold no credential."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote

from demur.errors import DemurError

_URL = re.compile(r"\s*([A-Za-z][A-Za-z0-9+.-]*)://")
_MANGLED = re.compile(r"postgres(?:ql)?(?:\+psycopg)?:/")
_POSTGRES = ("postgresql", "postgres", "postgresql+psycopg")


def is_server(where: str | Path) -> bool:
    """Whether this is the URL of a database on a server.

    Raises:
        URLError: It is a URL of something else.
    """
    if not isinstance(where, str):
        if _MANGLED.match(str(where)):
            raise URLError(
                "give the URL of a database as a text: a path leaves out one of its slashes"
            )
        return False
    if (url := _URL.match(where)) is None:
        return False
    if url[1].lower() not in _POSTGRES:
        # Without the rest of it, which may hold a password.
        raise URLError(
            f"{url[1]}://... is no log that demur knows: expected a file, or "
            "postgresql://user@host/database"
        )
    return True


def database_of(where: str | Path) -> str | None:
    """The name of a database on a server; None of a file.

    Raises:
        URLError: It is the URL of something else.
    """
    if not is_server(where):
        return None
    return unquote(str(where).partition("?")[0].rpartition("/")[2])


class URLError(DemurError, ValueError):
    """A URL is none of a log. What this says does not quote it, since it may hold a password."""


class SinkError(DemurError):
    """A log does not take a record. Its words hold no text of a record, and no credential."""
