"""Tell files from databases on servers, by the path or URL of a log.

Messages about them hold no credentials.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote

from demur.errors import DemurError

_URL = re.compile(r"\s*([A-Za-z][A-Za-z0-9+.-]*)://")
_MANGLED = re.compile(r"postgres(?:ql)?(?:\+psycopg)?:/")
_POSTGRES = ("postgresql", "postgres", "postgresql+psycopg")


def is_server(where: str | Path) -> bool:
    """Return whether `where` is the URL of a PostgreSQL database.

    Raises:
        URLError: It is a URL with another scheme, or a URL that was made a `Path`.
    """
    if not isinstance(where, str):
        if _MANGLED.match(str(where)):
            raise URLError("give the URL of a database as a str: a Path drops one of its slashes")
        return False
    if (url := _URL.match(where)) is None:
        return False
    if url[1].lower() not in _POSTGRES:
        # The message leaves out the rest of the URL, which may hold a password.
        raise URLError(
            f"{url[1]}://... is not a log that demur can use: expected a file, or "
            "postgresql://user@host/database"
        )
    return True


def database_of(where: str | Path) -> str | None:
    """Return the name of a database on a server, or None for a file.

    Raises:
        URLError: As `is_server`.
    """
    if not is_server(where):
        return None
    return unquote(str(where).partition("?")[0].rpartition("/")[2])


@contextmanager
def writing_to(path: Path) -> Iterator[None]:
    """Raise a `DemurError` if `path` is no file, or if the block cannot make or open it."""
    if path.exists() and not path.is_file():
        raise DemurError(f"cannot write {path}: it is not a regular file. Give another path")
    try:
        yield
    except OSError as error:
        raise DemurError(
            f"cannot write {path}: {error.strerror or error}. Expected a file that this "
            "process may write, in a folder that exists"
        ) from error


class URLError(DemurError, ValueError):
    """Report that a URL is not that of a log. It may hold a password, so it is not quoted."""


class SinkError(DemurError):
    """Report that a log cannot be used. The message quotes no record and no credentials."""
