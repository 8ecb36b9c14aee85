from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from typing import Any

import pytest
from llama_index.core.base.response.schema import (
    AsyncStreamingResponse,
    StreamingResponse,
)
from pydantic import BaseModel

from demur import AnswerRejected, Block, DemurError, Evaluation
from guarded_app import (
    MODES,
    Heard,
    Said,
    judge,
    nodes_of,
    query_engine,
    read,
    written,
)
from llama_index.evaluation.demur._result import trace_of
from llama_index.evaluation.demur.events import (
    ReplaceEvent,
)
from llama_index.evaluation.demur.query_engine import GuardedQueryEngine
from support.evaluators import Scripted
from support.rag import FACTS, QUESTION, RIGHT, WRONG
from support.waiting import auntil, wait

CASES = pytest.mark.parametrize(
    ("mode", "streaming"), [("sync", "buffer"), ("sync", "sentence"), ("async", "sentence")]
)


def streams(*streams: Iterable[Any], facts: Sequence[str] = FACTS[:1]) -> Said:
    """Return an engine that gives each query the next of these streams."""
    coming = iter(streams)
    return Said(script=lambda _: StreamingResponse(iter(next(coming)), nodes_of(*facts)))


@CASES
def test_streams_give_what_was_checked(mode: str, streaming: Any) -> None:
    good = f"{RIGHT} It was opened in 1911."
    guarded = GuardedQueryEngine(query_engine(good, streaming=True), judge(), streaming=streaming)
    pieces, response = read(mode, guarded)
    assert "".join(pieces) == good == response.response
    assert len(pieces) == (1 if streaming == "buffer" else 2)
    assert response.metadata["demur"]["outcome"] == "passed"
    assert response.source_nodes


@CASES
def test_no_rejected_word_is_streamed(mode: str, streaming: Any) -> None:
    guarded = GuardedQueryEngine(
        query_engine(WRONG, RIGHT, streaming=True), judge(), streaming=streaming
    )
    pieces, response = read(mode, guarded)
    assert "".join(pieces) == RIGHT == response.response
    assert response.metadata["demur"]["outcome"] == "recovered"
    assert "97 metres" not in written(response)


@pytest.mark.parametrize("mode", MODES)
def test_a_stream_is_corrected_after_what_has_left(mode: str) -> None:
    """Let the model wait before its second sentence until the first has been read."""
    first_read = threading.Event()
    other = "From the foot 302 steps lead up."

    def tokens(text: str) -> Iterator[str]:
        yield f"{text} And then "
        wait(first_read)
        yield "97 metres more."

    engine = streams(tokens(RIGHT), [other], facts=(FACTS[0], FACTS[2]))
    guarded = GuardedQueryEngine(engine, judge(), streaming="sentence")
    with Heard() as events:
        pieces, final = read(mode, guarded, first_read.set)
    assert pieces[0].strip() == RIGHT
    assert "97" not in "".join(pieces)
    assert "".join(pieces).endswith(f"\n\n{other}")
    assert final.response == other
    assert [one.keep for one in events.of(ReplaceEvent)] == [0]


@pytest.mark.parametrize("mode", MODES)
def test_what_a_guard_inside_takes_back_a_guard_around_it_does_not_give_out(mode: str) -> None:
    other = "From the foot 302 steps lead up."
    said = [f"{RIGHT} And then ", "97 metres more."]
    engine = streams(said, [other], facts=(FACTS[0], FACTS[2]))
    inner = GuardedQueryEngine(engine, judge(), streaming="sentence")
    pieces, response = read(mode, GuardedQueryEngine(inner, judge(), streaming="sentence"))
    assert pieces == [other]
    assert response.response == other


async def test_a_stream_that_was_rejected_has_no_answer_afterwards() -> None:
    guarded = GuardedQueryEngine(query_engine(WRONG, streaming=True), judge(), on_fail=Block())
    response: Any = guarded.query(QUESTION)
    later: Any = await guarded.aquery(QUESTION)
    with pytest.raises(AnswerRejected):
        response.get_response()
    with pytest.raises(AnswerRejected):
        await later.get_response()
    with pytest.raises(DemurError, match="no answer holds"):
        response.get_response()
    with pytest.raises(DemurError, match="no answer holds"):
        await later.get_response()


@pytest.mark.parametrize("streaming", ["buffer", "sentence"])
async def test_closing_a_stream_closes_the_engines(streaming: Any) -> None:
    told: list[str] = []
    closed = asyncio.Event()

    async def tokens() -> AsyncIterator[str]:
        try:
            while True:
                told.append(RIGHT)
                yield f"{RIGHT} "
                await asyncio.sleep(0)
        finally:
            closed.set()

    engine = Said(script=lambda _: AsyncStreamingResponse(tokens(), nodes_of(FACTS[0])))
    guarded = GuardedQueryEngine(engine, judge(), streaming=streaming)
    stream: Any = (await guarded.aquery(QUESTION)).response_gen  # type: ignore[union-attr]  # one
    reading = asyncio.ensure_future(anext(stream))
    if streaming == "sentence":
        assert (await reading).strip() == RIGHT
    else:
        await auntil(lambda: len(told) > 9)
        assert not reading.done()
        reading.cancel()
        await asyncio.wait([reading])
    await stream.aclose()
    assert closed.is_set()


class Height(BaseModel):
    metres: int | None = None


@pytest.mark.parametrize("mode", MODES)
def test_a_structured_stream_leaves_as_json_in_one_piece(mode: str) -> None:
    """Stream objects as an LLM does for an `output_cls`: each object is the whole so far."""
    engine = streams([Height(), Height(metres=8), Height(metres=84)])
    pieces, response = read(mode, GuardedQueryEngine(engine, judge()))
    assert pieces == ['{"metres":84}'] == [response.response]


def test_an_engine_that_answers_asynchronous_calls_with_a_plain_stream() -> None:
    """Give the caller an asynchronous stream, although such an engine's `aquery` gives another."""
    guarded = GuardedQueryEngine(streams([RIGHT]), judge())
    pieces, response = read("async", guarded)
    assert pieces == [RIGHT]
    assert response.metadata["demur"]["outcome"] == "passed"


def test_nothing_runs_on_when_a_stream_is_left() -> None:
    judged = Scripted(script=lambda _: Evaluation(name="Scripted", score=1.0, passed=True))
    closed = threading.Event()

    def tokens() -> Iterator[str]:
        try:
            for n in range(1000):
                yield f"Sentence {n}. "
        finally:
            closed.set()

    guarded = GuardedQueryEngine(streams(tokens()), judged)
    response: Any = guarded.query(QUESTION)
    response.response_gen.close()
    assert judged.asked == []
    with pytest.raises(DemurError, match="read to its end"):
        trace_of(response)
