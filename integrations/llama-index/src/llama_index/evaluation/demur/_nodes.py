"""Between LlamaIndex's nodes and the documents that evaluators read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from langchain_core.documents import Document
from langchain_core.runnables import Runnable, RunnableLambda
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.schema import MetadataMode, NodeWithScore, TextNode
from pydantic import PrivateAttr


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
            metadata={**place, **node.node.metadata},
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
