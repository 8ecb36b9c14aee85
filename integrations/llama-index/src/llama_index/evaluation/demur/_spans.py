"""Which span lies in which, and when chats begin and end: LlamaIndex's events tell neither."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any, TypeVar

from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.chat_engine.types import BaseChatEngine
from llama_index.core.instrumentation.events import BaseEvent
from llama_index.core.instrumentation.span import BaseSpan, active_span_id
from llama_index.core.instrumentation.span_handlers import BaseSpanHandler
from llama_index.core.schema import QueryBundle
from llama_index_instrumentation import get_dispatcher, root_dispatcher
from pydantic import Field

from llama_index.evaluation.demur.events import ChatEndEvent, ChatStartEvent

_CHATS = frozenset({"chat", "achat", "stream_chat", "astream_chat"})
_QUERIES = frozenset({"query", "aquery"})
_INNER = frozenset({"_query", "_aquery"})
"""A query engine's own work, in a span inside that of `query`."""
_UUID = 36
"""The length of what a span's id ends in, after a hyphen."""
_MOST_OPEN = 100_000

_open: dict[str, str | None] = {}
"""Each open span's parent. Only what is atomic is done here, so that no lock is needed: a span may
end in any thread, in a process that was forked, and in a garbage collection."""
_reading: ContextVar[tuple[str | None, str] | None] = ContextVar("demur_reading", default=None)
"""The span in which a stream is read, and the one that it came from, if one is read here."""
_dispatcher = get_dispatcher(__name__)
_Value = TypeVar("_Value")


def method_of(span_id: str) -> str:
    """The method of which a span is a call."""
    return span_id[: -_UUID - 1].rpartition(".")[2]


def class_of(span_id: str) -> str:
    """The class of the object whose method was called; "" for a function."""
    return span_id[: -_UUID - 1].partition(".")[0] if "." in span_id else ""


def enclosing(span_id: str) -> Iterator[str]:
    """The spans in which a span lies, the innermost first."""
    while (parent := _open.get(span_id)) is not None:
        yield parent
        span_id = parent


def engine_span() -> str | None:
    """The span of the engine's call in which this runs."""
    span_id = active_span_id.get()
    if span_id is None or method_of(span_id) not in _INNER:
        return span_id
    return _open.get(span_id, span_id)


@contextmanager
def reading(span_id: str) -> Iterator[None]:
    """Have spans that begin in the block lie in this one, which has ended: a stream is read.

    Engines call their models when the first piece is read, in whatever context the reader has.
    """
    token = _reading.set((active_span_id.get(), span_id))
    try:
        yield
    finally:
        with suppress(ValueError):  # in another context: a task is garbage whose loop has gone
            _reading.reset(token)


def keep(kept: dict[str, _Value], key: str, value: _Value, most: int) -> None:
    """Keep a value in a mapping that holds so many at most: of more, the oldest are forgotten."""
    kept[key] = value
    if len(kept) > most:
        for oldest in [*kept][: max(1, most // 10)]:
            kept.pop(oldest, None)


class OwnQueryStartEvent(BaseEvent):
    """An engine with a `query` of its own was asked: LlamaIndex's CustomQueryEngine tells nothing.

    It is no QueryStartEvent, so that other handlers hear what they did.
    """

    query: str

    @classmethod
    def class_name(cls) -> str:
        return "DemurOwnQueryStartEvent"


class OwnQueryEndEvent(BaseEvent):
    """As `OwnQueryStartEvent`: it has returned."""

    query: str
    response: Any = Field(exclude=True)
    """It may be a stream, and to dump that would be to read it."""

    @classmethod
    def class_name(cls) -> str:
        return "DemurOwnQueryEndEvent"


class _Listener(BaseSpanHandler[BaseSpan]):
    """Hears every span of the process. It keeps none: LlamaIndex's list of the completed grows."""

    @classmethod
    def class_name(cls) -> str:
        return "DemurSpans"

    def span_enter(
        self,
        id_: str,
        bound_args: inspect.BoundArguments,
        instance: Any | None = None,
        parent_id: str | None = None,
        tags: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        read = _reading.get()
        if read is not None and read[0] == parent_id:
            parent_id = read[1]
        keep(_open, id_, parent_id, _MOST_OPEN)
        if _is_chat(id_, instance):
            _dispatcher.event(ChatStartEvent(message=_asked(bound_args), span_id=id_))
        elif _is_own_query(id_, instance):
            _dispatcher.event(OwnQueryStartEvent(query=_asked(bound_args), span_id=id_))

    def span_exit(
        self,
        id_: str,
        bound_args: inspect.BoundArguments,
        instance: Any | None = None,
        result: Any | None = None,
        **kwargs: Any,
    ) -> None:
        _open.pop(id_, None)
        if _is_chat(id_, instance):
            message = _asked(bound_args)
            _dispatcher.event(ChatEndEvent(message=message, response=result, span_id=id_))
        elif _is_own_query(id_, instance):
            query = _asked(bound_args)
            _dispatcher.event(OwnQueryEndEvent(query=query, response=result, span_id=id_))

    def span_drop(
        self,
        id_: str,
        bound_args: inspect.BoundArguments,
        instance: Any | None = None,
        err: BaseException | None = None,
        **kwargs: Any,
    ) -> None:
        _open.pop(id_, None)  # LlamaIndex has told a SpanDropEvent

    # --- What makes spans, which are not wanted ------------------------------------------------

    def new_span(self, *args: Any, **kwargs: Any) -> None:
        return None

    def prepare_to_exit_span(self, *args: Any, **kwargs: Any) -> None:
        return None

    def prepare_to_drop_span(self, *args: Any, **kwargs: Any) -> None:
        return None


def _is_chat(span_id: str, instance: Any) -> bool:
    return method_of(span_id) in _CHATS and isinstance(instance, BaseChatEngine)


def _is_own_query(span_id: str, instance: Any) -> bool:
    method = method_of(span_id)
    if method not in _QUERIES or not isinstance(instance, BaseQueryEngine):
        return False
    return inspect.getattr_static(instance, method) is not vars(BaseQueryEngine)[method]


def _asked(bound_args: inspect.BoundArguments) -> str:
    given = bound_args.arguments
    asked = given.get("message", next(iter(given.values()), ""))
    return asked.query_str if isinstance(asked, QueryBundle) else str(asked)


_listener = _Listener()


def install() -> None:
    """Listen, if nobody has taken the listener away."""
    if not any(handler is _listener for handler in root_dispatcher.span_handlers):
        root_dispatcher.add_span_handler(_listener)
