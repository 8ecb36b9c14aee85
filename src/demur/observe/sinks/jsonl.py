"""JSONLSink: records as lines of JSON, appended to a file by any number of processes."""

from __future__ import annotations

import contextlib
import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, get_args

from demur import _owner_only as private
from demur.errors import DemurError
from demur.observe.records import Record
from demur.observe.sinks.base import Sink
from demur.observe.sinks.locking import locked

Fsync = Literal["always", "interval", "never"]

_now = time.monotonic
_SYNC_SECONDS = 5.0
_FLAGS = os.O_RDWR | os.O_APPEND | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)


class JSONLSink(Sink):
    """Appends each record to a file, as a line of JSON (`Record.as_json`), whole or not at all.

    Threads and processes, forked ones too, may append to the same file: each write opens it, holds
    an advisory lock (`flock`), and closes it. So a file that is renamed or deleted (logrotate) is
    begun anew by the next write. On Windows there is no such lock: a file belongs to one sink
    there.

    A record that was written outlives the process, also `kill -9`. What outlives a power cut, or a
    crash of the system, is said by `fsync`. A line that was torn in one is left as it is; the next
    record begins a new line. A record that comes again is appended again.

    A file that is made can be read by its owner only (mode 0600).

    Args:
        path: The file. It is made at once, so that what stands against it is known at once.
        fsync: "always": a record is on the disk when `write` returns. "interval": it is put there
            by the first write that comes five seconds or more after the last time, by `flush` and
            by `close`; a power cut loses what came since. "never": the system decides when, on
            Linux after half a minute or so.

    Raises:
        ValueError: `fsync` is none of these, or the path is that of something else than a file.
        DemurError: The file cannot be made, opened or locked.
    """

    def __init__(self, path: str | Path, *, fsync: Fsync = "interval") -> None:
        if fsync not in get_args(Fsync):
            raise ValueError(f"fsync must be 'always', 'interval' or 'never', got {fsync!r}")
        # The process may go to another folder.
        self.path = Path(path).absolute()
        """The file."""
        self._fsync = fsync
        self._synced, self._dirty, self._new = _now(), False, False
        if not self.path.parent.is_dir():
            raise DemurError(f"cannot write {self.path}: there is no folder {self.path.parent}")
        try:
            if self.path.exists() and not stat.S_ISREG(self.path.stat().st_mode):
                raise ValueError(f"cannot append records to {self.path}: it is no ordinary file")
            with _open(self.path, os.O_CREAT) as file, locked(file):
                pass
        except OSError as error:
            raise DemurError(
                f"cannot write {self.path}: {error.strerror or error}. Expected a file that this "
                "process may write and lock"
            ) from error

    def __repr__(self) -> str:
        return f"JSONLSink({str(self.path)!r})"

    def write(self, record: Record) -> None:
        """Append a record.

        Raises:
            OSError: It could not be written; the file is as it was before.
            TimeoutError: Another process held the file's lock for ten seconds.
        """
        line = record.as_json().encode() + b"\n"
        with _open(self.path, os.O_CREAT) as file, locked(file):
            size = os.fstat(file).st_size
            try:
                _append(file, line if _ends_a_line(file) else b"\n" + line)
                self._dirty, self._new = True, self._new or size == 0
                if self._fsync == "always" or (
                    self._fsync == "interval" and _now() - self._synced >= _SYNC_SECONDS
                ):
                    self._sync(file)
            except BaseException:
                _cut(file, size)
                raise

    def flush(self) -> None:
        """Put on the disk what was written so far, unless `fsync` is "never"."""
        if not self._dirty or self._fsync == "never":
            return
        try:
            with _open(self.path, 0) as file:
                self._sync(file)
        except FileNotFoundError:  # it was taken away, and is not ours any more
            self._dirty = False

    def close(self) -> None:
        """As `flush`. No file stays open between writes."""
        self.flush()

    def _sync(self, file: int) -> None:
        new = self._new
        # Before: what another thread writes meanwhile may not be in it.
        self._dirty = self._new = False
        try:
            os.fsync(file)
            if new:
                _sync_folder(self.path.parent)
        except OSError:
            self._dirty, self._new = True, new
            raise
        self._synced = _now()


@contextlib.contextmanager
def _open(path: Path, flags: int) -> Iterator[int]:
    file = private.opened(str(path), _FLAGS | flags)
    try:
        yield file
    finally:
        os.close(file)


def _ends_a_line(file: int) -> bool:
    """Whether what is appended begins a line."""
    if os.fstat(file).st_size == 0:
        return True
    os.lseek(file, -1, os.SEEK_END)
    return os.read(file, 1) == b"\n"


def _append(file: int, line: bytes) -> None:
    left = memoryview(line)
    while left:  # a disk that is all but full takes a part
        left = left[os.write(file, left) :]


def _cut(file: int, size: int) -> None:
    """Take away what was appended to a file of `size` bytes."""
    if os.name == "nt":  # without a lock it may be another's; the next write begins a line
        return
    with contextlib.suppress(OSError):
        os.ftruncate(file, size)


def _sync_folder(folder: Path) -> None:
    """Put the name of a new file on the disk, where folders can be opened."""
    if os.name == "nt":
        return
    file = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)
