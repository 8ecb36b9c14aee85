"""Append records to a file as lines of JSON, from any number of processes."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from demur._system import owner_only
from demur.observe.places import writing_to
from demur.observe.records import Record
from demur.observe.sinks.base import Sink

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


class JSONLSink(Sink):
    """Append each record to a file as a line of JSON (`Record.as_json`), completely or not at all.

    Threads and processes, including forked ones, may append to the same file: each write opens the
    file, locks it (`flock`), and closes it. After a file was renamed or deleted, as logrotate does,
    the next write makes a new file. Windows has no such lock, so only one process may write to a
    file there.

    A written record survives the end of the process, even by `kill -9`. A power cut may lose the
    records written since the last `flush`. If it leaves a line incomplete, the line stays, and the
    next record begins a new line. A record that comes again is appended again.

    The sink makes files that only their owner can read (mode 0600).

    Args:
        path: The file. The sink makes it at once, so that problems show at once.

    Raises:
        DemurError: The file cannot be made or opened.
    """

    def __init__(self, path: str | Path) -> None:
        # The process may change its working folder later.
        self.path = Path(path).absolute()
        """The file."""
        with writing_to(self.path), open(self.path, "ab", opener=owner_only):
            pass

    def __repr__(self) -> str:
        return f"JSONLSink({str(self.path)!r})"

    def write(self, record: Record) -> None:
        """Append a record.

        Raises:
            OSError: The record could not be written. The file is unchanged.
        """
        line = record.as_json().encode() + b"\n"
        with open(self.path, "a+b", buffering=0, opener=owner_only) as file:
            if fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_EX)  # until the file is closed
            size = file.seek(0, os.SEEK_END)
            if size:
                file.seek(size - 1)
                line = line if file.read(1) == b"\n" else b"\n" + line
            try:
                left = memoryview(line)
                while left:  # on an almost full disk, a write may take only a part
                    left = left[file.write(left) :]
            except BaseException:
                with contextlib.suppress(OSError):
                    file.truncate(size)
                raise

    def flush(self) -> None:
        """Put the records that were written so far on the disk.

        Raises:
            OSError: The disk reports an error.
        """
        # A file that was renamed or deleted is no longer this sink's file.
        with contextlib.suppress(FileNotFoundError), open(self.path, "r+b") as file:
            os.fsync(file.fileno())

    def close(self) -> None:
        """Flush the file. No file stays open between writes."""
        self.flush()
