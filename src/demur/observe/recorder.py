"""Recorder: takes runs that are over, has them scored in the background, and gives out the records.

It knows nothing of who tells of the runs; the callback handlers do that for LangChain.
"""

from __future__ import annotations

import atexit
import concurrent.futures.thread  # noqa: F401  # so that its hook is registered before ours
import logging
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from langchain_core.runnables import RunnableConfig

from demur._forks import in_child
from demur.evaluators import EvaluatorLike, as_evaluators
from demur.observe.backlog import Backlog, Loop, OnFull, await_for, begin, is_serving, wait
from demur.observe.finished import Finished
from demur.observe.outlet import Outlet, SinkLike, as_sinks
from demur.observe.records import Record
from demur.observe.redaction import Redact, redaction
from demur.observe.runs import Tally
from demur.observe.scoring import score
from demur.runtime import JUDGE, adrive, drive

_log = logging.getLogger("demur.observe")

_EXIT_SECONDS = 30.0
"""How long the interpreter's end waits for what is in the queues."""
_SINKS_SECONDS = 1.0
"""How long sinks may take to send on and to close at least, when no time is left."""
_CONFIG = RunnableConfig(tags=[JUDGE], callbacks=[])
"""Of the evaluators' runs: no handler that listens to chains is to take them for one."""


class Recorder:
    """Scores and records in the background, within bounds. Safe in threads and event loops."""

    def __init__(
        self,
        evaluators: Sequence[EvaluatorLike | Sequence[EvaluatorLike]],
        sink: SinkLike,
        *,
        max_queue: int,
        on_full: OnFull,
        max_concurrency: int,
        redact: Redact,
        fallback: str | Path | None,
    ) -> None:
        """See `demur.ScoreCallbackHandler`."""
        if max_queue < 1:
            raise ValueError(f"max_queue must be at least 1, got {max_queue}")
        if max_concurrency < 1:
            raise ValueError(f"max_concurrency must be at least 1, got {max_concurrency}")
        if on_full not in ("drop", "block"):
            raise ValueError(f"on_full must be 'drop' or 'block', got {on_full!r}")
        judges = as_evaluators(evaluators)
        self.evaluators = tuple((judge.get_name(), judge) for judge in judges)
        self._redact = redaction(redact)
        self._sinks = as_sinks(sink)
        self._fallback = None if fallback is None else Path(fallback)
        self._outlet = Outlet(self._sinks, fallback=self._fallback)
        self._backlog = Backlog(self._work, self._awork, max_queue, on_full, max_concurrency)
        self._recorded = self._failed = 0
        self._counting = threading.Lock()
        self._warned = False
        _open.add(self)

    # --- The way of a run ----------------------------------------------------------------------

    def put(self, finished: Finished) -> None:
        """Take in a run, for threads to score."""
        if self._wants(finished):
            self._backlog.put(finished)

    async def aput(self, finished: Finished, loop: Loop | None) -> None:
        """Take in a run, for tasks of a loop to score; None: for threads."""
        if self._wants(finished):
            await self._backlog.aput(finished, loop)

    def _wants(self, finished: Finished) -> bool:
        if finished.said.error is not None and self.evaluators and not self._warned:
            self._warned = True
            _log.warning("a run cannot be scored: %s", finished.said.error)
        return finished.judged or bool(self.evaluators)

    def _work(self, finished: Finished) -> None:
        with self._counting_failures():
            record, _ = drive(score(finished, self.evaluators), _CONFIG, None)
        self._write(record)

    async def _awork(self, finished: Finished) -> Callable[[], None]:
        with self._counting_failures():
            record, _ = await adrive(score(finished, self.evaluators), _CONFIG, None)
        return partial(self._write, record)

    def _write(self, record: Record) -> None:
        with self._counting_failures():
            self._outlet.write(self._redact(record))
        with self._counting:
            self._recorded += 1

    @contextmanager
    def _counting_failures(self) -> Iterator[None]:
        """Count a run that no record can be made of. The backlog tells it in the log."""
        try:
            yield
        except (Exception, SystemExit):
            with self._counting:
                self._failed += 1
            raise

    # --- Counts -----------------------------------------------------------------------------------

    @property
    def recorded(self) -> int:
        """Runs that went to the sinks, or to the fallback file."""
        return self._recorded

    @property
    def dropped(self) -> int:
        """Runs for which there was no room in the queue, or no time at the end."""
        return self._backlog.dropped

    @property
    def waiting(self) -> int:
        """Runs in the queue."""
        return len(self._backlog)

    @property
    def to_fallback(self) -> int:
        """Records that a sink did not take, and that went to a file instead; once for each sink."""
        return self._outlet.to_fallback

    @property
    def lost(self) -> int:
        """Records that no file took either, once for each sink; and runs that give no record."""
        return self._outlet.lost + self._failed

    def counts(self, tally: Tally) -> RunCounts:
        """What became of the runs of which these are the tally."""
        return RunCounts(
            **asdict(tally),
            waiting=self.waiting,
            dropped=self.dropped,
            recorded=self.recorded,
            to_fallback=self.to_fallback,
            lost=self.lost,
        )

    # --- The end -------------------------------------------------------------------------------

    def flush(self, timeout: float | None) -> bool:
        """Wait until every run that was taken in before is recorded, and sent on; whether it is."""
        left = _left_of(timeout)
        done = self._backlog.flush(timeout)
        return wait(begin(self._outlet.flush), left()) and done

    async def aflush(self, timeout: float | None) -> bool:
        """As `flush`, in the running loop."""
        left = _left_of(timeout)
        done = await self._backlog.aflush(timeout)
        return await await_for(begin(self._outlet.flush), left()) and done

    def close(self, timeout: float | None) -> bool:
        """Take in nothing more, finish what was taken in, and let go of the sinks."""
        left = _left_of(timeout)
        self._backlog.close()
        done = self._backlog.flush(timeout)
        self._leave()
        return wait(begin(self._outlet.close), left()) and done

    async def aclose(self, timeout: float | None) -> bool:
        """As `close`, in the running loop."""
        left = _left_of(timeout)
        self._backlog.close()
        done = await self._backlog.aflush(timeout)
        self._leave()
        return await await_for(begin(self._outlet.close), left()) and done

    def _leave(self) -> None:
        """Leave what is not scored yet."""
        _open.discard(self)
        if count := self._backlog.give_up():
            _log.warning("the time was up: %d runs were not scored, and are not recorded", count)

    def _forked(self) -> None:
        """What is under way belongs to the parent process, and so do the locks."""
        self._counting = threading.Lock()
        self._backlog.reset()
        self._outlet = Outlet(self._sinks, fallback=self._fallback)


def is_scoring() -> bool:
    """Whether this runs in the background, for a recorder: what evaluators do is nobody's run."""
    return is_serving()


def _left_of(timeout: float | None) -> Callable[[], float | None]:
    """What tells how many seconds are left of these, from now on, for sinks."""
    if timeout is None:
        return lambda: None
    until = time.monotonic() + timeout
    return lambda: max(_SINKS_SECONDS, until - time.monotonic())


_open: weakref.WeakSet[Recorder] = weakref.WeakSet()


def _close_all() -> None:
    until = time.monotonic() + _EXIT_SECONDS
    try:
        for recorder in [*_open]:
            recorder.close(max(0.0, until - time.monotonic()))
    except KeyboardInterrupt:  # nobody wants to wait any more
        for recorder in [*_open]:
            recorder.close(0)


def _forked() -> None:
    for recorder in [*_open]:
        recorder._forked()


def _at_exit(work: Callable[[], None]) -> None:
    """Run `work` when the interpreter ends, while evaluators can still start threads.

    `atexit` alone is too late: pools have been shut down then. The hook of `threading` is what the
    pools themselves use, and those that are registered last run first.
    """
    getattr(threading, "_register_atexit", atexit.register)(work)


_at_exit(_close_all)
in_child(_forked)


@dataclass(frozen=True)
class RunCounts:
    """What became of the runs that a handler saw."""

    runs: int
    """Runs that were wanted: outermost ones, or those named."""
    unsampled: int
    """Of these, those that `sample_rate` left out."""
    unanswered: int
    """Of these, those that raised, were stopped or interrupted, or only called tools."""
    given_up: int
    """Of these, those that never told that they were over, as a stream that nobody closes."""
    waiting: int
    """In the queue."""
    dropped: int
    """Not scored: there was no room in the queue, or no time at the end."""
    recorded: int
    """Given to the sinks, calls of guards included."""
    to_fallback: int
    """Records that a sink did not take, and that went to a file instead; once for each sink."""
    lost: int
    """Records that no file took either, once for each sink; and runs that give no record."""
