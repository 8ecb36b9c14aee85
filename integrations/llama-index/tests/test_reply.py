from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from llama_index.core.base.response.schema import (
    AsyncStreamingResponse,
    PydanticResponse,
    Response,
    StreamingResponse,
)
from llama_index.core.schema import NodeWithScore, TextNode
from pydantic import BaseModel

from llama_index.evaluation.demur._reply import Reply, changed, read
from llama_index.evaluation.demur.query_engine import (
    GuardedAsyncStreamingResponse,
    GuardedStreamingResponse,
)

NODES = [NodeWithScore(node=TextNode(text="The tower is 84 metres tall.", id_="n1"))]


class Height(BaseModel):
    metres: int | None = None


async def _later(pieces: Iterator[Any]) -> AsyncIterator[Any]:
    for piece in pieces:
        yield piece


def pieces_of(mode: str, plain: type[Any], later: type[Any], *pieces: Any, **options: Any) -> Any:
    async def in_loop() -> list[str]:
        reply = read(later(_later(iter(pieces)), NODES, **options))
        return [piece async for piece in reply.apieces()]

    if mode == "async":
        return asyncio.run(in_loop())
    return list(read(plain(iter(pieces), NODES, **options)).pieces())


STREAMS = StreamingResponse, AsyncStreamingResponse
GUARDED = GuardedStreamingResponse, GuardedAsyncStreamingResponse


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_a_stream_of_text(mode: str) -> None:
    assert pieces_of(mode, *STREAMS, "It is ", "", "84 m.") == ["It is ", "84 m.", ""]
    assert pieces_of(mode, *STREAMS) == [""]


def test_an_asynchronous_stream_that_is_no_generator() -> None:
    class Pieces:
        def __init__(self) -> None:
            self.left = ["84 m.", "It is "]

        def __aiter__(self) -> Pieces:
            return self

        async def __anext__(self) -> str:
            if not self.left:
                raise StopAsyncIteration
            return self.left.pop()

    async def in_loop() -> list[str]:
        given: Any = Pieces()
        return [piece async for piece in read(AsyncStreamingResponse(given)).apieces()]

    assert asyncio.run(in_loop()) == ["It is ", "84 m.", ""]


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_a_structured_stream_is_its_last_object(mode: str) -> None:
    """Stream objects as an LLM does for an `output_cls`: each object is the whole so far."""
    partial = [Height(), Height(metres=8), Height(metres=84)]
    assert pieces_of(mode, *STREAMS, *partial) == ['{"metres":84}']
    assert pieces_of(mode, *STREAMS, [Height(metres=84)]) == ['[{"metres":84}]']


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_what_a_guard_inside_takes_back_is_not_passed_on(mode: str) -> None:
    from llama_index.evaluation.demur._guarding import End

    end = End([], [], {}, text="It is 84 m.")
    said = ["It is old.", "\n\n", "It is 84 m."]
    assert pieces_of(mode, *GUARDED, *said, end=end) == ["It is 84 m."]


def test_a_copy_keeps_what_an_engine_has_set() -> None:
    class Marked(Response):
        def __init__(self, text: str) -> None:
            super().__init__(text, NODES)
            self.mark = 7

    marked = Marked("It is 84 m.")
    copied = changed(marked, metadata={"k": 1})
    assert (type(copied), copied.mark, copied.metadata) == (Marked, 7, {"k": 1})
    assert marked.metadata is None
    structured = changed(PydanticResponse(Height(metres=84), NODES), metadata={"k": 1})
    assert (structured.metres, structured.source_nodes) == (84, NODES)


def test_nodes_are_told_once() -> None:
    reply = read(Response("It is 84 m.", [*NODES, *NODES]), also=NODES)
    assert isinstance(reply, Reply)
    assert reply.nodes == NODES
