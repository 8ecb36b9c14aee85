"""What is written to a log while somebody looks on."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from demur.observe.log.errors import LogError
from demur.observe.log.opening import (
    Log,
    Position,
    identity,
    in_memory,
    open_database,
    read_on,
    size_of,
)
from demur.observe.records import Record
from demur.observe.tables import put


class Following:
    """New runs of a log, each once, in whatever order they come.

    A run that is recorded anew is new again. A file that comes into the log's place is read from
    its start.
    """

    def __init__(self, log: Log) -> None:
        """What is in `log` is not new. It may be closed then."""
        self._path = log.path
        self._lines = _Lines(log.path, log.position or Position())
        self._origin: str | None = None
        self._newest = 0
        if log.position is None:
            self._look_at(log)

    @contextmanager
    def poll(self) -> Iterator[tuple[Log, int]]:
        """What came since the last time: a log that holds it, and where in that it begins.

        The new runs are those after this number: `Filters(after=...)`. The log's `damaged` are new
        too. A file that is gone is waited for.

        Raises:
            LogError: The log cannot be read any more.
        """
        try:
            log, after = self._open()
        except FileNotFoundError:  # it went just now
            log, after = Log(self._path, in_memory()), 0
        except OSError as error:
            raise LogError(f"cannot read {self._path}: {error.strerror or error}") from error
        with log:
            yield log, after

    def _open(self) -> tuple[Log, int]:
        if not self._lines.begun:
            if not size_of(self._path):  # whatever it will be
                return Log(self._path, in_memory()), 0
            database = open_database(self._path)
            if database is not None:
                return database, self._look_at(database)
        return self._lines.read(), 0

    def _look_at(self, log: Log) -> int:
        """The number of the last run of a database that was seen; now its newest one is."""
        query = "select (select id from origin), (select max(seq) from sqlite_sequence)"
        ((origin, number),) = log.rows(query)
        newest = number or 0  # of all that were ever written
        # It is another one, or an older copy that was put back.
        anew = origin != self._origin or newest < self._newest
        seen = 0 if anew else self._newest
        self._origin, self._newest = origin, newest
        return seen


class _Lines:
    """A file of lines that grows, is cut, or has another one put in its place."""

    def __init__(self, path: Path, position: Position) -> None:
        self._path = path
        self._position = position
        self._file: IO[bytes] | None = None
        self._replaced = False

    @property
    def begun(self) -> bool:
        """Whether something of the file was read: until then, it may be a database as well."""
        return self._file is not None or self._position.file is not None

    def read(self) -> Log:
        """What was written since the last time."""
        log = Log(self._path, in_memory())
        log.database.execute("begin")
        if self._file is None:
            current = identity(self._path)
            if current is not None and self._position.file not in (None, current):
                self._begin(log)  # of what came in its place the next look tells what it is
                return log
            self._file = self._path.open("rb")
            self._position.file = identity(self._file.fileno())
        # Somebody may still write to a file that was replaced, so it is read once more then.
        over = self._replaced
        self._replaced = identity(self._path) != self._position.file
        if os.fstat(self._file.fileno()).st_size < self._position.at:
            file = self._position.file
            self._begin(log)
            self._position.file = file
        self._take_in(log, self._file)
        if over:
            self._begin(log)
            self._file.close()
            self._file, self._replaced = None, False
        return log

    def _begin(self, log: Log) -> None:
        """Leave what there was; a line that was not whole will not become so any more."""
        if self._position.torn is not None:
            log.damaged.append(self._position.torn)
        self._position = Position()

    def _take_in(self, log: Log, file: IO[bytes]) -> None:
        file.seek(self._position.at)
        for record in read_on(file, self._position):
            if isinstance(record, Record):
                put(log.database, record)
            else:
                log.damaged.append(record)
