"""FallbackFile: the file that takes the records which a sink does not."""

from __future__ import annotations

import logging
import os
import tempfile
import threading
import time
from pathlib import Path

from demur.errors import DemurError
from demur.observe.records import Record
from demur.observe.sinks.jsonl import JSONLSink
from demur.runtime import describe

_log = logging.getLogger("demur.observe")
_now = time.monotonic

_QUIET_SECONDS = 60.0
"""How long the same complaint is not repeated."""


class FallbackFile:
    """A file of JSON lines, made when it is first needed. Safe in threads; raises nothing later.

    Args:
        path: The file: by default one in the system's folder for temporary files.

    Raises:
        DemurError: There is no folder for it, or it is a folder itself.
    """

    def __init__(self, path: Path | None) -> None:
        if path is not None:
            path = path.absolute()
            if not path.parent.is_dir():
                raise DemurError(f"cannot keep records in {path}: there is no folder {path.parent}")
            if path.is_dir():
                raise DemurError(
                    f"cannot keep records in {path}: that is a folder, expected a file"
                )
        self._path = path
        self._sink: JSONLSink | None = None
        self._opening, self._counting = threading.Lock(), threading.Lock()
        self._quiet_until = float("-inf")
        self.kept = 0
        """Records that were written."""
        self.lost = 0
        """Records that could not be written."""

    @property
    def place(self) -> str:
        """Where records go, in words."""
        try:
            return str(self._open().path)
        except Exception as error:
            return f"nowhere, as no file can be written ({describe(error)})"

    def write(self, record: Record) -> None:
        """Keep a record, or count it as lost and log an error."""
        try:
            self._open().write(record)
        except Exception as error:
            self._lose(error)
        else:
            with self._counting:
                self.kept += 1

    def flush(self) -> None:
        """Put on the disk what was written so far."""
        if self._sink is None:
            return
        try:
            self._sink.flush()
        except Exception as error:
            _log.warning("%r cannot be flushed: %s", self._sink, describe(error))

    def _open(self) -> JSONLSink:
        with self._opening:
            if self._sink is None:
                if self._path is None:
                    file, name = tempfile.mkstemp(prefix="demur-fallback-", suffix=".jsonl")
                    os.close(file)
                    self._path = Path(name)
                self._sink = JSONLSink(self._path)
            return self._sink

    def _lose(self, error: Exception) -> None:
        with self._counting:
            self.lost += 1
            lost, quiet = self.lost, _now() < self._quiet_until
            if not quiet:
                self._quiet_until = _now() + _QUIET_SECONDS
        if not quiet:
            _log.error(
                "records are lost, %d so far: the file for what a sink does not take cannot be "
                "written (%s)",
                lost,
                describe(error),
            )
