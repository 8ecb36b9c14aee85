"""Streams that engines return, followed to their end while somebody else reads them."""

from __future__ import annotations

import weakref
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from llama_index.core.chat_engine.types import StreamingAgentChatResponse
from pydantic_core import to_json

from llama_index.evaluation.demur._spans import reading

_END = object()


@dataclass(frozen=True)
class Follower:
    """Who is told how a stream ended. It must not hold the response."""

    span_id: str
    """Of the engine's call that opened the stream."""
    ended: Callable[[str], None]
    """Told the whole text when the stream has come to its end. Of a structured answer that is its
    last piece, which is all of it, as JSON."""
    left: Callable[[], None]
    """Told of a stream that raised, was closed, or that nobody will ever read; maybe more than
    once, and also after its end."""


def writes_itself(response: Any) -> bool:
    """Whether the engine reads the stream into its memory, whoever else reads it."""
    return isinstance(response, StreamingAgentChatResponse) and response.is_writing_to_memory


def follow(response: Any, follower: Follower) -> bool:
    """Put generators of ours around a response's own, which pass on what is read.

    Args:
        response: A response that streams, and is changed: the caller has the same object.
        follower: Who is told of the end.

    Returns:
        Whether there is a stream at all.
    """
    chats = isinstance(response, StreamingAgentChatResponse)
    found = False
    # Of two, whoever has the response reads one.
    for name in ("chat_stream", "achat_stream") if chats else ("response_gen",):
        stream = getattr(response, name)
        if stream is not None:
            pieces = _apieces if hasattr(stream, "__aiter__") else _pieces
            around: Any = pieces(stream, _delta if chats else _itself, follower)
            # One that was never begun ends without a word.
            weakref.finalize(around, follower.left).atexit = False
            setattr(response, name, around)
            found = True
    return found


def _pieces(
    stream: Iterator[Any], said_in: Callable[[Any], Any], follower: Follower
) -> Generator[Any, None, None]:
    said: list[Any] = []
    pieces = iter(stream)
    try:
        try:
            while True:
                with reading(follower.span_id):  # not around what the reader does in between
                    piece = next(pieces, _END)
                if piece is _END:
                    break
                said.append(said_in(piece))
                yield piece
        finally:
            close = getattr(stream, "close", None)
            if close is not None:
                close()
    except BaseException:
        follower.left()
        raise
    follower.ended(_whole(said))


async def _apieces(
    stream: AsyncIterator[Any], said_in: Callable[[Any], Any], follower: Follower
) -> AsyncGenerator[Any, None]:
    said: list[Any] = []
    pieces = aiter(stream)
    try:
        try:
            while True:
                with reading(follower.span_id):
                    piece = await anext(pieces, _END)
                if piece is _END:
                    break
                said.append(said_in(piece))
                yield piece
        finally:
            close = getattr(stream, "aclose", None)
            if close is not None:
                await close()
    except BaseException:
        follower.left()
        raise
    follower.ended(_whole(said))


def _delta(piece: Any) -> str:
    return piece.delta or ""


def _itself(piece: Any) -> Any:
    return piece


def _whole(said: Sequence[Any]) -> str:
    pieces = [one for one in said if one is not None]
    if pieces and not isinstance(pieces[-1], str):
        return to_json(pieces[-1], fallback=str).decode()
    return "".join(map(str, pieces))
