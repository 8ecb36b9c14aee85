"""A log of runs, opened for reading: what a sink wrote, as SQLite or as lines of JSON."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from demur.observe.log.reading import Damaged, LogError, read_record, read_traces
from demur.observe.records import Record
from demur.observe.tables import APPLICATION, TABLES, VERSION, put

_MAGIC = b"SQLite format 3\0"
_KINDS = "expected a file of SQLite or of JSON lines that demur's sinks wrote, or saved traces"
# The second where a damaged name stands in the message of the first.
_DAMAGE = (sqlite3.DatabaseError, UnicodeDecodeError)
_ENOUGH = 100
"""Lines that are no records, before the first that is one: the file is something else."""


class Log:
    """The runs in a file, in the table and the views of `demur.observe.tables`. For one thread."""

    def __init__(
        self, path: Path, database: sqlite3.Connection, damaged: Iterable[Damaged] = ()
    ) -> None:
        """Use `open_log`."""
        self.path = path
        self.damaged = [*damaged]
        """Lines that were left out, in order."""
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

    def __len__(self) -> int:
        """How many records there are, those that cannot be read included."""
        ((count,),) = self.rows("select count(*) from records")
        return int(count)

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
            raise _unreadable(self.path, error) from error

    def close(self) -> None:
        """Let go of the file."""
        self.database.close()


def open_log(path: str | Path) -> Log:
    """Open a log. A file of JSON lines is read to its end for that.

    A damaged line is left out, and is among the log's `damaged`; so is a last one that is still
    being written, or whose writer was killed. Of records with the same id the last one counts.
    Saved traces of guards are a log too, see `demur.observe.log.reading.read_traces`.

    Raises:
        LogError: It cannot be read, or is no log.
    """
    path = Path(path)
    try:
        size = path.stat().st_size if path.is_file() else None
        # Of a file that is there SQLite has the first look: to close it otherwise would give up the
        # locks that a sink in this process has. One of a byte is an empty database to it.
        if size is not None and size >= len(_MAGIC) and (database := _database(path)):
            return Log(path, database)
        with path.open("rb") as file:
            return _lines(path, file)
    except OSError as error:
        raise LogError(f"cannot read {path}: {error.strerror or error}") from error


def in_memory() -> sqlite3.Connection:
    """An empty database with the table, which goes to the disk by itself as it grows."""
    database = sqlite3.connect("", isolation_level=None)
    database.executescript(f"pragma journal_mode = off; {TABLES}")
    return database


def records_in(log: Log, entries: Iterable[Record | Damaged]) -> Log:
    """Put records into a log in memory; what is damaged is among its `damaged`."""
    log.database.execute("begin")
    for entry in entries:
        if isinstance(entry, Record):
            put(log.database, entry)
        else:
            log.damaged.append(entry)
    log.database.execute("commit")
    return log


def _lines(path: Path, file: IO[bytes]) -> Log:
    log = records_in(Log(path, in_memory()), _read_lines(file))
    if log.damaged and not len(log):
        file.seek(0)
        traced = read_traces(file.read())
        if traced is not None:
            log = records_in(Log(path, in_memory()), traced)
        if log.damaged and not len(log):
            log.close()
            first = log.damaged[0]
            raise LogError(f"{path} is no log: {first.place}: {first.why}; {_KINDS}")
    return log


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


def _database(path: Path) -> sqlite3.Connection | None:
    """A connection to a log that is a database; None if it is none."""
    try:
        try:
            return _connected(path, "mode=ro")
        except sqlite3.OperationalError:
            # SQLite wants to put files beside a database in WAL mode, even to read it. Without a
            # `-wal` nobody has it open, and all is in the database itself.
            if path.with_name(f"{path.name}-wal").exists():
                raise
            return _connected(path, "mode=ro&immutable=1")
    except _DAMAGE as error:
        with path.open("rb") as file:
            if file.read(len(_MAGIC)) != _MAGIC:
                return None
        raise _unreadable(path, error) from error


def _connected(path: Path, how: str) -> sqlite3.Connection:
    database = sqlite3.connect(f"{path.resolve().as_uri()}?{how}", uri=True, isolation_level=None)
    try:
        database.execute("begin")  # all that is read is of one moment
        application, version, schema = (
            database.execute(f"pragma {name}").fetchone()[0]
            for name in ("application_id", "user_version", "schema_version")
        )
        if not (application or version or schema):  # its writer has only begun
            database.close()
            return in_memory()
        if application != APPLICATION:
            raise LogError(f"{path} is a database of something else; {_KINDS}")
        if version != VERSION:
            raise LogError(
                f"{path} has a table of version {version}, and this demur reads version {VERSION}: "
                "read it with the version of demur that wrote it"
            )
    except BaseException:
        database.close()
        raise
    return database


def _holds(text: str | None, part: str) -> bool:
    return text is not None and part in text.casefold()


def _text(raw: bytes) -> str:
    """A text of a database, also where it is no UTF-8."""
    return raw.decode(errors="replace")


def _unreadable(path: Path, why: Exception) -> LogError:
    return LogError(
        f"{path} cannot be read: {why}. SQLite needs its `-wal` beside it, and a folder that it "
        f"may write to. If it is damaged, `sqlite3 {path} .recover` may save what is left of it"
    )
