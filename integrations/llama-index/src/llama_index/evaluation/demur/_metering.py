"""Count what engines spend on models, and keep what judges spend apart.

The cost of a judge is in its evaluation, so a meter around an engine does not count it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
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
from demur._system import lock
from llama_index.evaluation.demur._usage import tokens_of

_call: ContextVar[str | None] = ContextVar("demur_model_call", default=None)
"""The span of the model call in whose context the code runs."""
_meter: ContextVar[Meter | None] = ContextVar("demur_meter", default=None)
_judging: ContextVar[bool] = ContextVar("demur_judging", default=False)


def is_judging() -> bool:
    """Return whether an evaluator runs in this context; its queries are not a user's."""
    return _judging.get()


def is_metered() -> bool:
    """Return whether a meter runs in this context: a guard asks its engine or reads the answer."""
    return _meter.get() is not None


@contextmanager
def while_judging() -> Iterator[None]:
    """Exclude the block, and everything that it starts, from counts and records.

    A meter that is entered inside the block counts as usual.
    """
    judging, meter = _judging.set(True), _meter.set(None)
    try:
        yield
    finally:
        _meter.reset(meter)
        _judging.reset(judging)


class Meter:
    """Add up what is spent while the meter is entered, in the threads and tasks started then too.

    A completion inside a chat counts as part of the chat, because a model without a chat interface
    answers a chat with a completion.
    """

    def __init__(self) -> None:
        self.model: str | None = None
        """The model that replied last, if an event names it."""
        self.reply_id: str | None = None
        """The provider's id of that reply."""
        self._lock = lock()
        self._open: dict[str, float] = {}
        self._usage = Usage()
        self._tokens: list[Token[Meter | None]] = []

    @property
    def usage(self) -> Usage:
        """Return what was spent, with calls that failed or have not ended."""
        with self._lock:
            return self._usage

    def __enter__(self) -> Meter:
        _listen()
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
                    self.model, self.reply_id = _first(event.model_dict, _MODEL), None
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
                    raw = getattr(event.response, "raw", None)
                    self.model = _first(raw, ("model",)) or self.model
                    self.reply_id = _first(raw, ("id",))
        elif isinstance(event, (ExceptionEvent, SpanDropEvent)):
            with self._lock:
                self._open.pop(span, None)


_MODEL = ("model", "model_name", "model_id")


def _first(told: object, names: tuple[str, ...]) -> str | None:
    values = (
        told.get(name) if isinstance(told, Mapping) else getattr(told, name, None) for name in names
    )
    # LlamaIndex writes "unknown" for an LLM that does not give its name.
    return next(
        (one for one in values if isinstance(one, str) and one not in ("", "unknown")), None
    )


class _Listener(BaseEventHandler):
    """Pass events to the meter that runs in the context, if there is one."""

    @classmethod
    def class_name(cls) -> str:
        return "DemurMeter"

    def handle(self, event: BaseEvent, **kwargs: Any) -> None:
        if (meter := _meter.get()) is not None:
            meter.note(event)


_listener = _Listener()


def _listen() -> None:
    """Subscribe to LlamaIndex's events, the only source of what an engine's models cost."""
    if not any(handler is _listener for handler in root_dispatcher.event_handlers):
        root_dispatcher.add_event_handler(_listener)
