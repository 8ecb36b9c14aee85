"""A log in a file of SQLite, to write to: by any number of threads and processes."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import tenacity
from sqlalchemy import Connection, Engine, NullPool, create_engine, event
from sqlalchemy.dialects import sqlite as dialects
from sqlalchemy.exc import SQLAlchemyError

from demur import _owner_only as private
from demur.errors import DemurError
from demur.observe.places import SinkError
from demur.observe.tables import VERSION, statements

APPLICATION = 0x64656D75
"""What tells such a database from others (`pragma application_id`): "demu"."""
TABLES = "; ".join(statements(dialects.dialect()))
"""What makes the tables."""

_BUSY_SECONDS = 10.0

# Held over a fork: SQLite keeps notes of its locks that a child would inherit without the locks.
_writing = threading.Lock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_writing.acquire,
        after_in_parent=_writing.release,
        after_in_child=_writing.release,
    )


class File:
    """A database in a file. It is open during a transaction only.

    Raises:
        ValueError: The file holds something else. It is left as it was.
        DemurError: The file cannot be made, opened or written.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._engine = engine_on(partial(_connected, path), "begin immediate")
        if path.exists() and not path.is_file():
            raise DemurError(f"cannot write {path}: expected a file, and it is none")
        try:
            with _writing, self._engine.connect():
                pass
        except OSError as error:
            raise DemurError(
                f"cannot write {path}: {error.strerror or error}. Expected a file that this "
                "process may write, in a folder that exists"
            ) from error
        except SQLAlchemyError as error:
            raise DemurError(
                f"cannot write {path}: {_said(error)}. Expected a file and a folder that this "
                "process may write to, on a local disk"
            ) from None

    @contextlib.contextmanager
    def transaction(self) -> Iterator[Connection]:
        """A connection, whose work is in the file itself at the end, or undone.

        Raises:
            SinkError: The database does not take it, or is locked.
            ValueError, OSError: The file was replaced by another, that holds something else.
        """
        try:
            with _writing, self._engine.begin() as connection:
                yield connection
        except SQLAlchemyError as error:
            raise SinkError(f"cannot write {self._path}: {_said(error)}") from None

    def close(self) -> None:
        """Do nothing: no connection stays open."""


def engine_on(connect: Callable[[], sqlite3.Connection], begin: str) -> Engine:
    """SQLAlchemy's engine over connections that do not begin transactions by themselves.

    Args:
        connect: Opens one, with `isolation_level=None`.
        begin: The statement that begins a transaction.
    """
    engine = create_engine("sqlite://", creator=connect, poolclass=NullPool, hide_parameters=True)
    event.listen(engine, "begin", lambda connection: connection.exec_driver_sql(begin))
    return engine


def _said(error: SQLAlchemyError) -> str:
    """What SQLite said, which quotes no value."""
    return str(getattr(error, "orig", None) or type(error).__name__)


# To change a file's mode SQLite does not wait for others that do the same.
@tenacity.retry(
    retry=tenacity.retry_if_exception_message("database is locked"),
    wait=tenacity.wait_fixed(0.02),
    stop=tenacity.stop_after_delay(_BUSY_SECONDS),
    reraise=True,
)
def _connected(path: Path) -> sqlite3.Connection:
    # One that is there must be opened by SQLite alone: to close it otherwise gives up the locks
    # that a reader in this process has. SQLite gives its other files the same mode.
    with contextlib.suppress(FileExistsError):
        os.close(private.opened(str(path), os.O_CREAT | os.O_EXCL | os.O_RDWR))
    database = sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None)
    try:
        if _is_new(database, path):
            database.execute("pragma journal_mode = wal")
            database.executescript(
                f"begin immediate; {TABLES}; pragma application_id = {APPLICATION}; "
                f"pragma user_version = {VERSION}; commit;"
            )
        database.execute("pragma synchronous = normal")
    except BaseException:
        database.close()
        raise
    return database


def kind_of(database: sqlite3.Connection) -> tuple[int, int, int]:
    """Whose a database is, of which version, and whether it holds anything: 0 if not."""
    application, version, schema = (
        database.execute(f"pragma {name}").fetchone()[0]
        for name in ("application_id", "user_version", "schema_version")
    )
    return application, version, schema


def _is_new(database: sqlite3.Connection, path: Path) -> bool:
    """Whether a database is empty; otherwise it is ours."""
    try:
        database.execute("begin")  # another process may set it up in this moment
        application, version, schema = kind_of(database)
        database.execute("commit")
    except sqlite3.DatabaseError as error:
        if isinstance(error, sqlite3.OperationalError):  # the disk, or a lock
            raise
        raise ValueError(
            f"{path} holds no database of SQLite, or a damaged one ({error}): give another file, "
            "or move this one away"
        ) from error
    if application == APPLICATION and version == VERSION:
        return False
    if application == APPLICATION:
        raise ValueError(
            f"{path} was written by another version of demur (its tables are of version {version}, "
            f"expected {VERSION}): give another file"
        )
    if application or version or schema:
        raise ValueError(f"{path} is a database of another program: give another file")
    return True
