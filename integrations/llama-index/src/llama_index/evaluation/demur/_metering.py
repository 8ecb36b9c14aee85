"""Who calls models, and what that costs: engines, whose calls are counted, and judges.

What judges spend is told with what they find, so no meter of an engine around them counts it.
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
from demur._forks import lock
from llama_index.evaluation.demur._usage import tokens_of

_call: ContextVar[str | None] = ContextVar("demur_model_call", default=None)
"""The span of the model call in whose context this is."""
_meter: ContextVar[Meter | None] = ContextVar("demur_meter", default=None)
_judging: ContextVar[bool] = ContextVar("demur_judging", default=False)


def is_judging() -> bool:
    """Whether a judge is at work in this context: what it asks is no question of anyone's."""
    return _judging.get()


def is_metered() -> bool:
    """Whether a meter runs in this context: a guard asks its engine, or reads the answer."""
    return _meter.get() is not None


@contextmanager
def while_judging() -> Iterator[None]:
    """Have nothing counted or recorded of what happens in the block, and in what it sets off.

    A meter that is entered in the block counts as ever.
    """
    judging, meter = _judging.set(True), _meter.set(None)
    try:
        yield
    finally:
        _meter.reset(meter)
        _judging.reset(judging)


class Meter:
    """Adds up what is spent while it is entered, and in the threads and tasks that this sets off.

    A completion inside a chat is part of it: models that only complete chat by completing.
    """

    def __init__(self) -> None:
        self.model: str | None = None
        """Which model replied last, as far as it is told."""
        self.reply_id: str | None = None
        """What its provider calls that reply."""
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
    # "unknown" is what LlamaIndex says where an LLM does not tell its name.
    return next(
        (one for one in values if isinstance(one, str) and one not in ("", "unknown")), None
    )


class _Listener(BaseEventHandler):
    """Tells the meter that is running, if one is, of the event. Elsewhere it does nothing."""

    @classmethod
    def class_name(cls) -> str:
        return "DemurMeter"

    def handle(self, event: BaseEvent, **kwargs: Any) -> None:
        if (meter := _meter.get()) is not None:
            meter.note(event)


_listener = _Listener()


def _listen() -> None:
    """Hear LlamaIndex's events, which are all that tells what an engine's models cost."""
    if not any(handler is _listener for handler in root_dispatcher.event_handlers):
        root_dispatcher.add_event_handler(_listener)
