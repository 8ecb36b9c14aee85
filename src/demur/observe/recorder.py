"""Score finished runs in the background, and give their records to sinks.

The recorder does not know where runs come from. For LangChain, the callback handler reports them.
"""

from __future__ import annotations

import atexit
import concurrent.futures
import logging
import time
import weakref
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from langchain_core.runnables import RunnableConfig

from demur._system import lock
from demur.evaluators import EvaluatorLike, as_evaluators
from demur.observe.backlog import Backlog, OnFull
from demur.observe.delivery import Delivery, without_words
from demur.observe.finished import Finished
from demur.observe.redaction import Redact, redactor
from demur.observe.runs import Tally
from demur.observe.scoring import score
from demur.observe.sinks import SinkLike, as_sinks
from demur.observe.sinks.traces import TraceSink, located
from demur.runtime import JUDGE, drive, within

_log = logging.getLogger("demur.observe")

_EXIT_SECONDS = 30.0
"""The time, in seconds, that all recorders together get when the interpreter exits."""
_SINKS_SECONDS = 1.0
"""The least time, in seconds, that sinks get to flush or close, even after a timeout."""
_CONFIG = RunnableConfig(tags=[JUDGE], callbacks=[])
"""The config of the evaluators' runs, so that no handler takes them for runs of a chain."""


class Recorder:
    """Score and record runs in the background, with a bounded queue. Safe in threads."""

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
        """Make a recorder; `demur.ScoreCallbackHandler` describes the arguments."""
        if max_queue < 1:
            raise ValueError(f"max_queue must be at least 1, got {max_queue}")
        if max_concurrency < 1:
            raise ValueError(f"max_concurrency must be at least 1, got {max_concurrency}")
        if on_full not in ("drop", "block"):
            raise ValueError(f"on_full must be 'drop' or 'block', got {on_full!r}")
        judges = as_evaluators(evaluators)
        self._evaluators = tuple((judge.get_name(), judge) for judge in judges)
        self._redact = redactor(redact)
        sinks = as_sinks(sink)
        self._tracing = [one for one in sinks if isinstance(one, TraceSink)]
        self.locate = partial(located, self._tracing)
        self._delivery = Delivery(sinks, None if fallback is None else Path(fallback))
        self._backlog = Backlog(self._record, max_queue, on_full, max_concurrency)
        self._recorded = self._failed = 0
        self._counting = lock()
        self._warned = False
        _open.add(self)

    def put(self, finished: Finished) -> None:
        """Queue a run, unless there is nothing to score or record about it."""
        if finished.said.error is not None and self._evaluators and not self._warned:
            self._warned = True
            _log.warning("a run cannot be scored: %s", finished.said.error)
        if finished.judged or self._evaluators:
            self._backlog.put(finished)

    def _record(self, finished: Finished) -> None:
        try:
            record, _ = drive(score(finished, self._evaluators), _CONFIG, None)
            for sink in self._tracing:
                traces = tuple(map(sink.addressed, record.traces))
                record = record.model_copy(update={"traces": traces})
            self._delivery.write(self._redact(record))
        except BaseException as error:  # in a background thread, no caller could handle it
            with self._counting:
                self._failed += 1
            _log.error("demur lost a run: %s", without_words(error))
        else:
            with self._counting:
                self._recorded += 1

    def counts(self, tally: Tally) -> RunCounts:
        """Return the counts of `tally`, with what happened to the runs after that."""
        return RunCounts(
            **asdict(tally),
            waiting=len(self._backlog),
            dropped=self._backlog.dropped,
            recorded=self._recorded,
            to_fallback=self._delivery.to_fallback,
            lost=self._delivery.lost + self._failed,
        )

    def flush(self, timeout: float | None) -> bool:
        """Wait until all queued runs are recorded and sent on; return whether that was done."""
        left = _left_of(timeout)
        done = self._backlog.flush(timeout)
        return _within(left(), self._delivery.flush) and done

    def close(self, timeout: float | None) -> bool:
        """Accept no more runs, finish the queue, close the sinks; return whether all was done."""
        left = _left_of(timeout)
        undone = self._backlog.close(timeout)
        _open.discard(self)
        if undone:
            _log.warning("close() timed out: %d runs were not scored and are not recorded", undone)
        return _within(left(), self._delivery.close) and not undone


def _left_of(timeout: float | None) -> Callable[[], float | None]:
    """Return a function that returns the seconds that are left for sinks, counted from now."""
    if timeout is None:
        return lambda: None
    until = time.monotonic() + timeout
    return lambda: max(_SINKS_SECONDS, until - time.monotonic())


def _within(timeout: float | None, work: Callable[[], None]) -> bool:
    """Call `work`, in which sinks may hang; return whether it ended before the timeout."""
    try:
        within(timeout, work)
    except concurrent.futures.TimeoutError:
        return False
    except RuntimeError:  # no thread can start, such as when Python 3.12.1 exits
        work()
    return True


_open: weakref.WeakSet[Recorder] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    until = time.monotonic() + _EXIT_SECONDS
    try:
        for recorder in [*_open]:
            recorder.close(max(0.0, until - time.monotonic()))
    except (KeyboardInterrupt, SystemExit):  # the user does not want to wait any longer
        for recorder in [*_open]:
            recorder.close(0)


@dataclass(frozen=True)
class RunCounts:
    """Count what happened to the runs that a handler saw."""

    runs: int
    """The number of runs to record: the outermost runs, or those that `names` or `tags` choose."""
    unsampled: int
    """The number of these that `sample_rate` left out."""
    unanswered: int
    """The number of these that raised, were cancelled or interrupted, or only called tools."""
    given_up: int
    """The number of these that never reported their end, such as a stream that nobody closes."""
    waiting: int
    """The number of runs in the queue."""
    dropped: int
    """The number of runs not scored: the queue was full, or the time to close ran out."""
    recorded: int
    """The number of records given to the sinks, guards' calls included."""
    to_fallback: int
    """The number of records that went to a fallback file instead, once for each sink."""
    lost: int
    """The number of records that no file accepted either, once for each sink, and of runs that
    gave no record because of an error."""
