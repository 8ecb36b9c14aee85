"""SQLiteSink: records in a database, written by any number of threads and processes."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

import tenacity

from demur import _owner_only as private
from demur.errors import DemurError
from demur.observe.records import Record
from demur.observe.sinks.base import Sink
from demur.observe.tables import APPLICATION, TABLES, VERSION, put

_BUSY_SECONDS = 10.0

# Held over a fork: SQLite keeps notes of its locks that a child would inherit without the locks.
_writing = threading.Lock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_writing.acquire,
        after_in_parent=_writing.release,
        after_in_child=_writing.release,
    )


class SQLiteSink(Sink):
    """Writes records to a database of SQLite in WAL mode. `demur log` reads it, and so can SQL.

    Each write opens the database and closes it. Threads and processes, forked ones too, may write
    to the same file, on one machine and a local disk; whoever finds it locked waits for up to ten
    seconds. A record that comes again, with the same id, takes the place of the first.

    A record that was written outlives the process, also `kill -9`. The file is to be moved while
    nobody writes to it.

    A file that is made can be read by its owner only (mode 0600).

    Args:
        path: The file. It is made at once, so that what stands against it is known at once.

    Raises:
        ValueError: The file holds something else: no database, another program's, or one of another
            version of demur. It is left as it was.
        DemurError: The file cannot be made, opened or written.
    """

    def __init__(self, path: str | Path) -> None:
        # The process may go to another folder.
        self.path = Path(path).absolute()
        """The file."""
        if self.path.exists() and not self.path.is_file():
            raise DemurError(f"cannot write {self.path}: expected a file, and it is none")
        try:
            with _opened(self.path):
                pass
        except OSError as error:
            raise DemurError(
                f"cannot write {self.path}: {error.strerror or error}. Expected a file that this "
                "process may write, in a folder that exists"
            ) from error
        except sqlite3.Error as error:
            raise DemurError(
                f"cannot write {self.path}: {error}. Expected a file and a folder that this "
                "process may write to, on a local disk"
            ) from error

    def __repr__(self) -> str:
        return f"SQLiteSink({str(self.path)!r})"

    def write(self, record: Record) -> None:
        """Keep a record, in the place of one with the same id.

        Raises:
            sqlite3.Error: It could not be written; the database is as it was.
            ValueError, OSError: The file was replaced by another, that holds something else.
        """
        with _opened(self.path) as database:
            database.execute("begin immediate")
            put(database, record)
            database.execute("commit")


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection with our table in it."""
    with _writing, contextlib.closing(_connected(path)) as database:
        yield database


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
                f"begin immediate; {TABLES} pragma application_id = {APPLICATION}; "
                f"pragma user_version = {VERSION}; commit;"
            )
        database.execute("pragma synchronous = normal")
    except BaseException:
        database.close()
        raise
    return database


def _is_new(database: sqlite3.Connection, path: Path) -> bool:
    """Whether a database is empty; otherwise it is ours."""
    try:
        database.execute("begin")  # another process may set it up in this moment
        application, version, schema = (
            database.execute(f"pragma {name}").fetchone()[0]
            for name in ("application_id", "user_version", "schema_version")
        )
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
            f"{path} was written by another version of demur (its table is of version {version}, "
            f"expected {VERSION}): give another file"
        )
    if application or version or schema:
        raise ValueError(f"{path} is a database of another program: give another file")
    return True
