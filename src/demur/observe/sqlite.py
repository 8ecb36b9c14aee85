"""Write a log to a SQLite file, from any number of threads and processes."""

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

from demur._system import owner_only
from demur.errors import DemurError
from demur.observe.places import SinkError, writing_to
from demur.observe.tables import VERSION, statements

APPLICATION = 0x64656D75
"""The value of `pragma application_id` that marks demur's databases: "demu"."""
TABLES = "; ".join(statements(dialects.dialect()))
"""The statements that make the tables."""

_BUSY_SECONDS = 10.0

# Held during a fork: a child would inherit SQLite's notes of its locks, but not the locks.
_writing = threading.Lock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_writing.acquire,
        after_in_parent=_writing.release,
        after_in_child=_writing.release,
    )


class File:
    """Write to a database in a file, which is open only during a transaction.

    Raises:
        ValueError: The file is not a log of this version of demur. It is left unchanged.
        DemurError: The file cannot be made, opened or written.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._engine = engine_on(partial(_connected, path), "begin immediate")
        try:
            with writing_to(path), _writing, self._engine.connect():
                pass
        except SQLAlchemyError as error:
            raise DemurError(
                f"cannot write {path}: {_said(error)}. Expected a file and a folder that this "
                "process may write to, on a local disk"
            ) from None

    @contextlib.contextmanager
    def transaction(self) -> Iterator[Connection]:
        """Yield a connection; commit its work at the end, or roll it back after an error.

        Raises:
            SinkError: The database reports an error, or is locked.
            ValueError: The file was replaced by a file that is not a log.
            OSError: The file was removed and cannot be made again.
        """
        try:
            with _writing, self._engine.begin() as connection:
                yield connection
        except SQLAlchemyError as error:
            raise SinkError(f"cannot write {self._path}: {_said(error)}") from None

    def close(self) -> None:
        """Do nothing: no connection stays open."""


def engine_on(connect: Callable[[], sqlite3.Connection], begin: str) -> Engine:
    """Return an SQLAlchemy engine for connections that do not begin transactions by themselves.

    Args:
        connect: A function that opens a connection with `isolation_level=None`.
        begin: The statement that begins a transaction.
    """
    engine = create_engine("sqlite://", creator=connect, poolclass=NullPool, hide_parameters=True)
    event.listen(engine, "begin", lambda connection: connection.exec_driver_sql(begin))
    return engine


def _said(error: SQLAlchemyError) -> str:
    """Return SQLite's message, which quotes no value."""
    return str(getattr(error, "orig", None) or type(error).__name__)


# SQLite does not wait for a lock while several processes change the file's journal mode.
@tenacity.retry(
    retry=tenacity.retry_if_exception_message("database is locked"),
    wait=tenacity.wait_fixed(0.02),
    stop=tenacity.stop_after_delay(_BUSY_SECONDS),
    reraise=True,
)
def _connected(path: Path) -> sqlite3.Connection:
    # Only SQLite may open an existing file: closing another handle would release the locks of a
    # reader in this process. SQLite gives its other files the mode of this one.
    with contextlib.suppress(FileExistsError):
        os.close(owner_only(str(path), os.O_CREAT | os.O_EXCL | os.O_RDWR))
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
    """Return the application id, the tables' version and SQLite's schema version of a database.

    Each is 0 if it was never set. An empty database has three zeros.
    """
    application, version, schema = (
        database.execute(f"pragma {name}").fetchone()[0]
        for name in ("application_id", "user_version", "schema_version")
    )
    return application, version, schema


def _is_new(database: sqlite3.Connection, path: Path) -> bool:
    """Return whether a database is empty; raise if it is neither empty nor demur's."""
    try:
        database.execute("begin")  # another process may be making the tables right now
        application, version, schema = kind_of(database)
        database.execute("commit")
    except sqlite3.DatabaseError as error:
        if isinstance(error, sqlite3.OperationalError):  # a problem of the disk or of a lock
            raise
        raise ValueError(
            f"{path} is not a SQLite database, or is damaged ({error}): give another file, or "
            "move this one away"
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
