"""Feed: records on their way to one sink, which may fail, hang, and come back."""

from __future__ import annotations

import logging
import threading
import time
import weakref
from collections.abc import Callable, Iterator

from demur._forks import in_child
from demur.observe.fallback import FallbackFile
from demur.observe.records import Record
from demur.observe.sinks.base import Sink
from demur.observe.sinks.function import FunctionSink, WriterSink
from demur.observe.sinks.jsonl import JSONLSink
from demur.observe.sinks.sqlite import SQLiteSink
from demur.runtime import describe

_log = logging.getLogger("demur.observe")
_now = time.monotonic

_WAITS = (0.05, 0.15, 0.3, 0.5)
"""Seconds between the tries of a record, while the sink is up."""
_PATIENCE_SECONDS = 2.0
"""How long a record is tried: a sink whose tries take long is not asked five times."""
_BUSY_SECONDS = 10.0
"""How long a sink may be busy with another record."""
_DOWN_SECONDS = (5.0, 60.0)
"""How long a sink that is down is left alone: at least, at most."""
_QUIET_SECONDS = 60.0
"""How long the same complaint is not repeated."""
_QUOTED = 16
"""Characters of a record's text that tell that an error quotes it."""


class _Down(Exception):  # noqa: N818  # a state
    """The sink is down, and was not asked."""


class Feed:
    """Gives one sink its records, and the fallback file what it does not take. Safe in threads.

    Args:
        sink: The sink. Several feeds may have the same.
        fallback: Takes what the sink does not.
        closed: Ends all waiting when it is set.
    """

    def __init__(self, sink: Sink, fallback: FallbackFile, closed: threading.Event) -> None:
        self._sink, self._fallback, self._closed = sink, fallback, closed
        self._name = _name(sink)
        self._asking = _lock_of(sink)
        self._state = threading.Lock()
        self._down = False
        self._next = 0.0
        """When a sink that is down may be asked again."""
        self._missed = 0
        """Records that it did not take, and that no message has counted yet."""
        self._warned = False
        self._quiet_until = float("-inf")

    def write(self, record: Record) -> None:
        """Give the sink a record, else the fallback file."""
        try:
            self._ask(record)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException:  # such as CancelledError, out of a function that was cancelled
            self._fallback.write(record)

    def flush(self) -> None:
        """Flush the sink; an error is logged."""
        self._end("flushed", self._sink.flush)

    def close(self) -> None:
        """Close the sink; an error is logged, and so is what it did not take."""
        self._end("closed", self._sink.close)
        with self._state:
            missed, self._missed = self._missed, 0
        if missed:
            place = self._fallback.place
            _log.warning("%s did not take %s; see %s", self._name, _records(missed), place)

    # --- Asking --------------------------------------------------------------------------------

    def _ask(self, record: Record) -> None:
        """Have the sink take a record, or raise what it does."""
        probing = self._down
        if probing and not self._turn():
            raise _Down
        if not self._asking.acquire(timeout=0 if probing else _BUSY_SECONDS):
            if probing:
                self._put_off()
                raise _Down
            busy = TimeoutError("busy with another record")
            self._fell(busy, record, 0.0)
            raise busy
        try:
            # It may have gone down while this record waited for the others.
            if self._down and not probing and not self._turn():
                raise _Down
            began = _now()
            try:
                self._try(record, began)
            except BaseException as error:
                self._fell(error, record, _now() - began)
                raise
            self._rose()
        finally:
            self._asking.release()

    def _try(self, record: Record, began: float) -> None:
        for wait in () if self._down else _WAITS:
            try:
                return self._sink.write(record)
            except (KeyboardInterrupt, SystemExit):
                raise
            except BaseException:
                if self._closed.is_set() or _now() - began > _PATIENCE_SECONDS:
                    raise
                self._closed.wait(wait)
        return self._sink.write(record)

    # --- Up and down ---------------------------------------------------------------------------

    def _turn(self) -> bool:
        """Whether a sink that is down is to be asked now, and by whoever calls this."""
        with self._state:
            if self._down and _now() < self._next:
                self._missed += 1
                return False
            self._next = float("inf")  # until it is known what came of it
            return True

    def _put_off(self) -> None:
        """Note that the sink could not be asked: it has not come back from another record."""
        with self._state:
            self._missed += 1
            self._next = _now() + _DOWN_SECONDS[0]

    def _fell(self, error: BaseException, record: Record, took: float) -> None:
        """Note that the sink failed."""
        least, most = _DOWN_SECONDS
        with self._state:
            # One record may be at fault, so the next is tried at once. A sink that fails slowly
            # has a tenth of the time.
            pause = min(max(least, 10 * took), most) if self._down else 0.0
            self._down, self._next = True, _now() + pause
            self._missed += 1
            warn = not self._warned and _now() >= self._quiet_until
            if warn:
                self._warned, self._quiet_until = True, _now() + _QUIET_SECONDS
        if warn:
            _log.warning(
                "%s does not take records (%s): until it does, they go to %s",
                *(self._name, _words(error, record), self._fallback.place),
            )

    def _rose(self) -> None:
        """Note that the sink took a record."""
        with self._state:
            if not self._down:
                return
            self._down, missed = False, self._missed
            warn, self._warned = self._warned, False
            if warn:
                self._missed = 0
        if warn:
            place = self._fallback.place
            _log.warning(
                "%s takes records again; %s went to %s", self._name, _records(missed), place
            )

    def _end(self, done: str, work: Callable[[], None]) -> None:
        if not self._asking.acquire(timeout=_BUSY_SECONDS):
            _log.warning("%s cannot be %s: busy with a record", self._name, done)
            return
        try:
            work()
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:
            _log.warning("%s cannot be %s: %s", self._name, done, _words(error, None))
        finally:
            self._asking.release()


_locks: dict[int, tuple[weakref.ref[Sink], threading.Lock]] = {}
in_child(_locks.clear)  # some may be held, by threads that are gone


def _lock_of(sink: Sink) -> threading.Lock:
    """The lock of a sink, whoever asks for it: the sink may have several feeds, and no hash."""
    key = id(sink)
    # An entry is gone before another object can have its id.
    entry = weakref.ref(sink, lambda _: _locks.pop(key, None)), threading.Lock()
    return _locks.setdefault(key, entry)[1]


def _name(sink: Sink) -> str:
    """What to call a sink in the log: without what a user's own repr may tell."""
    ours = isinstance(sink, (JSONLSink, SQLiteSink, FunctionSink, WriterSink))
    return repr(sink) if ours else type(sink).__qualname__


def _records(count: int) -> str:
    return "1 record" if count == 1 else f"{count} records"


def _words(error: BaseException, record: Record | None) -> str:
    """An error in words, or only its class where it quotes the record."""
    words = describe(error)
    if record is None or not any(_quotes(words, text) for text in _texts(record)):
        return words
    return f"{type(error).__name__}, whose words quote the record"


def _texts(record: Record) -> Iterator[str]:
    for attempt in record.attempts:
        yield from (attempt.question or "", attempt.answer)
        yield from (document.page_content for document in attempt.contexts)
        yield from (evaluation.explanation for evaluation in attempt.evaluations)


def _quotes(words: str, text: str) -> bool:
    """Whether `words` hold a piece of `text`; three characters are none."""
    text = " ".join(text.split())
    size = min(len(text), _QUOTED)
    return size > 3 and any(words[at : at + size] in text for at in range(len(words) - size + 1))
