"""Open a log for reading: a file, or a database on a server, that a sink wrote."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any

from demur._text import one_line
from demur.observe.log.reading import Damaged, LogError, read_record, read_traces
from demur.observe.places import SinkError, is_server
from demur.observe.records import Record

if TYPE_CHECKING:
    from sqlalchemy import Connection, Executable

_MAGIC = b"SQLite format 3\0"
_KINDS = "expected a SQLite file or a file of JSON lines that a sink wrote, or saved traces"
# The second is raised if the message of the first holds a damaged name.
_DAMAGE = (sqlite3.DatabaseError, UnicodeDecodeError)
_ENOUGH = 100
"""The number of unreadable lines before any record after which the file is not taken for a log."""
_TOGETHER = 200
"""The number of rows that a server sends together."""


class Log:
    """Read the runs in a file or on a server, from the tables of `demur.observe.tables`.

    All queries see the log as it was at one moment. Use a log in one thread only.
    """

    def __init__(
        self,
        name: str,
        connection: Connection,
        resources: contextlib.ExitStack,
        path: Path | None,
    ) -> None:
        """Make a log from an open connection; call `open_log` instead."""
        self.name = name
        """The file, or the server's URL without user and password, for messages."""
        self.path = path
        """The file; None for a server."""
        self.damaged: list[Damaged] = []
        """The lines that cannot be read and were left out, in order."""
        self.connection = connection
        self._resources = resources

    def __enter__(self) -> Log:
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __len__(self) -> int:
        """Return the number of records, including those in a database that cannot be read."""
        from demur.observe.log.queries import number_of_runs

        ((count,),) = self.rows(number_of_runs())
        return int(count)

    @property
    def dialect(self) -> str:
        """Return the kind of the database: "sqlite" or "postgresql"."""
        return self.connection.dialect.name

    def rows(self, query: Executable, stream: bool = False) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of a query.

        Args:
            query: The query.
            stream: Whether the result may be too large for the memory.

        Raises:
            LogError: The database is damaged, or the server is gone.
        """
        from sqlalchemy.exc import DBAPIError

        options = {"yield_per": _TOGETHER} if stream else {}
        try:
            with self.connection.execute(query, execution_options=options) as found:
                for row in found:
                    yield tuple(row)
        except (DBAPIError, *_DAMAGE) as error:
            raise self._unreadable(error) from None

    def _unreadable(self, error: Exception) -> LogError:
        if self.path is None:
            from demur.observe.postgres import told

            return LogError(f"{self.name} cannot be read: {told(error)}")
        return _unreadable(self.path, getattr(error, "orig", None) or error)

    def close(self) -> None:
        """Close the file, or the connection to the server."""
        self._resources.close()


def open_log(where: str | Path) -> Log:
    """Open a log for reading.

    A file of JSON lines is read to its end at once. Lines that cannot be read are left out and
    listed in the log's `damaged`. The last line can be such a line if its writer was killed or is
    still at work. Of several records with the same id, the last one counts. A file of saved traces
    is a log too, see `demur.observe.log.reading.read_traces`.

    Args:
        where: A file, or `postgresql://user:password@host:port/database`. It is not changed.

    Raises:
        LogError: The log cannot be read, or `where` is not a log.
        MissingExtraError: psycopg is not installed, which PostgreSQL needs.
    """
    try:
        if is_server(where):
            return _on_server(str(where))
    except ValueError as error:
        raise LogError(str(error)) from error
    path = Path(where)
    try:
        size = path.stat().st_size if path.is_file() else None
        # SQLite must be the first to open the file: closing another handle would release the locks
        # of a sink in this process. SQLite takes a file of one byte for an empty database.
        if size is not None and size >= len(_MAGIC):
            log = _database(path)
            if log is not None:
                return log
        with path.open("rb") as file:
            return _lines(path, file)
    except OSError as error:
        raise LogError(f"cannot read {path}: {error.strerror or error}") from error


# --- A server -------------------------------------------------------------------------------------


def _on_server(url: str) -> Log:
    from demur.observe.postgres import Server

    server = Server(url)
    with contextlib.ExitStack() as resources:
        resources.callback(server.close)
        try:
            connection = resources.enter_context(server.moment())
        except SinkError as error:
            raise LogError(str(error)) from None
        return Log(server.name, connection, resources.pop_all(), None)


# --- Lines ----------------------------------------------------------------------------------------


def _lines(path: Path, file: IO[bytes]) -> Log:
    log = _held(path, _read_lines(file))
    if log.damaged and not len(log):
        file.seek(0)
        traced = read_traces(file.read())
        if traced is not None:
            log.close()
            log = _held(path, traced)
        if log.damaged and not len(log):
            log.close()
            first = log.damaged[0]
            raise LogError(f"{path} is not a log: {first.place}: {first.why}; {_KINDS}")
    return log


def _held(path: Path, entries: Iterable[Record | Damaged]) -> Log:
    """Make a log of these records, in a temporary database that moves to the disk as it grows."""
    from demur.observe.sqlite import TABLES
    from demur.observe.tables import put

    database = sqlite3.connect("", isolation_level=None)
    database.executescript(f"pragma journal_mode = off; {TABLES}")
    log = _log(path, database)
    put(log.connection, _whole(entries, log.damaged))
    log.connection.commit()
    return log


def _whole(entries: Iterable[Record | Damaged], damaged: list[Damaged]) -> Iterator[Record]:
    """Yield the records, and put the others into `damaged`."""
    for entry in entries:
        if isinstance(entry, Record):
            yield entry
        else:
            damaged.append(entry)


def _read_lines(file: IO[bytes]) -> Iterator[Record | Damaged]:
    damaged, held = 0, False
    for number, line in enumerate(file, start=1):
        text = line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
        if text.strip():
            record = read_record(text, f"line {number:,}")
            held = held or isinstance(record, Record)
            damaged += isinstance(record, Damaged)
            yield record
            if not held and damaged == _ENOUGH:
                return


# --- A database in a file -------------------------------------------------------------------------


def _log(path: Path, database: sqlite3.Connection) -> Log:
    """Make a log that reads a SQLite connection."""
    from demur.observe.sqlite import engine_on

    # `holds(text, part)`: SQLite's own `like` ignores the case of ASCII letters only.
    database.create_function("holds", 2, _holds, deterministic=True)
    database.text_factory = _text
    resources = contextlib.ExitStack()
    connection = resources.enter_context(engine_on(lambda: database, "begin").connect())
    return Log(str(path), connection, resources, path)


def _database(path: Path) -> Log | None:
    """Open a SQLite file as a log; return None if it is not a SQLite file."""
    try:
        try:
            return _connected(path, "mode=ro")
        except sqlite3.OperationalError:
            # SQLite makes files beside a database in WAL mode even to read it, and here it may not.
            # If there is no `-wal` file, no process has the database open, and it is complete.
            if path.with_name(f"{path.name}-wal").exists():
                raise
            return _connected(path, "mode=ro&immutable=1")
    except _DAMAGE as error:
        with path.open("rb") as file:
            if file.read(len(_MAGIC)) != _MAGIC:
                return None
        raise _unreadable(path, error) from error


def _connected(path: Path, how: str) -> Log:
    from demur.observe.sqlite import APPLICATION, kind_of
    from demur.observe.tables import VERSION

    database = sqlite3.connect(f"{path.resolve().as_uri()}?{how}", uri=True, isolation_level=None)
    try:
        application, version, schema = kind_of(database)
        if not (application or version or schema):  # its writer has not made the tables yet
            database.close()
            return _held(path, ())
        if application != APPLICATION:
            raise LogError(f"{path} is a database of another program; {_KINDS}")
        if version != VERSION:
            raise LogError(
                f"{path} has tables of version {version}, and this demur reads version {VERSION}: "
                "read it with the version of demur that wrote it"
            )
        return _log(path, database)
    except BaseException:
        database.close()
        raise


def _holds(text: str | None, part: str) -> bool:
    return text is not None and part in text.casefold()


def _text(raw: bytes) -> str:
    """Decode a text of a database, even if it is not valid UTF-8."""
    return raw.decode(errors="replace")


def _unreadable(path: Path, why: object) -> LogError:
    return LogError(
        f"{path} cannot be read: {one_line(str(why))}. SQLite needs its `-wal` beside it, and a "
        "folder that it may write to. If it is damaged, "
        f"`sqlite3 {path} .recover` may save what is left of it"
    )
