"""Read the responses of LlamaIndex's engines: the text, the nodes, and streams piece by piece."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from llama_index.core.base.response.schema import (
    AsyncStreamingResponse,
    PydanticResponse,
    Response,
    StreamingResponse,
)
from llama_index.core.chat_engine.types import AgentChatResponse, StreamingAgentChatResponse
from llama_index.core.schema import NodeWithScore
from pydantic_core import to_json

from demur import DemurError

_END = object()
_RESPONSES = (
    Response,
    PydanticResponse,
    StreamingResponse,
    AsyncStreamingResponse,
    AgentChatResponse,
    StreamingAgentChatResponse,
)


@dataclass(frozen=True, eq=False)
class Reply:
    """Hold an engine's response, read as far as possible without waiting."""

    response: Any
    """What the engine returned."""
    nodes: list[NodeWithScore]
    """The nodes that the response was given from."""
    text: str | None
    """The text of the response; None for a stream."""

    @property
    def metadata(self) -> dict[str, Any]:
        """Return what the engine put beside the text."""
        return dict(getattr(self.response, "metadata", None) or {})

    @property
    def node_metadata(self) -> dict[str, Any]:
        """Return the part of the metadata that is about the nodes.

        The rest may hold what the engine said.
        """
        ids = {node.node.node_id for node in self.nodes}
        return {key: value for key, value in self.metadata.items() if key in ids}

    @property
    def streams(self) -> bool:
        """Return whether the response has to be read piece by piece."""
        return self.text is None

    def pieces(self) -> Iterator[str]:
        """Yield the text in pieces. A stream can be read only once.

        Raises:
            DemurError: The response can only be read asynchronously.
        """
        if self.text is not None:
            yield self.text
        elif isinstance(self.response, AsyncStreamingResponse):
            raise DemurError(
                "the engine answered a synchronous call with an AsyncStreamingResponse: call "
                "aquery instead"
            )
        else:
            reading = Reading(self.response)
            for piece in self.response.response_gen:
                if text := reading.take(piece):
                    yield text
            yield reading.end()

    async def apieces(self) -> AsyncGenerator[str, None]:
        """Do the same as `pieces`, without blocking the event loop."""
        response = self.response
        if self.text is not None:
            yield self.text
        elif isinstance(response, StreamingResponse) or (
            isinstance(response, StreamingAgentChatResponse) and response.achat_stream is None
        ):
            # Some engines answer an asynchronous call with a synchronous stream.
            pieces = self.pieces()
            while (piece := await asyncio.to_thread(next, pieces, _END)) is not _END:
                yield str(piece)
        else:
            reading = Reading(response)
            # `async_response_gen` of an AsyncStreamingResponse takes every piece for text.
            plain = isinstance(response, AsyncStreamingResponse)
            pieces = response.response_gen if plain else response.async_response_gen()
            try:
                async for piece in pieces:
                    if text := reading.take(piece):
                        yield text
            finally:
                if hasattr(pieces, "aclose"):  # a user's own engine may return any iterator
                    await pieces.aclose()
            yield reading.end()


class Reading:
    """Decide which text of a stream is passed on while it is read, and which only at its end.

    Each piece of a structured answer is the whole answer so far. A guarded engine inside may later
    take back what it has streamed. In both cases the text is passed on at the end.
    """

    def __init__(self, response: Any) -> None:
        self._end = getattr(response, "_end", None)
        self._last: Any = None

    def take(self, piece: Any) -> str:
        """Return the text of a piece that is passed on now."""
        if not isinstance(piece, str):
            self._last = piece
            return ""
        return "" if self._end is not None else piece

    def end(self) -> str:
        """Return the text that is left at the end."""
        if self._end is not None:
            return str(self._end.text)
        return "" if self._last is None else to_json(self._last).decode()


def read(response: Any, also: Sequence[NodeWithScore] = ()) -> Reply:
    """Read a response.

    Args:
        response: What an engine returned.
        also: Nodes that the engine was given besides; they come first.

    Raises:
        DemurError: The value is not one of LlamaIndex's responses.
    """
    if not isinstance(response, _RESPONSES):
        raise DemurError(
            f"an engine returned a {type(response).__name__}, expected one of LlamaIndex's "
            "responses (Response, StreamingResponse, PydanticResponse, AgentChatResponse, ...)"
        )
    nodes = {node.node.node_id: node for node in (*also, *_nodes(response))}
    return Reply(response, list(nodes.values()), _text(response))


def is_guarded(response: Any) -> bool:
    """Return whether a stream is from a guarded engine, whose guard reports the result itself."""
    return getattr(response, "_end", None) is not None


def changed(response: Any, /, **changes: Any) -> Any:
    """Return a copy of a response with other values.

    `dataclasses.replace` does not work here: it calls the constructor, which differs between
    classes, and loses what an engine has set beside the fields. `copy.copy` fails for a
    PydanticResponse.
    """
    copied = object.__new__(type(response))
    vars(copied).update(vars(response), **changes)
    return copied


def _text(response: Any) -> str | None:
    if isinstance(response, (StreamingResponse, AsyncStreamingResponse)):
        return response.response_txt
    if isinstance(response, StreamingAgentChatResponse):
        return None
    if isinstance(response, PydanticResponse):
        return "" if response.response is None else response.response.model_dump_json()
    return response.response or ""


def _nodes(response: Any) -> list[NodeWithScore]:
    """Return the nodes of a response, or else the nodes that a chat engine's tools returned.

    LlamaIndex does not look for nodes of tools in asynchronous streams.
    """
    tools = getattr(response, "sources", None) or ()  # a PydanticResponse has every attribute
    returned = (getattr(tool.raw_output, "source_nodes", None) for tool in tools)
    return response.source_nodes or [node for nodes in returned for node in nodes or ()]
