"""Between LlamaIndex's nodes and the documents that evaluators read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.documents import Document
from langchain_core.runnables import Runnable, RunnableLambda
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.schema import MetadataMode, NodeWithScore, TextNode
from pydantic import PrivateAttr

KEY = "demur"
"""The key of what demur says in metadata: a response's, and that of nodes an answer cites."""


@dataclass(frozen=True)
class NodePlace:
    """Where a passage stands in a node. None where that is not known."""

    start: int | None = None
    """In the node's own text; None for a passage of the node's metadata."""
    end: int | None = None
    doc_start: int | None = None
    """In the document that the node was cut from."""
    doc_end: int | None = None


class NodeDocument(Document):
    """A node as a document. Its text is what LlamaIndex shows a model: metadata, then the text."""

    _node: NodeWithScore = PrivateAttr()

    @classmethod
    def of(cls, node: NodeWithScore) -> NodeDocument:
        """The document of a node. Its metadata says where the text comes from."""
        place = {
            "ref_doc_id": node.node.ref_doc_id,
            "start_char_idx": getattr(node.node, "start_char_idx", None),
            "end_char_idx": getattr(node.node, "end_char_idx", None),
            "score": node.score,
        }
        document = cls(
            page_content=node.node.get_content(metadata_mode=MetadataMode.LLM),
            id=node.node.node_id,
            metadata={**place, **without_note(node.node.metadata)},
        )
        document._node = node
        return document

    @property
    def node(self) -> NodeWithScore:
        """The node itself."""
        return self._node

    @property
    def shift(self) -> int | None:
        """How far `page_content` has moved the node's own text, which LlamaIndex may strip there.

        None where the text is not in it.
        """
        text = self._node.node.get_content()
        stripped = text.strip()
        at = self.page_content.rfind(stripped)
        return at - text.index(stripped) if stripped and at >= 0 else None

    def place(self, start: int, end: int) -> NodePlace:
        """Find where `page_content[start:end]` stands in the node's own text."""
        shift = self.shift
        if shift is None or start < shift:
            return NodePlace()
        node, passage = self._node.node, self.page_content[start:end]
        start, end = start - shift, end - shift
        if node.get_content()[start:end] != passage:
            return NodePlace()
        cut, cut_end = getattr(node, "start_char_idx", None), getattr(node, "end_char_idx", None)
        # Another text may stand there now, such as the window around the sentence that was cut.
        if cut is None or (cut_end is not None and cut_end - cut != len(node.get_content())):
            return NodePlace(start, end)
        return NodePlace(start, end, cut + start, cut + end)


def without_note(metadata: dict[str, Any]) -> dict[str, Any]:
    """Metadata of a node without what a guarded engine says in it."""
    return {key: value for key, value in metadata.items() if key != KEY}


def as_documents(nodes: Iterable[NodeWithScore]) -> tuple[NodeDocument, ...]:
    """Nodes as documents, in their order."""
    return tuple(map(NodeDocument.of, nodes))


def as_nodes(documents: Iterable[Document]) -> list[NodeWithScore]:
    """Documents as nodes: those that were nodes, and new ones for others."""
    return [
        document.node
        if isinstance(document, NodeDocument)
        else NodeWithScore(node=TextNode(text=document.page_content, metadata=document.metadata))
        for document in documents
    ]


def as_retriever(retriever: BaseRetriever | Runnable[str, Any]) -> Runnable[str, Any]:
    """A retriever of LlamaIndex's as one that evaluators and guards take; others as they are."""
    if isinstance(retriever, Runnable):
        return retriever
    if not isinstance(retriever, BaseRetriever):
        raise TypeError(
            f"retriever: expected a LlamaIndex BaseRetriever, got {type(retriever).__name__}"
        )

    def retrieve(query: str) -> Sequence[Document]:
        return as_documents(retriever.retrieve(query))

    async def aretrieve(query: str) -> Sequence[Document]:
        return as_documents(await retriever.aretrieve(query))

    return RunnableLambda(retrieve, aretrieve, name=type(retriever).__name__)
