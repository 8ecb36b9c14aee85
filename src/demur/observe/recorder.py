"""Recorder: takes runs that are over, has them scored in the background, and gives out the records.

It knows nothing of who tells of the runs; the callback handlers do that for LangChain.
"""

from __future__ import annotations

import atexit
import concurrent.futures
import logging
import time
import weakref
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from langchain_core.runnables import RunnableConfig

from demur._forks import lock
from demur.evaluators import EvaluatorLike, as_evaluators
from demur.observe.backlog import Backlog, OnFull
from demur.observe.delivery import Delivery, without_words
from demur.observe.finished import Finished
from demur.observe.redaction import Redact, redaction
from demur.observe.runs import Tally
from demur.observe.scoring import score
from demur.observe.sinks import SinkLike, as_sinks
from demur.runtime import JUDGE, drive, within

_log = logging.getLogger("demur.observe")

_EXIT_SECONDS = 30.0
"""How long the interpreter's end waits for what is in the queues."""
_SINKS_SECONDS = 1.0
"""How long sinks may take to send on and to close at least, when no time is left."""
_CONFIG = RunnableConfig(tags=[JUDGE], callbacks=[])
"""Of the evaluators' runs: no handler that listens to chains is to take them for one."""


class Recorder:
    """Scores and records in the background, within bounds. Safe in threads."""

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
        self._evaluators = tuple((judge.get_name(), judge) for judge in judges)
        self._redact = redaction(redact)
        self._delivery = Delivery(as_sinks(sink), None if fallback is None else Path(fallback))
        self._backlog = Backlog(self._record, max_queue, on_full, max_concurrency)
        self._recorded = self._failed = 0
        self._counting = lock()
        self._warned = False
        _open.add(self)

    def put(self, finished: Finished) -> None:
        """Take in a run."""
        if finished.said.error is not None and self._evaluators and not self._warned:
            self._warned = True
            _log.warning("a run cannot be scored: %s", finished.said.error)
        if finished.judged or self._evaluators:
            self._backlog.put(finished)

    def _record(self, finished: Finished) -> None:
        try:
            record, _ = drive(score(finished, self._evaluators), _CONFIG, None)
            self._delivery.write(self._redact(record))
        except BaseException as error:  # nobody is there to be told
            with self._counting:
                self._failed += 1
            _log.error("demur lost a run: %s", without_words(error))
        else:
            with self._counting:
                self._recorded += 1

    def counts(self, tally: Tally) -> RunCounts:
        """What became of the runs of which these are the tally."""
        return RunCounts(
            **asdict(tally),
            waiting=len(self._backlog),
            dropped=self._backlog.dropped,
            recorded=self._recorded,
            to_fallback=self._delivery.to_fallback,
            lost=self._delivery.lost + self._failed,
        )

    def flush(self, timeout: float | None) -> bool:
        """Wait until every run that was taken in before is recorded, and sent on; whether it is."""
        left = _left_of(timeout)
        done = self._backlog.flush(timeout)
        return _within(left(), self._delivery.flush) and done

    def close(self, timeout: float | None) -> bool:
        """Take in nothing more, finish what was taken in, and let go of the sinks."""
        left = _left_of(timeout)
        undone = self._backlog.close(timeout)
        _open.discard(self)
        if undone:
            _log.warning("the time was up: %d runs were not scored, and are not recorded", undone)
        return _within(left(), self._delivery.close) and not undone


def _left_of(timeout: float | None) -> Callable[[], float | None]:
    """What tells how many seconds are left of these, from now on, for sinks."""
    if timeout is None:
        return lambda: None
    until = time.monotonic() + timeout
    return lambda: max(_SINKS_SECONDS, until - time.monotonic())


def _within(timeout: float | None, work: Callable[[], None]) -> bool:
    """Have sinks at work, which may hang; whether they come to an end in time."""
    try:
        within(timeout, work)
    except concurrent.futures.TimeoutError:
        return False
    except RuntimeError:  # no thread starts, as at the end of Python 3.12.1
        work()
    return True


_open: weakref.WeakSet[Recorder] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    until = time.monotonic() + _EXIT_SECONDS
    try:
        for recorder in [*_open]:
            recorder.close(max(0.0, until - time.monotonic()))
    except KeyboardInterrupt:  # nobody wants to wait any more
        for recorder in [*_open]:
            recorder.close(0)


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
