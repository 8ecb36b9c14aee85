"""Convert between LlamaIndex's nodes and the documents that evaluators read."""

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
"""The key of demur's values in metadata: in a response's, and in that of a cited node."""


@dataclass(frozen=True)
class NodePlace:
    """Say where a passage is in a node, with None for an unknown place."""

    start: int | None = None
    """The offset in the node's own text; None for a passage of the node's metadata."""
    end: int | None = None
    doc_start: int | None = None
    """The offset in the document that the node was cut from."""
    doc_end: int | None = None


class NodeDocument(Document):
    """Represent a node as a document.

    The document's text is what LlamaIndex shows a model: the node's metadata, then its text.
    """

    _node: NodeWithScore = PrivateAttr()

    @classmethod
    def of(cls, node: NodeWithScore) -> NodeDocument:
        """Return the document of a node. Its metadata says where the text comes from."""
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
        """Return the node itself."""
        return self._node

    @property
    def shift(self) -> int | None:
        """Return the difference between an offset in `page_content` and one in the node's own text.

        LlamaIndex may strip the node's text in `page_content`. The shift is None if the text is not
        in it.
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
        # The node's text may have been replaced, for example by the window around a sentence.
        if cut is None or (cut_end is not None and cut_end - cut != len(node.get_content())):
            return NodePlace(start, end)
        return NodePlace(start, end, cut + start, cut + end)


def without_note(metadata: dict[str, Any]) -> dict[str, Any]:
    """Return a node's metadata without the values of a guarded engine."""
    return {key: value for key, value in metadata.items() if key != KEY}


def as_documents(nodes: Iterable[NodeWithScore]) -> tuple[NodeDocument, ...]:
    """Return nodes as documents, in their order."""
    return tuple(map(NodeDocument.of, nodes))


def as_nodes(documents: Iterable[Document]) -> list[NodeWithScore]:
    """Return documents as nodes: the original node of a document that has one, else a new node."""
    return [
        document.node
        if isinstance(document, NodeDocument)
        else NodeWithScore(node=TextNode(text=document.page_content, metadata=document.metadata))
        for document in documents
    ]


def as_retriever(retriever: BaseRetriever | Runnable[str, Any]) -> Runnable[str, Any]:
    """Return a LlamaIndex retriever as a Runnable from a query to documents.

    A Runnable is returned unchanged.

    Raises:
        TypeError: The value is neither.
    """
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
