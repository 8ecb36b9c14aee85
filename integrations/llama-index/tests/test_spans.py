"""What lies in what, and when chats begin and end."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from llama_index.core.base.response.schema import StreamingResponse
from llama_index.core.chat_engine.types import StreamingAgentChatResponse
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.instrumentation.events import BaseEvent
from llama_index.core.instrumentation.span import active_span_id
from llama_index.core.query_engine import CustomQueryEngine
from llama_index.core.types import Thread
from llama_index_instrumentation.events.span import SpanDropEvent
from pydantic import PrivateAttr

from guarded_app import judge, query_engine, speaker
from llama_index.evaluation.demur import _spans
from llama_index.evaluation.demur.chat_engine import GuardedChatEngine
from llama_index.evaluation.demur.events import ChatEndEvent, ChatStartEvent
from scored_app import Heard, added, chat_engine
from support.rag import RIGHT

dispatcher = get_dispatcher(__name__)


@pytest.fixture(autouse=True)
def installed() -> None:
    _spans.install()


def around() -> list[str]:
    """The functions in which this runs, the innermost first."""
    own = active_span_id.get()
    assert own is not None
    spans = (own, *_spans.enclosing(own))
    return [_spans.method_of(one) for one in spans if "<locals>" in one]


def test_spans_in_spans_in_threads_and_tasks() -> None:
    found: dict[str, list[str]] = {}

    @dispatcher.span
    def inner(where: str) -> None:
        found[where] = around()

    @dispatcher.span
    async def ainner(where: str) -> None:
        await asyncio.sleep(0)
        found[where] = around()

    @dispatcher.span
    def outer() -> None:
        inner("call")
        thread = Thread(target=inner, args=("thread",))
        thread.start()
        thread.join()

    @dispatcher.span
    async def aouter() -> None:
        await asyncio.gather(*(ainner(str(at)) for at in range(3)))
        await asyncio.create_task(ainner("task"))

    outer()
    asyncio.run(aouter())
    assert {where: tuple(names) for where, names in found.items()} == {
        "call": ("inner", "outer"),
        "thread": ("inner", "outer"),
        **dict.fromkeys(["0", "1", "2", "task"], ("ainner", "aouter")),
    }


def test_what_has_ended_is_not_kept() -> None:
    @dispatcher.span
    def fails() -> None:
        raise KeyError("x")

    before = dict(_spans._open)
    query_engine(RIGHT).query("How tall?")
    with pytest.raises(KeyError):
        fails()
    assert _spans._open == before
    assert _spans._listener.completed_spans == _spans._listener.dropped_spans == []


def test_what_begins_while_a_stream_is_read_lies_in_its_span() -> None:
    found: list[str] = []

    @dispatcher.span
    def deeper() -> None:
        found.extend(_spans.enclosing(str(active_span_id.get())))

    @dispatcher.span
    def step() -> None:
        deeper()

    with _spans.reading("Engine.query-x"):
        step()
    assert [_spans.method_of(one) for one in found[:1]] == ["step"]
    assert found[1:] == ["Engine.query-x"]


def test_of_too_many_the_oldest_are_forgotten() -> None:
    kept: dict[str, int] = {}
    for at in range(1000):
        _spans.keep(kept, str(at), at, 100)
        assert str(at) in kept
        assert len(kept) <= 100


def test_install_adds_one_listener_and_puts_it_back() -> None:
    root = get_dispatcher()
    before = [*root.span_handlers]
    try:
        for _ in range(2):
            _spans.install()
        assert sum(one is _spans._listener for one in root.span_handlers) == 1
        root.span_handlers = []
        _spans.install()
        assert root.span_handlers == [_spans._listener]
    finally:
        root.span_handlers = before


@pytest.mark.parametrize("method", ["chat", "achat", "stream_chat", "astream_chat"])
def test_a_chat_is_told_at_its_beginning_and_its_end(method: str) -> None:
    engine, heard = chat_engine("context"), Heard()

    async def ask() -> Any:
        response = await getattr(engine, method)("How tall?")
        if isinstance(response, StreamingAgentChatResponse):
            _ = [piece async for piece in response.async_response_gen()]
        return response

    with added(heard):
        if method.startswith("a"):
            response = asyncio.run(ask())
        else:
            response = getattr(engine, method)("How tall?")
    (start,), (end,) = heard.of(ChatStartEvent), heard.of(ChatEndEvent)
    assert start.message == end.message == "How tall?"
    assert end.response is response
    assert start.span_id == end.span_id
    assert start.span_id.startswith(f"ContextChatEngine.{method}-")
    if method == "stream_chat":
        assert [*response.response_gen]


class Dumps(BaseEventHandler):
    """A handler that writes down what demur tells."""

    _written: dict[str, str] = PrivateAttr(default_factory=dict)

    def handle(self, event: BaseEvent, **kwargs: Any) -> None:
        if event.class_name().startswith("Demur"):
            self._written[event.class_name()] = event.model_dump_json()


def test_handlers_that_dump_events_leave_streams_to_their_readers() -> None:
    class Streams(CustomQueryEngine):
        def custom_query(self, query_str: str) -> Any:
            return StreamingResponse(iter(RIGHT.split(" ")))

    engine = chat_engine("context", RIGHT)
    guarded, dumps = GuardedChatEngine(engine, judge()), Dumps()
    with added(dumps):
        assert "".join(guarded.stream_chat("How tall?").response_gen) == RIGHT
        assert " ".join(Streams().query("How tall?").response_gen) == RIGHT
    assert json.loads(dumps._written["DemurChatEndEvent"])["message"] == "How tall?"
    assert json.loads(dumps._written["DemurOwnQueryEndEvent"])["query"] == "How tall?"


def test_a_chat_that_raises_tells_no_end() -> None:
    engine, heard = chat_engine("simple"), Heard()
    engine._llm = speaker()  # has nothing to say
    with added(heard), pytest.raises(IndexError):
        engine.chat(message="How tall?")
    (start,) = heard.of(ChatStartEvent)
    assert start.message == "How tall?"
    assert not heard.of(ChatEndEvent)
    assert start.span_id in {one.span_id for one in heard.of(SpanDropEvent)}


def test_queries_are_no_chats() -> None:
    heard = Heard()
    with added(heard):
        query_engine(RIGHT).query("How tall?")
    assert not heard.of(ChatStartEvent, ChatEndEvent)
