"""Provide a handler that scores answers in the background, from LlamaIndex's events."""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import AsyncGenerator, Callable, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import Any

from llama_index.core.base.response.schema import AsyncStreamingResponse
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.instrumentation.events import BaseEvent
from llama_index.core.instrumentation.events.query import QueryEndEvent, QueryStartEvent
from llama_index_instrumentation.events.span import SpanDropEvent
from pydantic import PrivateAttr
from typing_extensions import Self

from demur._system import lock
from demur.guard import Trace
from demur.observe import (
    About,
    Finished,
    OnFull,
    Recorder,
    Redact,
    RunCounts,
    Said,
    SinkLike,
    Tally,
    current_span_ids,
    is_scoring,
    plain,
)
from llama_index.evaluation.demur._metering import Meter, is_judging, is_metered
from llama_index.evaluation.demur._nodes import as_documents
from llama_index.evaluation.demur._reply import Reading, is_guarded, read
from llama_index.evaluation.demur._runnables import EvaluatorLike, adapted
from llama_index.evaluation.demur.events import OutcomeEvent

_log = logging.getLogger("demur.observe")

_MOST_OPEN = 10_000
"""The most queries under way at a time. Beyond it, the oldest query is given up."""

_outermost: ContextVar[str | None] = ContextVar("demur_outermost_query", default=None)
"""The span of the outermost query in whose context the code runs. That query may have ended."""


class ScoreEventHandler(BaseEventHandler):
    """Score the answers that LlamaIndex's dispatcher reports, in the background, and record them.

    The handler notes every outermost query (`QueryStartEvent`, `QueryEndEvent`): the question, the
    answer, the source nodes, and what the models cost that were called during the query. Its own
    threads score the answer. It never raises into the application and, with `on_full="drop"`, never
    delays it.

    What a guarded engine or agent finds (`OutcomeEvent`) is recorded as it is, without scoring it
    again. Answers of an engine around a guarded engine, or inside one, are not
    scored either. Queries that demur's evaluators make are left out.

    No event has the text of a stream, so the handler follows the response's `response_gen`. It
    scores the answer when somebody has read the stream to its end. A stream that is left earlier
    has no answer, and a stream that nobody begins to read is not counted.

    The handler gets no event about these, and does not score them:

    - chat engines, because no event of theirs has the message
    - engines whose own `query` sends no event, such as `CustomQueryEngine`
    - agents, which are workflows

    A guard around an engine or an agent reports to the handler. With the arguments
    `on_fail=Annotate(note="")`, it judges each answer and changes none. Or give the response to an
    evaluator's `evaluate_response`.

    Examples:
        >>> handler = ScoreEventHandler(RefCheckerEvaluator(), sink="scores.sqlite")
        >>> get_dispatcher().add_event_handler(handler)
        >>> index.as_query_engine().query("How tall is the tower?")
        >>> handler.flush(60)

    Args:
        evaluators: Evaluators of this package, other evaluators of LlamaIndex, or Runnables and
            functions from `Sample` to `Evaluation`. They need no threshold. With no evaluators,
            only what guarded engines find is recorded.
        sink: Where the records go. This argument, and those not described here, are as
            `demur.ScoreCallbackHandler` takes them.
        sample_rate: The share of runs to record, in [0, 1]. The span's id decides which runs, so
            all handlers choose the same ones.
        on_full: What to do with a run when the queue is full. "drop": the run is counted, but not
            scored. "block": the caller of the engine waits. LlamaIndex calls handlers where the
            engine runs, so under asyncio the whole event loop waits until the handler's threads
            have made room.
        tags: One or more keys. Only runs that have one of them among their `instrument_tags` are
            recorded. A record has the keys of its run as tags, and the values in its metadata.

    Raises:
        ValueError, TypeError, DemurError, MissingExtraError: For the same reasons as in
            `demur.ScoreCallbackHandler`.
    """

    _recorder: Recorder = PrivateAttr()
    _sample_rate: float = PrivateAttr()
    _tags: frozenset[str] = PrivateAttr()
    _open: dict[str, _Query] = PrivateAttr(default_factory=dict)
    """The outermost queries that are under way, by their spans."""
    _tally: Tally = PrivateAttr(default_factory=Tally)
    _lock: Any = PrivateAttr(default_factory=lock)
    """The lock of the tally."""

    def __init__(
        self,
        *evaluators: EvaluatorLike | Sequence[EvaluatorLike],
        sink: SinkLike,
        sample_rate: float = 1.0,
        max_queue: int = 1000,
        on_full: OnFull = "drop",
        redact: Redact = None,
        max_concurrency: int = 4,
        tags: str | Sequence[str] = (),
        fallback: str | Path | None = None,
    ) -> None:
        """Make the handler; the class describes the arguments."""
        super().__init__()
        if not 0 <= sample_rate <= 1:
            raise ValueError(f"sample_rate must be in [0, 1], got {sample_rate}")
        self._sample_rate = sample_rate
        self._tags = frozenset([tags] if isinstance(tags, str) else tags)
        self._recorder = Recorder(
            [*map(adapted, evaluators)],
            sink,
            max_queue=max_queue,
            on_full=on_full,
            max_concurrency=max_concurrency,
            redact=redact,
            fallback=fallback,
        )

    @classmethod
    def class_name(cls) -> str:
        """Return the name of the handler in LlamaIndex."""
        return "ScoreEventHandler"

    @property
    def counts(self) -> RunCounts:
        """Return what happened to the runs so far. A run counts when it has ended."""
        return self._recorder.counts(self._tally)

    def flush(self, timeout: float | None = None) -> bool:
        """Wait until ended runs are recorded, as `demur.ScoreCallbackHandler.flush` does.

        Returns:
            Whether all of them are recorded.
        """
        return self._recorder.flush(timeout)

    def close(self, timeout: float | None = None) -> bool:
        """Record what is queued and stop, as `demur.ScoreCallbackHandler.close` does.

        Returns:
            Whether all accepted runs are recorded.
        """
        return self._recorder.close(timeout)

    def __copy__(self) -> Self:
        """Return this handler itself: runs that are under way cannot be copied."""
        return self

    def __deepcopy__(self, memo: Any = None) -> Self:
        """Return this handler itself."""
        return self

    # --- Events --------------------------------------------------------------------------------

    def handle(self, event: BaseEvent, **kwargs: Any) -> None:
        """Take note of an event. It never raises."""
        if is_judging() or is_scoring():
            return
        with _logged():
            if isinstance(event, QueryStartEvent):
                self._starts(event)
            elif isinstance(event, QueryEndEvent):
                self._ends(event)
            elif isinstance(event, OutcomeEvent):
                self._guarded(event)
            elif isinstance(event, SpanDropEvent) and (raised := self._close(event.span_id)):
                self._over(raised, None)
            elif (query := self._around()) is not None:
                query.meter.note(event)

    def _around(self) -> _Query | None:
        """Return the outermost query in which the code runs, or None if it is not under way."""
        return self._open.get(_outermost.get() or "")

    def _starts(self, event: QueryStartEvent) -> None:
        span = event.span_id
        # If a second handler hears the event, the first one has already set the variable.
        inside = _outermost.get() != span and self._around() is not None
        if span is None or inside or is_metered():  # inside a guarded engine, the guard reports
            return
        _outermost.set(span)
        self._open.setdefault(span, _Query(span, event.tags))
        if len(self._open) > _MOST_OPEN:
            self._open.pop(next(iter(self._open)), None)
            with self._lock:
                self._tally.runs += 1
                self._tally.given_up += 1

    def _close(self, span: str | None) -> _Query | None:
        if span == _outermost.get():
            _outermost.set(None)
        return self._open.pop(span or "", None)

    def _ends(self, event: QueryEndEvent) -> None:
        query = self._close(event.span_id)
        # A guard reports its own streams.
        if query is None or is_guarded(event.response):
            return
        question = event.query if isinstance(event.query, str) else event.query.query_str
        response: Any = event.response
        try:
            reply = read(response)
            contexts = as_documents(reply.nodes)
        except Exception as error:  # a user's own nodes and models may raise anything
            self._over(query, _unreadable(question, error))
            return
        if reply.text is not None:
            self._over(query, Said(question, reply.text, contexts))
            return
        reading = Reading(response)

        def told(text: str | None) -> None:
            with _logged():  # it runs in the code of whoever reads the stream
                try:
                    said = None if text is None else Said(question, text + reading.end(), contexts)
                except Exception as error:  # as above
                    said = _unreadable(question, error)
                self._over(query, said)

        follow = _afollowed if isinstance(response, AsyncStreamingResponse) else _followed
        inside = partial(self._inside, query)
        response.response_gen = follow(response.response_gen, reading.take, inside, told)

    @contextmanager
    def _inside(self, query: _Query) -> Iterator[None]:
        """Note the query as under way while its stream is read.

        The engine may call its models only then.
        """
        before = _outermost.get()
        self._open[query.span] = query
        _outermost.set(query.span)
        try:
            yield
        finally:
            _outermost.set(before)
            self._open.pop(query.span, None)

    def _guarded(self, event: OutcomeEvent) -> None:
        around = self._around()
        query = _Query(event.span_id or event.id_, event.tags)
        if around is not None:
            around.guarded = True
            query.root, query.meter = around.root, around.meter
        self._over(query, Said(), event.trace)

    # --- Ended runs ----------------------------------------------------------------------------

    def _over(self, query: _Query, said: Said | None, trace: Trace | None = None) -> None:
        """Queue an ended run, to be scored or recorded.

        Args:
            query: The run.
            said: The question and the answer. None: the run has no answer.
            trace: The trace of the guard that made the answer, if any.
        """
        if query.guarded or (self._tags and self._tags.isdisjoint(query.tags)):
            return
        sampled = self._samples(query.root)
        with self._lock:
            self._tally.runs += 1
            self._tally.unsampled += not sampled
            self._tally.unanswered += sampled and said is None
        if sampled and said is not None:
            self._recorder.put(Finished(query.about(trace), said, query.meter.usage, trace))

    def _samples(self, span: str) -> bool:
        digest = hashlib.blake2b(span.encode(), digest_size=8).digest()
        return int.from_bytes(digest, "big") < self._sample_rate * 2**64


class _Query:
    """Hold what is known of an outermost query, or of a guarded call."""

    def __init__(self, span: str, tags: Mapping[str, Any]) -> None:
        self.span = span
        self.root = span
        """The span of the outermost query around it."""
        self.tags = tags
        self.guarded = False
        """Whether a guard inside has reported the result, so that nothing is left to record."""
        self.meter = Meter()
        self._started = time.monotonic()
        self._current = current_span_ids()

    def about(self, trace: Trace | None) -> About:
        """Return the fields of a record that do not depend on its evaluations."""
        seconds = time.monotonic() - self._started if trace is None else trace.seconds
        return About(
            id=self.span,
            root=self.root,
            time=datetime.now(timezone.utc),
            name="query" if trace is None else "guard",
            tags=tuple(self.tags),
            metadata=plain(self.tags),
            model=self.meter.model,
            response=self.meter.reply_id,
            trace_id=self._current[0],
            span_id=self._current[1],
            seconds=seconds,
        )


def _unreadable(question: str, error: Exception) -> Said:
    why = f"the engine's response cannot be read: {type(error).__name__}: {error}"
    return Said(question, error=why)


@contextmanager
def _logged() -> Iterator[None]:
    try:
        yield
    except Exception as error:  # its message may quote an answer, so it is not logged
        _log.error("demur could not handle an event of LlamaIndex: %s", type(error).__name__)


# --- Streams that somebody else reads -------------------------------------------------------------

Take = Callable[[Any], str]
"""A function from a piece of a stream to the text in it."""
Told = Callable[[str | None], None]
"""A function that is called with the text of a stream that was read to its end, or with None if the
stream was not."""
Inside = Callable[[], AbstractContextManager[None]]
_END = object()


def _followed(stream: Any, take: Take, inside: Inside, told: Told) -> Generator[Any, None, None]:
    text, pieces = "", iter(stream)
    try:
        while True:
            with inside():  # only around the engine's work, not the reader's
                piece = next(pieces, _END)
            if piece is _END:
                break
            text += take(piece)
            yield piece
    except BaseException:
        told(None)
        raise
    finally:
        if hasattr(stream, "close"):
            stream.close()
    told(text)


async def _afollowed(
    stream: Any, take: Take, inside: Inside, told: Told
) -> AsyncGenerator[Any, None]:
    text, pieces = "", aiter(stream)
    try:
        while True:
            with inside():
                piece = await anext(pieces, _END)
            if piece is _END:
                break
            text += take(piece)
            yield piece
    except BaseException:
        told(None)
        raise
    finally:
        if hasattr(stream, "aclose"):
            await stream.aclose()
    told(text)
