"""ScoreEventHandler: answers scored in the background, out of LlamaIndex's events."""

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

from demur._forks import lock
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
"""Queries under way at a time; of more, the oldest are given up."""

_outermost: ContextVar[str | None] = ContextVar("demur_outermost_query", default=None)
"""The span of the outermost query in whose context this runs; of one that is over, maybe."""


class ScoreEventHandler(BaseEventHandler):
    """Score what LlamaIndex's dispatcher tells of answers, in the background, and write it down.

    It takes note of every outermost query (`QueryStartEvent`, `QueryEndEvent`): question, answer,
    source nodes, and what the models cost that were called meanwhile. Threads of its own have the
    answer scored. It never raises into the application and, with `on_full="drop"`, never holds it
    up. What a `GuardedQueryEngine` or a `GuardedChatEngine` finds (`OutcomeEvent`) is recorded as
    it was found. It is not scored again, and neither are the answers of engines around it and of
    the engine inside. What demur's evaluators query is left out.

    What a stream says is told by no event: the handler follows the response's `response_gen`, and
    has the answer scored when somebody has read it to its end. A stream that is left before has no
    answer, and one that nobody begins to read is not counted.

    It hears nothing of these, and does not score them:

    - chat engines, which tell no event that has the message;
    - engines with a `query` of their own that tells no event, such as `CustomQueryEngine`;
    - agents that are workflows.

    A guard tells all of them: `GuardedChatEngine(engine, evaluator, on_fail=Annotate(note=""))`
    judges each answer, changes none, and tells the handler what it found. Or the application hands
    the response to an evaluator's `evaluate_response`.

    Examples:
        >>> handler = ScoreEventHandler(RefCheckerEvaluator(), sink="scores.sqlite")
        >>> get_dispatcher().add_event_handler(handler)
        >>> index.as_query_engine().query("How tall is the tower?")
        >>> handler.flush(60)

    Args:
        evaluators: Ours, other evaluators of LlamaIndex, or Runnables and functions from `Sample`
            to `Evaluation`; with a threshold or without. With none, only what guarded engines find
            is recorded.
        sink: Where records go, as `demur.ScoreCallbackHandler` takes it, like what is not named
            here.
        sample_rate: The share of runs to record, in [0, 1]. Which ones is decided by the span's id,
            so that all handlers choose the same.
        on_full: What becomes of a run for which there is no room: "drop", it is counted and not
            scored; "block", whoever asked the engine waits. LlamaIndex calls handlers where the
            engine runs, so in asyncio the whole loop waits then, until the handler's threads have
            made room.
        tags: Record only runs that have one of these keys among their `instrument_tags`; one, or
            several. A record has the keys as its tags, and in its metadata the values.

    Raises:
        ValueError, TypeError, DemurError, MissingExtraError: As `demur.ScoreCallbackHandler` does.
    """

    _recorder: Recorder = PrivateAttr()
    _sample_rate: float = PrivateAttr()
    _tags: frozenset[str] = PrivateAttr()
    _open: dict[str, _Query] = PrivateAttr(default_factory=dict)
    """The outermost queries that are under way, by their spans."""
    _tally: Tally = PrivateAttr(default_factory=Tally)
    _lock: Any = PrivateAttr(default_factory=lock)
    """For the tally."""

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
        """See the class."""
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
        """Its name in LlamaIndex."""
        return "ScoreEventHandler"

    @property
    def counts(self) -> RunCounts:
        """What became of the runs so far. A run counts when it is over."""
        return self._recorder.counts(self._tally)

    def flush(self, timeout: float | None = None) -> bool:
        """As `demur.ScoreCallbackHandler.flush`: whether all that ended before is recorded."""
        return self._recorder.flush(timeout)

    def close(self, timeout: float | None = None) -> bool:
        """As `demur.ScoreCallbackHandler.close`: whether all that was taken in is recorded."""
        return self._recorder.close(timeout)

    def __copy__(self) -> Self:
        """Itself: what is under way cannot be copied."""
        return self

    def __deepcopy__(self, memo: Any = None) -> Self:
        """Itself."""
        return self

    # --- What is heard -------------------------------------------------------------------------

    def handle(self, event: BaseEvent, **kwargs: Any) -> None:
        """Take note of an event. Never raises."""
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
        """The outermost query in which this runs, if it is under way."""
        return self._open.get(_outermost.get() or "")

    def _starts(self, event: QueryStartEvent) -> None:
        span = event.span_id
        # Where a second handler hears the event, the first has set the variable.
        inside = _outermost.get() != span and self._around() is not None
        if span is None or inside or is_metered():  # inside a guard's engine the guard tells
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
        # What a guard lets through when it is read is told by the guard.
        if query is None or is_guarded(event.response):
            return
        question = event.query if isinstance(event.query, str) else event.query.query_str
        response: Any = event.response
        try:
            reply = read(response)
            contexts = as_documents(reply.nodes)
        except Exception as error:  # nodes and models of a user's own may raise anything
            self._over(query, _unreadable(question, error))
            return
        if reply.text is not None:
            self._over(query, Said(question, reply.text, contexts))
            return
        reading = Reading(response)

        def told(text: str | None) -> None:
            with _logged():  # it is called in the reader's own code
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
        """While a stream is read, for which the engine may call its models only now."""
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

    # --- What is over --------------------------------------------------------------------------

    def _over(self, query: _Query, said: Said | None, trace: Trace | None = None) -> None:
        """Have a run scored, or recorded. Without anything said it has no answer."""
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
    """An outermost query, or the call of a guard."""

    def __init__(self, span: str, tags: Mapping[str, Any]) -> None:
        self.span = span
        self.root = span
        """The span of the outermost query around it."""
        self.tags = tags
        self.guarded = False
        """Whether a guard inside has told what came of it: there is nothing to add."""
        self.meter = Meter()
        self._started = time.monotonic()
        self._current = current_span_ids()

    def about(self, trace: Trace | None) -> About:
        """What a record says of it, whatever was found of its answer."""
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
    except Exception as error:  # what it says may quote an answer
        _log.error("demur could not follow an event of LlamaIndex's: %s", type(error).__name__)


# --- Streams, which somebody else reads -----------------------------------------------------------

Take = Callable[[Any], str]
"""From a piece to the text in it."""
Told = Callable[[str | None], None]
"""Is told the text of a stream that was read to its end; None of one that was not."""
Inside = Callable[[], AbstractContextManager[None]]
_END = object()


def _followed(stream: Any, take: Take, inside: Inside, told: Told) -> Generator[Any, None, None]:
    text, pieces = "", iter(stream)
    try:
        while True:
            with inside():  # not around what the reader does in between
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
