"""Represent the answer that a guarded call ended with, and what of it leaves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from llama_index.core.schema import NodeWithScore
from llama_index.core.tools import ToolOutput

from demur.guard import Trace
from llama_index.evaluation.demur._citing import numbered
from llama_index.evaluation.demur._nodes import KEY, as_nodes
from llama_index.evaluation.demur._reply import Reply
from llama_index.evaluation.demur._result import GuardResult


@dataclass(frozen=True)
class Answer:
    """Represent the answer that a guarded call ended with."""

    text: str
    reply: Reply
    """What the engine replied when it gave this answer, or an answer that was edited since."""
    trace: Trace

    @property
    def said(self) -> str:
        """Return the text, without the marks of citations if the answer passed."""
        last = self.trace.attempts[-1]
        return last.answer if last.verdict == "passed" else self.text

    @property
    def unedited(self) -> bool:
        """Return whether the text is what the engine said, apart from citations."""
        return self.reply.text == self.said

    @property
    def verbatim(self) -> bool:
        """Return whether the text is exactly what the engine said, without citations."""
        return self.reply.text == self.text and not self.trace.citations

    @property
    def first(self) -> bool:
        """Return whether the engine was asked only once."""
        return len(self.trace.attempts) == 1

    @property
    def nodes(self) -> list[NodeWithScore]:
        """Return the nodes that the answer was given from.

        For a repaired answer, they are the nodes that the repairing model was shown.
        """
        last = self.trace.attempts[-1]
        made = next(one.origin for one in reversed(self.trace.attempts) if one.origin != "edit")
        if made == "repair" and last.answer == self.said:
            return as_nodes(last.contexts)
        return self.reply.nodes

    @property
    def source_nodes(self) -> list[NodeWithScore]:
        """Return `nodes`, in the order that the numbers in the text refer to."""
        return self.nodes if self.verbatim else numbered(self.nodes, self.trace)

    @property
    def sources(self) -> list[ToolOutput]:
        """Return the outputs of a chat engine's tools.

        The list is empty if the text is not what the engine said. An output may hold the engine's
        own text, which then must not leave. If the engine was asked again, the inputs of the tools
        are left out, because they quote the rejected answer.
        """
        found = getattr(self.reply.response, "sources", []) if self.unedited else []
        return found if self.first else [one.model_copy(update={"raw_input": {}}) for one in found]

    @property
    def metadata(self) -> dict[str, Any]:
        """Return what the engine put beside the text, and the `GuardResult`.

        If the text is not what the engine said, only the metadata of the nodes is returned with it.
        """
        kept = self.reply.metadata if self.unedited else self.reply.node_metadata
        return {**kept, KEY: GuardResult.of(self.trace)}


@dataclass(eq=False)
class End:
    """Hold what the response of a stream gets at the end of the stream.

    The response holds the same lists and the same mapping, which are filled in at the end.
    """

    nodes: list[NodeWithScore]
    sources: list[ToolOutput]
    """The outputs of a chat engine's tools. They may hold an answer, so they are there only if it
    passed."""
    metadata: dict[str, Any]
    text: str | None = None
    """The answer that holds, which may be less than what was streamed; None until the end. The
    trace is not kept here, because loggers that look into every object would write it down."""

    @classmethod
    def of(cls, reply: Reply) -> End:
        """Return the end of a stream that has begun."""
        return cls([*reply.nodes], [], reply.node_metadata)

    def reached(self, answer: Answer) -> None:
        """Fill in the answer, when the stream has ended."""
        self.text = answer.text
        self.nodes[:] = answer.source_nodes
        self.sources[:] = answer.sources
        self.metadata.update(answer.metadata)
