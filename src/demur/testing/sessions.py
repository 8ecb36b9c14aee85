"""Hold what one run of pytest shares: the findings, and the replies that models gave before."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from demur.guard import Trace
    from demur.observe import Record, Writer
    from demur.recording import Recording


class Session:
    """Keep the findings of a run, and have models reply from a recording where there is one.

    Args:
        logs: The logs for the records of all processes of the run.
        replies: The recording; None to let models reply themselves.
        records: Whether replies that the recording lacks are recorded.
    """

    def __init__(
        self, logs: Sequence[Path] = (), replies: Path | None = None, records: bool = False
    ) -> None:
        self.logs, self.replies, self.records = logs, replies, records
        self.item: Any = None
        """The test that runs, a `pytest.Item`; None before the first one."""
        self.said: list[str] = []
        """The lines for the end of the run."""
        self.opened = ExitStack()
        """What is closed at the end of the run."""
        self._kept: defaultdict[str, Iterator[int]] = defaultdict(count)

    @contextmanager
    def replying(self) -> Iterator[Recording | None]:
        """Have the models of this process reply from the recording, if there is one.

        Raises:
            ValueError: The recording cannot be read or written.
        """
        if self.replies is None:
            yield None
            return
        from demur.recording import recorded

        with recorded(self._recording):
            yield self._recording

    @cached_property
    def _recording(self) -> Recording:
        from demur.recording import open_recording

        assert self.replies is not None
        how = "with pytest --demur-record"
        return self.opened.enter_context(open_recording(self.replies, not self.records, how))

    @cached_property
    def _sinks(self) -> tuple[Writer, ...]:
        from demur.observe import as_sinks

        return as_sinks(self.logs) if self.logs else ()

    def keep(self, trace: Trace) -> Record:
        """Write the record of a checked answer, and give its scores to the test's report.

        A record's id is made of the test and the question, so that two runs can be compared.

        Returns:
            The record, in which no credential is left.

        Raises:
            DemurError, OSError: The record cannot be written.
        """
        from demur._text import one_line
        from demur.observe import Record, redactor
        from demur.schema.fingerprints import digest

        test = getattr(self.item, "nodeid", "outside of a test")
        about = f"{test} {digest(trace.attempts[-1].question or '')}"
        id = f"{about} {next(self._kept[about])}"
        named = ("outcome", "reason", "error", "limit", "attempts", "usage", "time", "seconds")
        told = {name: getattr(trace, name) for name in named}
        record = redactor()(Record(id=id, root=id, name=test, **told))
        for sink in self._sinks:
            sink.write(record)
        properties = getattr(self.item, "user_properties", [])
        for evaluation in record.evaluations:
            about = f"demur {one_line(evaluation.name)}"
            properties.append((f"{about} finding", evaluation.finding))
            if evaluation.score is not None:
                properties.append((f"{about} score", f"{evaluation.score:.4f}"))
        return record


running: list[Session] = []
"""The sessions of the runs of pytest in this process, the innermost one last."""
