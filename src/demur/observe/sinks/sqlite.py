"""SQLiteSink: records in tables, written by any number of threads and processes."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import stat
import threading
import time
import weakref
from collections.abc import Iterator
from pathlib import Path

from demur import _owner_only as private
from demur._forks import leave
from demur.errors import DemurError
from demur.observe.records import Record
from demur.observe.sinks.base import Sink
from demur.observe.sinks.locking import locked
from demur.observe.tables import APPLICATION, TABLES, VERSION, put

_BUSY_SECONDS = 5.0
_OPEN_SECONDS = 10.0
_MISSING = (0, 0)
"""What tells one file from others, of none."""


class SQLiteSink(Sink):
    """Writes records to a database of SQLite in WAL mode. `demur log FILE` reads it.

    Threads and processes, forked ones too, may write to the same file, on one machine and a local
    disk; whoever finds it locked waits for up to five seconds. A record that comes again, with the
    same id, takes the place of the first. A file that is renamed or deleted is begun anew by the
    next write; one that is to be moved wants its "-wal" along, or all its writers closed.

    A record that was written outlives the process, also `kill -9`. A power cut, or a crash of the
    system, loses what came since SQLite's last checkpoint, which is made after a thousand pages
    and by `close`; the tables stay whole (`synchronous=normal`).

    A file that is made can be read by its owner only (mode 0600).

    Args:
        path: The file. It is opened and made at once, so that what stands against it is known at
            once.

    Raises:
        ValueError: The file holds something else: no database, another program's, or tables of a
            later version of demur. It is left as it was.
        DemurError: The file cannot be made, opened or written.
    """

    def __init__(self, path: str | Path) -> None:
        # The process may go to another folder.
        self.path = Path(path).absolute()
        """The file."""
        self._lock = threading.RLock()
        self._database: sqlite3.Connection | None = None
        self._owner, self._file = 0, _MISSING
        if not self.path.parent.is_dir():
            raise DemurError(f"cannot write {self.path}: there is no folder {self.path.parent}")
        try:
            if self.path.exists() and not stat.S_ISREG(self.path.stat().st_mode):
                raise ValueError(f"{self.path} is no ordinary file: expected a database of SQLite")
            _create(self.path)
            # Closed again: servers fork when all is set up, and no connection outlives that.
            _open(self.path).close()
        except OSError as error:
            raise DemurError(f"cannot write {self.path}: {error.strerror or error}") from error
        except sqlite3.Error as error:
            raise DemurError(
                f"cannot write {self.path}: {error}. Expected a file and a folder that this "
                "process may write to, on a local disk"
            ) from error
        _sinks.add(self)

    def __repr__(self) -> str:
        return f"SQLiteSink({str(self.path)!r})"

    def write(self, record: Record) -> None:
        """Keep a record, in the place of one with the same id.

        Raises:
            sqlite3.Error: It could not be written; the tables are as they were.
            ValueError, OSError: The file was replaced by another, that holds something else.
        """
        until = time.monotonic() + _OPEN_SECONDS
        with self._lock:
            while True:
                try:
                    database = self._connection()
                    with _transaction(database):
                        put(database, record)
                    return
                except BaseException as error:
                    # The next try has a connection that no error has touched.
                    moved = _moved(error, self.path, self._file)
                    self._leave() if moved else self._close()
                    if not moved or time.monotonic() > until:
                        raise

    def close(self) -> None:
        """Write all to the file itself (a checkpoint), and let go of it."""
        with self._lock:
            self._close()

    def _connection(self) -> sqlite3.Connection:
        if self._database is not None:
            if self._owner != os.getpid():
                self._forget()
            elif self._file != _identity(self.path):
                self._leave()
        if self._database is None:
            _create(self.path)
            # Before it is opened: if it is replaced in between, the next write sees that.
            self._owner, self._file = os.getpid(), _identity(self.path)
            self._database = _open(self.path)
        return self._database

    def _close(self) -> None:
        if self._database is not None and self._owner == os.getpid():
            self._database.close()
            self._database = None

    def _leave(self) -> None:
        """Let go of a file that was moved: closing alone would not bring what it lacks into it."""
        if self._database is not None:
            with contextlib.suppress(sqlite3.Error):
                self._database.execute("pragma wal_checkpoint(full)")
        self._close()

    def _forget(self) -> None:
        """Never touch a parent process's connection again, nor have it closed at the end.

        It would take this process's locks for its own, and might write back what is outdated.
        """
        leave(self._database)
        self._database = None


# --- Forks --------------------------------------------------------------------------------------

_sinks: weakref.WeakSet[SQLiteSink] = weakref.WeakSet()
_held: list[SQLiteSink] = []


def _before_fork() -> None:
    """Have no connection, and nobody who makes one.

    SQLite keeps notes of its locks that a child would inherit without the locks, so that even a
    connection of the child's own would not be safe.
    """
    for sink in [*_sinks]:
        sink._lock.acquire()
        _held.append(sink)
        with contextlib.suppress(sqlite3.Error):
            sink._close()


def _after_fork() -> None:
    while _held:
        _held.pop()._lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork
    )


# --- Opening ------------------------------------------------------------------------------------


def _open(path: Path) -> sqlite3.Connection:
    """A connection to a file that is there, with our tables in it.

    Raises:
        ValueError: It holds something else.
        sqlite3.Error, DemurError: It cannot be used.
    """
    until = time.monotonic() + _OPEN_SECONDS
    while True:
        file = _identity(path)
        database = None
        try:
            database = sqlite3.connect(
                f"{path.as_uri()}?mode=rw",
                uri=True,
                timeout=_BUSY_SECONDS,
                isolation_level=None,
                check_same_thread=False,
            )
            _set_up(database, path)
            return database
        except BaseException as error:
            if database is not None:
                database.close()
            # Several that open a new file at once are told so without any waiting.
            locked_out = isinstance(error, sqlite3.OperationalError) and "locked" in str(error)
            if not (locked_out or _moved(error, path, file)) or time.monotonic() > until:
                raise
        time.sleep(0.02)
        _create(path)


def _moved(error: BaseException, path: Path, file: tuple[int, int]) -> bool:
    """Whether an error is of a file that was moved away meanwhile: SQLite has many for that."""
    moved = file == _MISSING or _identity(path) != file
    return moved and isinstance(error, sqlite3.OperationalError)


def _set_up(database: sqlite3.Connection, path: Path) -> None:
    with _transaction(database, "begin"):
        _is_new(database, path)  # before anything is changed
    mode = database.execute("pragma journal_mode = wal").fetchone()[0]
    if mode != "wal":
        raise DemurError(
            f"cannot write {path}: SQLite has no WAL mode there (it chose {mode!r}). Expected a "
            "file on a local disk"
        )
    database.execute("pragma synchronous = normal")
    with _transaction(database):
        if _is_new(database, path):
            for statement in TABLES.split(";"):
                database.execute(statement)
            database.execute(f"pragma application_id = {APPLICATION}")
            database.execute(f"pragma user_version = {VERSION}")


def _is_new(database: sqlite3.Connection, path: Path) -> bool:
    """Whether a database is empty; otherwise it is ours. Within a transaction."""
    try:
        application, version = (
            database.execute(f"pragma {name}").fetchone()[0]
            for name in ("application_id", "user_version")
        )
        tables = [name for (name,) in database.execute("select name from sqlite_master limit 3")]
    except sqlite3.DatabaseError as error:
        if isinstance(error, sqlite3.OperationalError):  # the disk, or a lock
            raise
        raise ValueError(
            f"{path} holds no database of SQLite, or a damaged one ({error}): give another file, "
            "or move this one away"
        ) from error
    if (application, version) == (APPLICATION, VERSION):
        return False
    if not (application or version or tables):
        return True
    if application == APPLICATION:
        raise ValueError(
            f"{path} was written by another version of demur (its tables are of version {version}, "
            f"expected {VERSION}): update demur, or give another file"
        )
    raise ValueError(
        f"{path} is a database of another program (it has {', '.join(tables) or 'no tables'}): "
        "give another file"
    )


@contextlib.contextmanager
def _transaction(database: sqlite3.Connection, begin: str = "begin immediate") -> Iterator[None]:
    database.execute(begin)
    try:
        yield
        database.execute("commit")
    except BaseException:
        with contextlib.suppress(sqlite3.Error):
            database.execute("rollback")
        raise


def _create(path: Path) -> None:
    """Make an empty file where there is none."""
    if path.exists():
        return
    with _only_one(path.parent):
        if path.exists():
            return
        # Left by one that was moved. Whoever still has them open keeps them, without the names.
        for ending in ("-wal", "-shm", "-journal"):
            path.with_name(path.name + ending).unlink(missing_ok=True)
        # SQLite gives its other files the same mode.
        os.close(private.opened(str(path), os.O_CREAT | os.O_EXCL | os.O_RDWR))


@contextlib.contextmanager
def _only_one(folder: Path) -> Iterator[None]:
    """Lock a folder, where folders can be opened.

    When a file is there, the names beside it may be in use and must not be taken away.
    """
    if os.name == "nt":  # where a file in use cannot be moved either
        yield
        return
    file = os.open(folder, os.O_RDONLY)
    try:
        with locked(file):
            yield
    finally:
        os.close(file)


def _identity(path: Path) -> tuple[int, int]:
    try:
        status = path.stat()
    except FileNotFoundError:
        return _MISSING
    return status.st_dev, status.st_ino
