"""A log of runs, opened for reading: what a sink wrote, as SQLite or as lines of JSON."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from pydantic import ValidationError

from demur.observe.log import traces
from demur.observe.log.errors import LogError, reason
from demur.observe.log.reading import Damaged, read_record
from demur.observe.records import Record
from demur.observe.tables import APPLICATION, TABLES, VERSION, put

_MAGIC = b"SQLite format 3\0"
_KINDS = "expected a file of SQLite or of JSON lines that demur's sinks wrote, or saved traces"
# The second where a damaged name stands in the message of the first.
_DAMAGE = (sqlite3.DatabaseError, UnicodeDecodeError)
_ENOUGH = 100
"""Lines that are no records, before the first that is one: the file is something else."""


@dataclass
class Position:
    """How far a file of lines was read."""

    at: int = 0
    """Bytes."""
    line: int = 0
    """Whole lines."""
    torn: Damaged | None = None
    """What stands behind: a line that is being written, or whose writer was killed."""
    file: tuple[int, int] | None = None
    """Which file (see `identity`)."""


class Log:
    """The runs in a file, as tables of SQLite (see `demur.observe.tables`). For one thread.

    All that is asked of it is of one moment; it is opened again to see what was written since.
    """

    def __init__(
        self,
        path: Path,
        database: sqlite3.Connection,
        damaged: Iterable[Damaged] = (),
        position: Position | None = None,
    ) -> None:
        """Use `open_log`."""
        self.path = path
        self.damaged = [*damaged]
        """Lines that were left out, in order; a last one that is not whole is in `position`."""
        self.position = position
        """How far lines were read; None of a database."""
        self.database = database
        # `holds(text, part)`: SQLite's own `like` knows the two cases of ASCII letters only.
        database.create_function("holds", 2, _holds, deterministic=True)
        database.text_factory = _text

    def __enter__(self) -> Log:
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def rows(self, query: str, *values: Any) -> Iterator[tuple[Any, ...]]:
        """What a query gives, row by row.

        Raises:
            LogError: The database is damaged.
        """
        try:
            # `yield from` would close the cursor, also after the log was closed.
            for row in self.database.execute(query, values):  # noqa: UP028
                yield row
        except _DAMAGE as error:
            raise _unreadable(self.path, str(error)) from error

    @contextmanager
    def sound(self) -> Iterator[None]:
        """Tell of values that no sink wrote, where rows are made of a query's, as `rows` does."""
        try:
            yield
        except ValidationError as error:
            raise _unreadable(self.path, reason(error)) from error

    def close(self) -> None:
        """Let go of the file."""
        self.database.close()


def open_log(path: Path) -> Log:
    """Open a log, as it is at this moment. A file of JSON lines is read to its end for that.

    A damaged line is left out, and is among the log's `damaged`; a last one that is not whole is
    its `position.torn`. Of records with the same id the last one counts. Saved traces of guards are
    a log too, see `demur.observe.log.traces`.

    Raises:
        LogError: It cannot be read, or is no log.
    """
    try:
        if path.is_file() and not size_of(path):  # may become either
            return Log(path, in_memory(), position=Position())
        database = open_database(path)
        if database is not None:
            return database
        with path.open("rb") as file:
            return _load(path, file)
    except OSError as error:
        raise LogError(f"cannot read {path}: {error.strerror or error}") from error


def open_database(path: Path) -> Log | None:
    """Open a log that is a database, as `open_log` does; None if it is none.

    Raises:
        OSError, LogError: It cannot be read, or is another program's.
    """
    # A process that opens a database and closes it by any other way than SQLite's gives up all
    # locks that it has on it (POSIX). Then other processes take away the `-wal` that a sink in this
    # one goes on to write to. So only SQLite looks at it, unless it could not open it either.
    # A file of one byte is an empty database to it.
    if not path.is_file() or not os.access(path, os.R_OK) or size_of(path) < len(_MAGIC):
        return None
    try:
        return Log(path, _opened(path.resolve()))
    except _DAMAGE as error:
        with path.open("rb") as file:
            if file.read(len(_MAGIC)) != _MAGIC:
                return None
        raise _unreadable(path, str(error)) from error


def in_memory() -> sqlite3.Connection:
    """An empty database of the tables, which goes to the disk by itself as it grows."""
    database = sqlite3.connect("", isolation_level=None)
    database.executescript(f"pragma journal_mode = off; {TABLES}")
    return database


def identity(file: Path | int) -> tuple[int, int] | None:
    """Which file it is, whatever it is called; None if there is none."""
    try:
        status = os.stat(file)
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino


def size_of(path: Path) -> int:
    """A file's size in bytes; 0 if there is none."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def read_on(file: IO[bytes], position: Position) -> Iterator[Record | Damaged]:
    """What stands on the lines from the file's position on, blank ones left out.

    A last line without a line break counts once it is a record; until then it is `position.torn`.

    Args:
        file: Stands where `position` says.
        position: Is moved behind what was read.
    """
    position.torn = None
    for line in file:
        text = line if position.at else line.removeprefix(b"\xef\xbb\xbf")
        whole = line.endswith(b"\n")
        if text.strip():
            record = read_record(text, f"line {position.line + 1:,}")
            if isinstance(record, Damaged) and not whole:
                position.torn = record
                return
            yield record
        position.at += len(line)
        position.line += whole


def _load(path: Path, file: IO[bytes]) -> Log:
    database, damaged, position, held = in_memory(), list[Damaged](), Position(), False
    position.file = identity(file.fileno())
    try:
        database.execute("begin")
        for entry in read_on(file, position):
            if isinstance(entry, Record):
                put(database, entry)
                held = True
            else:
                damaged.append(entry)
                if not held and len(damaged) == _ENOUGH:
                    break
        if not held and (damaged or position.torn):
            file.seek(0)
            traced = traces.read(file.read())
            if traced is not None:
                position = Position(at=file.tell(), file=position.file)
                damaged = [entry for entry in traced if isinstance(entry, Damaged)]
                for record in traced:
                    if isinstance(record, Record):
                        put(database, record)
                        held = True
            if damaged and not held:
                first = damaged[0]
                raise LogError(f"{path} is no log: {first.place}: {first.why}; {_KINDS}")
        database.execute("commit")
    except BaseException:
        database.close()
        raise
    return Log(path, database, damaged, position)


def _opened(path: Path) -> sqlite3.Connection:
    uri = path.as_uri()
    try:
        return _connect(path, f"{uri}?mode=ro")
    except sqlite3.OperationalError as error:
        if "locked" in str(error):
            raise LogError(f"{path} is locked by another process: try again") from error
        # SQLite wants to put files beside a database in WAL mode, even to read it, and cannot.
        # Without a `-wal` nobody has it open, and all is in the database itself.
        if size_of(path.with_name(f"{path.name}-wal")):
            raise LogError(
                f"cannot read {path}: {error}. Its newest runs are in {path.name}-wal, which "
                "SQLite reads only where it may write: copy both files to another folder"
            ) from error
        return _connect(path, f"{uri}?mode=ro&immutable=1")


def _connect(path: Path, uri: str) -> sqlite3.Connection:
    database = sqlite3.connect(uri, uri=True, isolation_level=None)
    try:
        database.execute("begin")  # all that is read is of one moment
        ((application,),) = database.execute("pragma application_id")
        ((version,),) = database.execute("pragma user_version")
        ((tables,),) = database.execute("select count(*) from sqlite_master")
        if not (application or version or tables):  # its writer has only begun
            database.close()
            return in_memory()
        if application != APPLICATION:
            raise LogError(f"{path} is a database of something else; {_KINDS}")
        if version != VERSION:
            raise LogError(
                f"{path} has tables of version {version}, and this demur reads version {VERSION}: "
                "read it with the version of demur that wrote it, or a later one"
            )
    except BaseException:
        database.close()
        raise
    return database


def _holds(text: str | None, part: str) -> bool:
    return text is not None and part in text.casefold()


def _text(raw: bytes) -> str | bytes:
    """A text of a database; as it is where that is no UTF-8, so that only its run is damaged."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw


def _unreadable(path: Path, why: str) -> LogError:
    return LogError(
        f"{path} cannot be read: {why}. If it is damaged, `sqlite3 {path} .recover` may save what "
        "is left of it"
    )
