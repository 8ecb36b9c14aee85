"""JSONLSink: records as lines of JSON, appended to a file by any number of processes."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from demur import _owner_only as private
from demur.errors import DemurError
from demur.observe.records import Record
from demur.observe.sinks.base import Sink

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


class JSONLSink(Sink):
    """Appends each record to a file, as a line of JSON (`Record.as_json`), whole or not at all.

    Threads and processes, forked ones too, may append to the same file: each write opens it, locks
    it (`flock`), and closes it. So a file that is renamed or deleted (logrotate) is begun anew by
    the next write. On Windows there is no such lock: a file belongs to one process there.

    A record that was written outlives the process, also `kill -9`. A power cut may take what was
    written since the last `flush`. A line that was torn in one is left as it is; the next record
    begins a new line. A record that comes again is appended again.

    A file that is made can be read by its owner only (mode 0600).

    Args:
        path: The file. It is made at once, so that what stands against it is known at once.

    Raises:
        DemurError: The file cannot be made or opened.
    """

    def __init__(self, path: str | Path) -> None:
        # The process may go to another folder.
        self.path = Path(path).absolute()
        """The file."""
        if self.path.exists() and not self.path.is_file():
            raise DemurError(f"cannot write {self.path}: expected a file, and it is none")
        try:
            with open(self.path, "ab", opener=private.opened):
                pass
        except OSError as error:
            raise DemurError(
                f"cannot write {self.path}: {error.strerror or error}. Expected a file that this "
                "process may write, in a folder that exists"
            ) from error

    def __repr__(self) -> str:
        return f"JSONLSink({str(self.path)!r})"

    def write(self, record: Record) -> None:
        """Append a record.

        Raises:
            OSError: It could not be written; the file is as it was before.
        """
        line = record.as_json().encode() + b"\n"
        with open(self.path, "a+b", buffering=0, opener=private.opened) as file:
            if fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_EX)  # until the file is closed
            size = file.seek(0, os.SEEK_END)
            if size:
                file.seek(size - 1)
                line = line if file.read(1) == b"\n" else b"\n" + line
            try:
                left = memoryview(line)
                while left:  # a disk that is all but full takes a part
                    left = left[file.write(left) :]
            except BaseException:
                with contextlib.suppress(OSError):
                    file.truncate(size)
                raise

    def flush(self) -> None:
        """Put on the disk what was written so far.

        Raises:
            OSError: It could not be put there.
        """
        # One that was taken away is not ours any more.
        with contextlib.suppress(FileNotFoundError), open(self.path, "r+b") as file:
            os.fsync(file.fileno())

    def close(self) -> None:
        """As `flush`. No file stays open between writes."""
        self.flush()
