"""What the response of a stream is told when the stream has ended."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from llama_index.core.schema import NodeWithScore
from llama_index.core.tools import ToolOutput

from llama_index.evaluation.demur._guarding import Answer
from llama_index.evaluation.demur._reply import Reply
from llama_index.evaluation.demur._result import KEY, GuardResult


@dataclass(eq=False)
class End:
    """Lists and a mapping that the response holds, and that are filled in when all is known."""

    nodes: list[NodeWithScore]
    sources: list[ToolOutput]
    """Of a chat. What tools returned may hold an answer, so it is there only if that passed."""
    metadata: dict[str, Any]
    text: str | None = None
    """The answer that holds, where that is not all that was streamed; None until the end.

    All that is known of it is not here: loggers that look into every object would tell it."""

    @classmethod
    def of(cls, reply: Reply) -> End:
        """The end of a stream that has begun."""
        return cls([*reply.nodes], [], reply.node_metadata)

    def reached(self, answer: Answer) -> None:
        """Fill in what is known now."""
        self.text = answer.text
        self.nodes[:] = answer.nodes
        self.sources[:] = answer.sources
        self.metadata.update(answer.metadata)
        self.metadata[KEY] = GuardResult.of(answer.trace)
