"""List what an answer cites, and put the source nodes in the order of the citations' numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.documents import Document
from llama_index.core.schema import NodeWithScore

from demur.guard import Citation, Trace
from llama_index.evaluation.demur._nodes import (
    KEY,
    NodeDocument,
    NodePlace,
    as_nodes,
    without_note,
)


def citations_of(trace: Trace) -> list[dict[str, Any]]:
    """Return the citations of the answer that left, as values of JSON.

    Each citation has:

    - `number`: the number of the mark; the node is `source_nodes[number - 1]`
    - `start` and `end` of the sentence in the answer, and its `path` in a structured answer
    - `quote`, and `title` and `url` of the source
    - `node_id` and `ref_doc_id`, which are None for a source that is not one of the engine's nodes
    - `node_start` and `node_end`: where the quote is in the node's own text
    - `doc_start` and `doc_end`: where the quote is in the document that the node was cut from

    The last four are None if the quote is in the node's metadata. The last two are also None if it
    is not known where the node was cut.
    """
    contexts = trace.attempts[-1].contexts
    return [_told(citation, contexts) for citation in trace.citations]


def numbered(nodes: Sequence[NodeWithScore], trace: Trace) -> list[NodeWithScore]:
    """Return the nodes of an answer, so that the number n in its text stands for the n-th node.

    A cited node is a copy. Its metadata has, under "demur", its `number` and its `quotes`, each
    with `text`, `start` and `end` in the node's own text. Neither models nor embeddings are shown
    this key. A cited text that is not from one of the engine's nodes, such as a user's words,
    becomes a new node.

    Args:
        nodes: The nodes that the answer was given from.
        trace: The trace of the guarded call.
    """
    last = trace.attempts[-1]
    quotes: dict[int, list[dict[str, Any]]] = {}
    for citation in trace.citations:
        of_node = quotes.setdefault(citation.document, [])
        place = _place(citation, last.contexts)
        quote = {"text": citation.quote, "start": place.start, "end": place.end}
        if quote not in of_node:
            of_node.append(quote)
    # If `Cite` corrected the engine's own marks, these may have the number of any context.
    recited = last.verdict == "passed" and last.recovery == "cite"
    most = len(last.contexts) if recited else 1 + max(quotes, default=-1)
    cited = as_nodes(last.contexts[:most])
    known = {node.node.node_id for node in cited}
    rest = [node for node in nodes if node.node.node_id not in known]
    return [
        _noted(node, {"number": at + 1, "quotes": quotes[at]}) if at in quotes else _noted(node)
        for at, node in enumerate([*cited, *rest])
    ]


def _told(citation: Citation, contexts: Sequence[Document]) -> dict[str, Any]:
    document = contexts[citation.document]
    node = document.node.node if isinstance(document, NodeDocument) else None
    place = _place(citation, contexts)
    return {
        **citation.model_dump(include={"number", "start", "end", "path", "quote", "title", "url"}),
        "node_id": None if node is None else node.node_id,
        "ref_doc_id": None if node is None else node.ref_doc_id,
        "node_start": place.start,
        "node_end": place.end,
        "doc_start": place.doc_start,
        "doc_end": place.doc_end,
    }


def _place(citation: Citation, contexts: Sequence[Document]) -> NodePlace:
    document = contexts[citation.document]
    start, end = citation.document_start, citation.document_end
    if isinstance(document, NodeDocument):
        return document.place(start, end)
    return NodePlace(start, end)  # in the node that will be made of the document


def _noted(node: NodeWithScore, note: dict[str, Any] | None = None) -> NodeWithScore:
    """Return a node with `note` in its metadata.

    Without a note, the node loses the note of a guard inside; if it has none, it is returned
    unchanged.
    """
    inner = node.node
    if note is None and KEY not in inner.metadata:
        return node
    changes: dict[str, Any] = {"metadata": without_note(inner.metadata)}
    if note is not None:
        changes["metadata"][KEY] = note
        for kind in ("excluded_llm_metadata_keys", "excluded_embed_metadata_keys"):
            changes[kind] = [*dict.fromkeys([*getattr(inner, kind), KEY])]
    return node.model_copy(update={"node": inner.model_copy(update=changes)})
