"""What LlamaIndex's engines reply: the text, the nodes, and how to read it where it is a stream."""

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
    """An engine's response, read as far as it can be without waiting."""

    response: Any
    """What the engine returned."""
    nodes: list[NodeWithScore]
    """The nodes that it was given from."""
    text: str | None
    """What it says; None for a stream."""

    @property
    def metadata(self) -> dict[str, Any]:
        """What the engine put beside the text."""
        return dict(getattr(self.response, "metadata", None) or {})

    @property
    def node_metadata(self) -> dict[str, Any]:
        """Of that, what is about the nodes. The rest may hold what the engine said."""
        ids = {node.node.node_id for node in self.nodes}
        return {key: value for key, value in self.metadata.items() if key in ids}

    @property
    def streams(self) -> bool:
        """Whether it has to be read piece by piece."""
        return self.text is None

    def pieces(self) -> Iterator[str]:
        """What it says, in pieces. A stream can be read once.

        Raises:
            DemurError: It can only be read asynchronously.
        """
        if self.text is not None:
            yield self.text
        elif isinstance(self.response, AsyncStreamingResponse):
            raise DemurError(
                "the engine answered a synchronous call with an AsyncStreamingResponse: ask it "
                "with aquery"
            )
        else:
            reading = Reading(self.response)
            for piece in self.response.response_gen:
                if text := reading.take(piece):
                    yield text
            yield reading.end()

    async def apieces(self) -> AsyncGenerator[str, None]:
        """As `pieces`, without holding up the running loop."""
        response = self.response
        if self.text is not None:
            yield self.text
        elif isinstance(response, StreamingResponse) or (
            isinstance(response, StreamingAgentChatResponse) and response.achat_stream is None
        ):
            # Of engines whose asynchronous methods call the others.
            pieces = self.pieces()
            while (piece := await asyncio.to_thread(next, pieces, _END)) is not _END:
                yield str(piece)
        else:
            reading = Reading(response)
            # LlamaIndex's way to read it takes every piece for text.
            plain = isinstance(response, AsyncStreamingResponse)
            pieces = response.response_gen if plain else response.async_response_gen()
            try:
                async for piece in pieces:
                    if text := reading.take(piece):
                        yield text
            finally:
                if hasattr(pieces, "aclose"):  # engines of one's own may give any iterator
                    await pieces.aclose()
            yield reading.end()


class Reading:
    """What of a stream can be passed on while it is read, and what only at its end.

    Of a structured answer every piece is all of it so far. What a guarded engine inside has
    streamed it may take back later.
    """

    def __init__(self, response: Any) -> None:
        self._end = getattr(response, "_end", None)
        self._last: Any = None

    def take(self, piece: Any) -> str:
        """What is passed on of a piece."""
        if not isinstance(piece, str):
            self._last = piece
            return ""
        return "" if self._end is not None else piece

    def end(self) -> str:
        """What is left."""
        if self._end is not None:
            return str(self._end.text)
        return "" if self._last is None else to_json(self._last).decode()


def read(response: Any, also: Sequence[NodeWithScore] = ()) -> Reply:
    """Read a response.

    Args:
        response: What an engine returned.
        also: What it was given besides; these nodes come first.

    Raises:
        DemurError: It is none.
    """
    if not isinstance(response, _RESPONSES):
        raise DemurError(
            f"an engine returned a {type(response).__name__}, expected one of LlamaIndex's "
            "responses (Response, StreamingResponse, PydanticResponse, AgentChatResponse, ...)"
        )
    nodes = {node.node.node_id: node for node in (*also, *_nodes(response))}
    return Reply(response, list(nodes.values()), _text(response))


def is_guarded(response: Any) -> bool:
    """Whether a stream is a guarded engine's, of which the guard tells when it was read."""
    return getattr(response, "_end", None) is not None


def changed(response: Any, /, **changes: Any) -> Any:
    """A copy of a response with other values.

    `dataclasses.replace` makes it anew: it fails for classes that are made in another way, and
    loses what an engine has set beside the fields. `copy.copy` fails for a PydanticResponse.
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
    """The nodes of a response; of a chat's that has none, those of what its tools returned.

    LlamaIndex does not look into asynchronous streams for them.
    """
    tools = getattr(response, "sources", None) or ()  # a PydanticResponse has every attribute
    returned = (getattr(tool.raw_output, "source_nodes", None) for tool in tools)
    return response.source_nodes or [node for nodes in returned for node in nodes or ()]
