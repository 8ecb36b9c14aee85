"""LlamaIndex's events in, engines' runs that are over out."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import NAMESPACE_OID, UUID, uuid5

from llama_index.core.instrumentation.events import BaseEvent
from llama_index.core.instrumentation.events.chat_engine import (
    StreamChatDeltaReceivedEvent,
    StreamChatEndEvent,
    StreamChatErrorEvent,
)
from llama_index.core.instrumentation.events.exception import ExceptionEvent
from llama_index.core.instrumentation.events.llm import (
    LLMChatEndEvent,
    LLMChatStartEvent,
    LLMCompletionEndEvent,
    LLMCompletionStartEvent,
)
from llama_index.core.instrumentation.events.query import QueryEndEvent, QueryStartEvent
from llama_index.core.schema import NodeWithScore, QueryType
from llama_index_instrumentation.events.span import SpanDropEvent

from demur import DemurError
from demur.guard import evaluation_of_event
from demur.observe import Finished, Runs, Said, is_scoring
from llama_index.evaluation.demur import _spans
from llama_index.evaluation.demur._judging import is_evaluating, is_judging
from llama_index.evaluation.demur._model_calls import ModelCalls
from llama_index.evaluation.demur._nodes import as_documents
from llama_index.evaluation.demur._reply import Reply, read
from llama_index.evaluation.demur._spans import OwnQueryEndEvent, OwnQueryStartEvent
from llama_index.evaluation.demur._streams import Follower, follow, writes_itself
from llama_index.evaluation.demur.events import (
    ChatEndEvent,
    ChatStartEvent,
    EvaluationEvent,
    OutcomeEvent,
)

_log = logging.getLogger("demur.observe")

_WRITES = frozenset({"write_response_to_history", "awrite_response_to_history"})
_MOST = 10_000
"""Streams that are written, and of which only half is known."""


class EngineRuns:
    """What events tell of queries and chats, put together. Safe in threads."""

    def __init__(self, runs: Runs, over: Callable[[Finished], None]) -> None:
        """`over` is told of each run that is to be scored or recorded, when it is over."""
        self._runs = runs
        self._over = over
        self._calls = ModelCalls(runs)
        self._halves: dict[str, _Half] = {}
        """Of a stream that the engine itself writes: what was told first, by the chat's span."""
        self._pieces: dict[str, dict[str, str]] = {}
        """What is written so far, by the writing's span and the event's id: the handler may be
        there twice."""

    def take(self, event: BaseEvent) -> None:
        """Take note of an event. Never raises."""
        heard = _HEARD.get(type(event))
        if heard is not None and event.span_id is not None:
            with _logged():
                heard(self, event, event.span_id)

    # --- Engines -------------------------------------------------------------------------------

    def _query_starts(self, event: QueryStartEvent | OwnQueryStartEvent, span: str) -> None:
        self._start(_text_of(event.query), event, span)

    def _chat_starts(self, event: ChatStartEvent, span: str) -> None:
        self._start(event.message, event, span)

    def _start(self, question: str, event: BaseEvent, span: str) -> None:
        _spans.install()
        if is_judging() or is_scoring() or is_evaluating():
            return
        self._runs.start(
            question,
            run_id=_run_of(span),
            answers=True,
            parent_run_id=self._engine_around(span),
            name=_spans.class_of(span) or None,
            tags=[*event.tags],
            metadata=event.tags,
        )

    def _engine_around(self, span: str) -> UUID | None:
        """The run in which a span lies, as far as it is known."""
        return next(filter(self._runs.__contains__, _around(span)), None)

    def _query_ends(self, event: QueryEndEvent | OwnQueryEndEvent, span: str) -> None:
        self._end(span, _text_of(event.query), event.response)

    def _chat_ends(self, event: ChatEndEvent, span: str) -> None:
        self._end(span, event.message, event.response)

    def _end(self, span: str, question: str, response: Any) -> None:
        run = _run_of(span)
        if run not in self._runs:  # a judge's, or one that began before anybody listened
            return
        if response is None:  # what LlamaIndex tells of a future that failed
            self._fail(span)
            return
        if self._runs.capture(run) is None:  # nobody wants it
            self._runs.end(run, None)
            return
        try:
            reply = read(response)
        except DemurError as error:
            self._ended(run, Said(question, error=str(error)))
            return
        except Exception as error:  # nodes and models of a user's own may raise anything
            what = f"the engine's response cannot be read: {type(error).__name__}: {error}"
            self._ended(run, Said(question, error=what))
            return
        if reply.text is not None:
            self._ended(run, _said(question, reply.text, reply.nodes))
        elif writes_itself(response):
            self._meet(span, _Half(question, reply))
        else:
            # Nobody has read it yet.
            ended = partial(self._stream_ended, run, question, reply.nodes)
            if not follow(response, Follower(span, ended, partial(self._left, run))):
                self._ended(run, _said(question, "", reply.nodes))

    def _ended(self, run: UUID, said: Said) -> None:
        self._put(self._runs.end(run, said))

    def _stream_ended(
        self, run: UUID, question: str, nodes: list[NodeWithScore], text: str
    ) -> None:
        with _logged():  # it is called in the reader's own code
            self._ended(run, _said(question, text, nodes))

    def _left(self, run: UUID) -> None:
        with _logged():
            self._put(self._runs.fail(run))

    def _dropped(self, event: SpanDropEvent, span: str) -> None:
        if span in self._calls:
            self._calls.fails(span)
        elif _run_of(span) in self._runs:
            self._fail(span)
        elif _spans.method_of(span) in _WRITES:
            self._written(span, failed=True)

    def _fail(self, span: str) -> None:
        self._halves.pop(span, None)
        self._left(_run_of(span))

    def _put(self, finished: Finished | None) -> None:
        if finished is not None:
            self._over(finished)

    # --- Streams that the engine reads into its memory, in a thread or a task -------------------

    def _writes(self, event: StreamChatDeltaReceivedEvent, span: str) -> None:
        if span not in self._pieces:
            if self._chat_of(span) is None:
                return
            _spans.keep(self._pieces, span, {}, _MOST)
        self._pieces[span][event.id_] = event.delta

    def _write_ends(self, event: StreamChatEndEvent, span: str) -> None:
        self._written(span, failed=False)

    def _write_fails(self, event: StreamChatErrorEvent, span: str) -> None:
        self._written(span, failed=True)

    def _written(self, span: str, *, failed: bool) -> None:
        text = "".join(self._pieces.pop(span, {}).values()).strip()  # as the engine remembers it
        chat = self._chat_of(span)
        if chat is not None:
            self._meet(chat, _Half(text=text, failed=failed))

    def _chat_of(self, span: str) -> str | None:
        """The span of the chat whose stream is written in this one, if somebody wants that chat."""
        chat = next((one for one in _spans.enclosing(span) if _run_of(one) in self._runs), None)
        wanted = chat is not None and self._runs.capture(_run_of(chat)) is not None
        return chat if wanted else None

    def _meet(self, chat: str, half: _Half) -> None:
        """The chat has returned, or its stream is written: when both are so, the run is over."""
        if len(self._halves) >= _MOST:
            self._halves.pop(next(iter([*self._halves])), None)
        first = self._halves.setdefault(chat, half)  # in one step: they come from two threads
        returned, written = (half, first) if first.reply is None else (first, half)
        if returned.reply is None or written.reply is not None:
            return  # it is the first, or the same once more
        self._halves.pop(chat, None)
        if written.failed:
            self._fail(chat)
        else:
            said = _said(returned.question, written.text, returned.reply.nodes)
            self._ended(_run_of(chat), said)

    # --- Model calls ---------------------------------------------------------------------------

    def _call_starts(self, event: LLMChatStartEvent | LLMCompletionStartEvent, span: str) -> None:
        if not (is_judging() or is_scoring()):
            self._calls.starts(event, span, self._engine_around(span))

    def _call_ends(self, event: LLMChatEndEvent | LLMCompletionEndEvent, span: str) -> None:
        self._calls.ends(event, span)

    def _call_fails(self, event: ExceptionEvent, span: str) -> None:
        self._calls.fails(span)

    # --- Guards --------------------------------------------------------------------------------

    def _judged(self, event: EvaluationEvent, span: str) -> None:
        self._runs.evaluated(
            self._guarded_run(span), event.attempt, evaluation_of_event(event.dict())
        )

    def _guarded(self, event: OutcomeEvent, span: str) -> None:
        self._runs.guarded(self._guarded_run(span), event.trace)

    def _guarded_run(self, span: str) -> UUID:
        """The run of the engine in whose span a guard speaks."""
        own = _run_of(span)
        return own if own in self._runs else self._engine_around(span) or own


@dataclass(frozen=True, eq=False)
class _Half:
    """Of a chat that streams and is written by its engine: that it returned, or is written."""

    question: str = ""
    reply: Reply | None = None
    text: str = ""
    failed: bool = False


_HEARD: dict[type[BaseEvent], Callable[[EngineRuns, Any, str], None]] = {
    QueryStartEvent: EngineRuns._query_starts,
    QueryEndEvent: EngineRuns._query_ends,
    OwnQueryStartEvent: EngineRuns._query_starts,
    OwnQueryEndEvent: EngineRuns._query_ends,
    ChatStartEvent: EngineRuns._chat_starts,
    ChatEndEvent: EngineRuns._chat_ends,
    StreamChatDeltaReceivedEvent: EngineRuns._writes,
    StreamChatEndEvent: EngineRuns._write_ends,
    StreamChatErrorEvent: EngineRuns._write_fails,
    SpanDropEvent: EngineRuns._dropped,
    LLMChatStartEvent: EngineRuns._call_starts,
    LLMCompletionStartEvent: EngineRuns._call_starts,
    LLMChatEndEvent: EngineRuns._call_ends,
    LLMCompletionEndEvent: EngineRuns._call_ends,
    ExceptionEvent: EngineRuns._call_fails,
    EvaluationEvent: EngineRuns._judged,
    OutcomeEvent: EngineRuns._guarded,
}


@contextmanager
def _logged() -> Iterator[None]:
    """LlamaIndex drops what a handler raises, and a reader of a stream must not be given it."""
    try:
        yield
    except Exception:
        _log.exception("demur could not follow an event of LlamaIndex's")


def _run_of(span: str) -> UUID:
    try:
        return UUID(span[-36:])
    except ValueError:  # of somebody's own making
        return uuid5(NAMESPACE_OID, span)


def _around(span: str) -> Iterator[UUID]:
    return map(_run_of, _spans.enclosing(span))


def _text_of(query: QueryType) -> str:
    return query if isinstance(query, str) else query.query_str


def _said(question: str, text: str, nodes: list[NodeWithScore]) -> Said:
    try:
        return Said(question, text, as_documents(nodes))
    except Exception as error:  # nodes of a user's own class may raise anything
        return Said(question, error=f"a source node has no text: {type(error).__name__}: {error}")
