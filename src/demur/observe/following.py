"""What is written to a log while somebody looks on."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import IO

from demur.observe.log import (
    Log,
    LogError,
    Position,
    identity,
    in_memory,
    is_database,
    open_log,
    read_on,
)
from demur.observe.records import Record
from demur.observe.tables import moment, put

_LATE = timedelta(hours=1)
_FEW = 1000


class Following:
    """New runs of a log, each once. A file that comes into the log's place is read from its start.

    Runs are scored in the background, so one that ended earlier may be written later. In a database
    it is still found if it ended at most an hour before the newest one.
    """

    def __init__(self, log: Log) -> None:
        """What is in `log` is not new. It may be closed then."""
        self._path = log.path
        self._lines = None if log.position is None else _Lines(log.path, log.position)
        self._seen: dict[str, str] = {}
        """The times of the runs that may turn up again, by their ids."""
        self._most = _FEW
        ((newest,),) = log.rows("select max(time) from runs")
        self._newest: str = newest or ""
        self._fresh(log, self._since())

    @contextmanager
    def poll(self) -> Iterator[tuple[Log, list[str]]]:
        """What came since the last time: a log that holds it, and the ids of the new runs.

        Its `damaged` are new too. A file that is gone is waited for.

        Raises:
            LogError: The log cannot be read any more.
        """
        try:
            log, since = self._open()
        except OSError as error:
            raise LogError(f"cannot read {self._path}: {error.strerror or error}") from error
        with log:
            yield log, self._fresh(log, since)

    def _open(self) -> tuple[Log, str]:
        """A log of what may be new, and from when on to look at it."""
        if self._lines is not None and self._lines.gave_way:
            self._lines = None
        if self._lines is not None:
            return self._lines.read(), ""
        if self._path.exists():
            return open_log(self._path), self._since()
        return Log(self._path, in_memory()), ""

    def _fresh(self, log: Log, since: str) -> list[str]:
        found = {
            id: time
            for id, time in log.rows("select id, time from runs where time >= ?", since)
            if id not in self._seen
        }
        self._seen.update(found)
        self._newest = max([self._newest, *found.values()])
        if len(self._seen) > self._most:
            since = self._since()
            self._seen = {id: time for id, time in self._seen.items() if time >= since}
            self._most = 2 * len(self._seen) + _FEW
        return [*found]

    def _since(self) -> str:
        """What ended before is not looked for any more."""
        if not self._newest:
            return ""
        # A clock that is ahead must not hide the runs of others.
        now = moment(datetime.now(timezone.utc) - _LATE)
        return min(now, moment(datetime.fromisoformat(self._newest[:-1] + "+00:00") - _LATE))


class _Lines:
    """A file of lines that grows, is cut, or has another one put in its place."""

    def __init__(self, path: Path, position: Position) -> None:
        self._path = path
        self._position = position
        self._file: IO[bytes] | None = None
        self._replaced = False

    @property
    def gave_way(self) -> bool:
        """Whether a database came into the place of an empty file."""
        return self._position.at == 0 and is_database(self._path)

    def read(self) -> Log:
        """What was written since the last time."""
        log = Log(self._path, in_memory())
        log.database.execute("begin")
        if self._open():
            assert self._file is not None
            # Somebody may still write to a file that was replaced, so it is read once more then.
            over = self._replaced
            self._replaced = identity(self._path) != self._position.file
            if os.fstat(self._file.fileno()).st_size < self._position.at:
                self._begin(log)
            self._take_in(log)
            if over:
                self._begin(log)
                self._file.close()
                self._file, self._replaced = None, False
        return log

    def _open(self) -> bool:
        """Open the file, if it is there."""
        if self._file is None:
            try:
                self._file = self._path.open("rb")
            except FileNotFoundError:
                return False
            opened = identity(self._file.fileno())
            if self._position.file not in (None, opened):
                self._position = Position()
            self._position.file = opened
        return True

    def _begin(self, log: Log) -> None:
        """Leave what there was; a line that was not whole will not become so any more."""
        if self._position.torn is not None:
            log.damaged.append(self._position.torn)
        self._position = Position(file=self._position.file)

    def _take_in(self, log: Log) -> None:
        assert self._file is not None
        self._file.seek(self._position.at)
        for found in read_on(self._file, self._position):
            if isinstance(found, Record):
                put(log.database, found)
            else:
                log.damaged.append(found)
