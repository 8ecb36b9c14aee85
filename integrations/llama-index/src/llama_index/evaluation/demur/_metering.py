"""What the model calls of an engine cost, as LlamaIndex's events tell."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar, Token
from typing import Any

from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.instrumentation.events import BaseEvent
from llama_index.core.instrumentation.events.exception import ExceptionEvent
from llama_index.core.instrumentation.events.llm import (
    LLMChatEndEvent,
    LLMChatStartEvent,
    LLMCompletionEndEvent,
    LLMCompletionStartEvent,
)
from llama_index_instrumentation import root_dispatcher
from llama_index_instrumentation.events.span import SpanDropEvent

from demur import Usage
from demur._forks import lock
from llama_index.evaluation.demur._usage import tokens_of

_call: ContextVar[str | None] = ContextVar("demur_model_call", default=None)
"""The span of the model call in whose context this is."""
_meter: ContextVar[Meter | None] = ContextVar("demur_meter", default=None)


class Meter:
    """Adds up what is spent while it is entered, and in the threads and tasks that this sets off.

    A completion inside a chat is part of it: models that only complete chat by completing.
    """

    def __init__(self) -> None:
        self._lock = lock()
        self._open: dict[str, float] = {}
        self._usage = Usage()
        self._tokens: list[Token[Meter | None]] = []

    @property
    def usage(self) -> Usage:
        """What was spent, calls included that failed or have not ended."""
        with self._lock:
            return self._usage

    def __enter__(self) -> Meter:
        install()
        self._tokens.append(_meter.set(self))
        return self

    def __exit__(self, *error: object) -> None:
        _meter.reset(self._tokens.pop())

    def note(self, event: BaseEvent) -> None:
        """Take note of an event."""
        span = event.span_id or ""
        if isinstance(event, (LLMChatStartEvent, LLMCompletionStartEvent)):
            with self._lock:
                if _call.get() not in self._open:
                    self._open[span] = time.monotonic()
                    self._usage += Usage(calls=1)
                    _call.set(span)
        elif isinstance(event, (LLMChatEndEvent, LLMCompletionEndEvent)):
            with self._lock:
                began = self._open.pop(span, None)
                if began is not None:
                    tokens = tokens_of(event.response)
                    self._usage += Usage(
                        input_tokens=tokens["input_tokens"] if tokens else 0,
                        output_tokens=tokens["output_tokens"] if tokens else 0,
                        seconds=time.monotonic() - began,
                    )
        elif isinstance(event, (ExceptionEvent, SpanDropEvent)):
            with self._lock:
                self._open.pop(span, None)


@contextmanager
def unmetered() -> Iterator[None]:
    """Have no meter count what happens in the block, but for one that is entered in it."""
    token = _meter.set(None)
    try:
        yield
    finally:
        _meter.reset(token)


class _Listener(BaseEventHandler):
    """Hears every model call of the process, and tells the meter that is running there."""

    @classmethod
    def class_name(cls) -> str:
        return "DemurMeter"

    def handle(self, event: BaseEvent, **kwargs: Any) -> None:
        if (meter := _meter.get()) is not None:
            meter.note(event)


_listener = _Listener()


def install() -> None:
    """Listen, if nobody has taken the listener away."""
    if not any(handler is _listener for handler in root_dispatcher.event_handlers):
        root_dispatcher.add_event_handler(_listener)
