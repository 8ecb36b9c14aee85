"""Test that streams are scored once they are read, and that their readers notice nothing."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from typing import Any

import pytest
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, ChatResponseGen
from llama_index.core.llms.callbacks import llm_chat_callback

from fake_llm import ScriptedLLM
from guarded_app import MODES, build, query_engine, read
from scored_app import SPEECH, listening, settled
from support.handlers import echo
from support.rag import FACTS, QUESTION
from support.waiting import auntil

WORDS = SPEECH.split()


class Breaking(ScriptedLLM):
    """Lose the connection after the first word."""

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
        assert handler.flush(30)
        assert not records.all
        assert [first, *response.response_gen] == [*engine.query(QUESTION).response_gen]
        assert settled(handler)
    record, again = records.all
    assert (record.question, record.answer) == (QUESTION, SPEECH) == (again.question, again.answer)
    assert {one.page_content.splitlines()[-1] for one in record.contexts} <= {*FACTS}
    usage = record.attempts[0].usage
    assert (usage.calls, usage.output_tokens, record.model) == (1, len(WORDS), "scripted")


@pytest.mark.parametrize("reads", ["str", "get_response"])
def test_every_way_to_read_a_stream(reads: str) -> None:
    with listening(echo) as (handler, records):
        response = query_engine(SPEECH, streaming=True).query(QUESTION)
        found = str(response if reads == "str" else response.get_response())
        assert settled(handler)
    assert found == SPEECH
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
    # The unread stream was never begun, so it does not count.
    assert (handler.counts.runs, handler.counts.unanswered) == (2, 2)


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

        def unanswered() -> int:
            gc.collect()  # The loop closes what is garbage.
            return handler.counts.unanswered

        await auntil(lambda: unanswered() == 2)
        assert settled(handler)
    assert not records.all
    # The unread stream was never begun, so it does not count.
    assert (handler.counts.runs, handler.counts.unanswered) == (2, 2)


@pytest.mark.parametrize("mode", MODES)
def test_a_stream_that_breaks(mode: str) -> None:
    llm = breaking()
    engine = build(llm).as_query_engine(llm=llm, streaming=True)

    with listening(echo) as (handler, records):
        with pytest.raises(ConnectionError, match="gone"):
            read(mode, engine)
        assert settled(handler)
    assert not records.all
    assert handler.counts.unanswered == 1
