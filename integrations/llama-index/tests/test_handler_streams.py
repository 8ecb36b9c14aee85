"""Streams are scored when somebody has read them, and read as if nobody else did."""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
from collections.abc import Sequence
from typing import Any

import pytest
from langchain_core.messages import BaseMessage
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, ChatResponseGen
from llama_index.core.base.response.schema import (
    AsyncStreamingResponse,
    Response,
    StreamingResponse,
)
from llama_index.core.chat_engine.types import StreamingAgentChatResponse
from llama_index.core.llms import MockLLM
from llama_index.core.llms.callbacks import llm_chat_callback
from llama_index.core.query_engine import CustomQueryEngine
from llama_index.core.types import Thread
from pydantic import BaseModel

from fake_llm import ScriptedCompletions, ScriptedLLM
from guarded_app import build, query_engine
from scored_app import CHAT_MODES, SPEECH, chat_engine, history, listening, memory, settled
from support.handlers import echo
from support.rag import FACTS

QUESTION = "How tall is the Amber Tower?"
WORDS = SPEECH.split()


class Breaking(ScriptedLLM):
    """Its connection is lost after the first word."""

    @llm_chat_callback()
    def stream_chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponseGen:
        def pieces() -> ChatResponseGen:
            yield ChatResponse(message=ChatMessage(content="Good"), delta="Good")
            raise ConnectionError("gone")

        return pieces()

    @llm_chat_callback()
    async def astream_chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> Any:
        async def pieces() -> Any:
            yield ChatResponse(message=ChatMessage(content="Good"), delta="Good")
            raise ConnectionError("gone")

        return pieces()


def breaking() -> Breaking:
    return Breaking(script=lambda *_: "x")


# --- Queries --------------------------------------------------------------------------------------


def test_a_stream_is_scored_when_it_was_read() -> None:
    engine = query_engine(SPEECH, streaming=True)
    with listening(echo) as (handler, records):
        response = engine.query(QUESTION)
        first = next(response.response_gen)
        assert handler.flush(5)
        assert not records.all
        assert [first, *response.response_gen] == [*engine.query(QUESTION).response_gen]
        assert settled(handler)
    record, again = records.all
    assert (record.question, record.answer) == (QUESTION, SPEECH) == (again.question, again.answer)
    assert {one.page_content.splitlines()[-1] for one in record.contexts} <= {*FACTS}
    usage = record.attempts[0].usage
    assert (usage.calls, usage.output_tokens, record.model) == (1, len(WORDS), "scripted")


@pytest.mark.parametrize("reads", ["str", "get_response", "print_response_stream"])
def test_every_way_to_read_a_stream(reads: str, capsys: pytest.CaptureFixture[str]) -> None:
    with listening(echo) as (handler, records):
        response = query_engine(SPEECH, streaming=True).query(QUESTION)
        found = str(response) if reads == "str" else getattr(response, reads)()
        if reads == "print_response_stream":
            found = capsys.readouterr().out
        assert settled(handler)
    assert SPEECH in (found.response if isinstance(found, Response) else found)
    assert records.one.answer == SPEECH


@pytest.mark.parametrize("reads", ["async_response_gen", "get_response", "print_response_stream"])
async def test_every_way_to_read_an_asynchronous_stream(
    reads: str, capsys: pytest.CaptureFixture[str]
) -> None:
    engine = query_engine(SPEECH, streaming=True)
    with listening(echo) as (handler, records):
        response = await engine.aquery(QUESTION)
        if reads == "async_response_gen":
            found = "".join([one async for one in response.async_response_gen()])
        elif reads == "get_response":
            found = (await response.get_response()).response
        else:
            await response.print_response_stream()
            found = capsys.readouterr().out
        assert settled(handler)
    assert found.strip() == SPEECH
    record = records.one
    assert record.answer == SPEECH
    assert (record.attempts[0].usage.calls, record.model) == (1, "scripted")


def test_several_handlers_follow_one_stream() -> None:
    with listening(echo) as (first, some), listening(echo) as (second, others):
        response = query_engine(SPEECH, streaming=True).query(QUESTION)
        assert "".join(response.response_gen) == SPEECH
        assert settled(first)
        assert settled(second)
    assert some.one.answer == others.one.answer == SPEECH
    assert some.one.attempts[0].usage.calls == others.one.attempts[0].usage.calls == 1


def test_a_stream_that_is_left() -> None:
    engine = query_engine(SPEECH, streaming=True)
    with listening(echo) as (handler, records):
        closed = engine.query(QUESTION)
        assert next(closed.response_gen).strip() == WORDS[0]
        closed.response_gen.close()
        assert [*closed.response_gen] == []

        begun = engine.query(QUESTION)
        assert next(begun.response_gen).strip() == WORDS[0]
        unread = engine.query(QUESTION)
        del begun, unread
        gc.collect()
        assert settled(handler)
    assert not records.all
    assert (handler.counts.runs, handler.counts.unanswered) == (3, 3)


@pytest.mark.slow
async def test_an_asynchronous_stream_that_is_left() -> None:
    engine = query_engine(SPEECH, streaming=True)
    with listening(echo) as (handler, records):
        closed = await engine.aquery(QUESTION)
        async for _ in closed.response_gen:
            break
        await closed.response_gen.aclose()

        begun = await engine.aquery(QUESTION)
        async for _ in begun.async_response_gen():
            break
        unread = await engine.aquery(QUESTION)
        del begun, unread
        gc.collect()
        await asyncio.sleep(0.01)  # the loop closes what is garbage
        gc.collect()
        await asyncio.sleep(0.01)
        assert settled(handler)
    assert not records.all
    assert (handler.counts.runs, handler.counts.unanswered) == (3, 3)


@pytest.mark.parametrize("method", ["query", "aquery"])
def test_a_stream_that_breaks(method: str) -> None:
    llm = breaking()
    engine = build(llm).as_query_engine(llm=llm, streaming=True)

    def read() -> list[str]:
        return [*engine.query(QUESTION).response_gen]

    async def aread() -> list[str]:
        response = await engine.aquery(QUESTION)
        return [piece async for piece in response.async_response_gen()]

    with listening(echo) as (handler, records):
        with pytest.raises(ConnectionError, match="gone"):
            asyncio.run(aread()) if method == "aquery" else read()
        assert settled(handler)
    assert not records.all
    assert handler.counts.unanswered == 1


def test_streams_that_are_read_in_turns_do_not_mix() -> None:
    """Their models are called when they are read, and in one context."""

    def script(stage: str, messages: Sequence[BaseMessage]) -> str:
        return "Good " * (1 + str(messages[-1].content).count("more"))

    llm = ScriptedLLM(script=script)
    engine = build(llm).as_query_engine(llm=llm, streaming=True)
    with listening(echo) as (handler, records):
        streams = [engine.query("more " * at).response_gen for at in range(3)]
        inside = engine.query("meanwhile")
        while streams:
            streams = [one for one in streams if next(one, None) is not None]
            assert str(inside).strip() == "Good"
        assert settled(handler)
    assert len(records.all) == 4
    for record in records.all:
        assert record.attempts[0].usage.calls == 1
        words = 1 + (record.question or "").count("more")
        assert record.attempts[0].usage.output_tokens == words


class Partial(BaseModel):
    metres: int | None = None


class Structured(CustomQueryEngine):
    """Streams as LLMs do what they predict for an `output_cls`: each object is all of it so far."""

    def custom_query(self, query_str: str) -> Any:
        return StreamingResponse(iter([Partial(), Partial(metres=8), Partial(metres=84)]))

    async def acustom_query(self, query_str: str) -> Any:
        async def pieces() -> Any:
            for piece in self.custom_query(query_str).response_gen:
                yield piece

        return AsyncStreamingResponse(pieces())


@pytest.mark.parametrize("method", ["query", "aquery"])
def test_a_structured_stream_is_its_last_object(method: str) -> None:
    async def aread() -> list[Any]:
        response = await Structured().aquery(QUESTION)
        return [piece async for piece in response.response_gen]

    with listening(echo) as (handler, records):
        read: Any = aread() if method == "aquery" else Structured().query(QUESTION).response_gen
        found = asyncio.run(read) if method == "aquery" else [*read]
        assert settled(handler)
    assert found == [Partial(), Partial(metres=8), Partial(metres=84)]
    assert records.one.answer == '{"metres":84}'


def test_a_task_whose_loop_is_gone(caplog: pytest.LogCaptureFixture) -> None:
    """Nothing is told of a stream that is garbage in the middle of a read, but its count."""
    unraisable: list[Any] = []

    async def pieces() -> Any:
        yield "Good"
        await asyncio.sleep(60)

    class Endless(Structured):
        async def acustom_query(self, query_str: str) -> Any:
            return AsyncStreamingResponse(pieces())

    async def begin() -> None:
        response = await Endless().aquery(QUESTION)
        task = asyncio.create_task(response.get_response())
        await asyncio.sleep(0.01)
        kept.append(task)

    kept: list[Any] = []
    hook, sys.unraisablehook = sys.unraisablehook, unraisable.append
    try:
        with listening(echo) as (handler, records):
            loop = asyncio.new_event_loop()
            loop.run_until_complete(begin())
            loop.close()
            kept.clear()
            gc.collect()
            assert settled(handler)
    finally:
        sys.unraisablehook = hook
    assert not records.all
    assert handler.counts.unanswered == 1
    assert not [one for one in unraisable if "reading" in repr(one.object)]


def test_a_stream_that_was_read_inside_is_whole() -> None:
    """What the engine's own code reads, nobody has to read again."""
    engine = query_engine(SPEECH, streaming=True)
    response = engine.query(QUESTION)
    str(response)

    class Keeps(type(engine)):  # type: ignore[misc]  # the class is known when it runs
        def _query(self, query_bundle: Any) -> Any:
            return response

    with listening(echo) as (handler, records):
        Keeps(engine.retriever, engine._response_synthesizer).query(QUESTION)
        assert settled(handler)
    assert records.one.answer == SPEECH


# --- Chats ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", CHAT_MODES)
def test_chats_that_stream(mode: str) -> None:
    engine = chat_engine(mode)
    with listening(echo, max_concurrency=1) as (handler, records):
        for message in (QUESTION, "And how old?"):
            assert "".join(engine.stream_chat(message).response_gen).strip() == SPEECH
        assert settled(handler)
    check_chats(mode, engine, records)


@pytest.mark.parametrize("mode", CHAT_MODES)
async def test_chats_that_stream_in_a_loop(mode: str) -> None:
    engine = chat_engine(mode)
    with listening(echo, max_concurrency=1) as (handler, records):
        for message in (QUESTION, "And how old?"):
            response = await engine.astream_chat(message)
            said = "".join([piece async for piece in response.async_response_gen()])
            assert said.strip() == SPEECH
        assert settled(handler)
    check_chats(mode, engine, records)


def check_chats(mode: str, engine: Any, records: Any) -> None:
    assert [one.question for one in records.all] == [QUESTION, "And how old?"]
    assert {one.answer for one in records.all} == {SPEECH}
    assert {one.name for one in records.all} == {type(engine).__name__}
    assert [len(one.contexts) for one in records.all] == [0 if mode == "simple" else 2] * 2
    calls = [one.attempts[0].usage.calls for one in records.all]
    assert calls == [1, 1 + mode.startswith("condense")]
    assert {one.model for one in records.all} == {"scripted"}
    assert len(history(engine)) == 4


@pytest.mark.parametrize("mode", CHAT_MODES)
async def test_a_model_that_only_completes_streams_one_call(mode: str) -> None:
    llm = ScriptedCompletions(script=lambda *_: SPEECH)
    engine = build(llm).as_chat_engine(chat_mode=mode, llm=llm, memory=memory())
    with listening(echo) as (handler, records):
        response = await engine.astream_chat(QUESTION)
        assert "".join([one async for one in response.async_response_gen()]).strip() == SPEECH
        assert settled(handler)
    assert records.one.attempts[0].usage.calls == 1


def test_a_chat_that_nobody_reads_is_written_into_the_history_and_scored() -> None:
    engine = chat_engine("context")
    with listening(echo) as (handler, records):
        writes = engine.stream_chat(QUESTION).write_response_to_history_thread
        assert writes is not None
        writes.join(30)
        assert settled(handler)
    assert records.one.answer == SPEECH
    assert history(engine)[-1] == ("assistant", SPEECH)


@pytest.mark.parametrize("mode", CHAT_MODES)
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_chat_whose_stream_breaks(mode: str) -> None:
    llm = breaking()
    engine = build(llm).as_chat_engine(chat_mode=mode, llm=llm, memory=memory())
    with listening(echo) as (handler, records):
        with pytest.raises(ConnectionError, match="gone"):
            list(engine.stream_chat(QUESTION).response_gen)
        assert settled(handler)
    assert not records.all
    assert handler.counts.unanswered == 1


async def test_a_chat_whose_task_is_cancelled() -> None:
    engine = chat_engine("context")
    with listening(echo) as (handler, records):
        response = await engine.astream_chat(QUESTION)
        writes = response.awrite_response_to_history_task
        assert writes is not None
        await asyncio.sleep(0)
        writes.cancel()
        await asyncio.wait([writes])
        assert settled(handler)
    assert not records.all
    assert handler.counts.unanswered == 1


@pytest.mark.parametrize("written", ["before", "after"])
def test_a_stream_may_be_written_before_the_chat_returns(written: str) -> None:
    go_on, done = threading.Event(), threading.Event()

    class Waits(type(chat_engine("simple"))):  # type: ignore[misc]  # known when it runs
        def stream_chat(self, message: str, chat_history: Any = None) -> Any:
            response = StreamingAgentChatResponse(chat_stream=pieces())
            thread = Thread(target=write, args=(response, self._memory))
            response.write_response_to_history_thread = thread
            thread.start()
            if written == "before":
                assert done.wait(10)
            return response

    def pieces() -> ChatResponseGen:
        if written == "after":
            assert go_on.wait(10)
        yield ChatResponse(message=ChatMessage(content=SPEECH), delta=SPEECH)

    def write(response: StreamingAgentChatResponse, memory: Any) -> None:
        response.write_response_to_history(memory)
        done.set()

    engine = Waits.from_defaults(llm=MockLLM(), memory=memory())
    with listening(echo) as (handler, records):
        response = engine.stream_chat(QUESTION)
        go_on.set()
        assert "".join(response.response_gen) == SPEECH
        assert done.wait(10)
        assert settled(handler)
    assert records.one.answer == SPEECH
