from __future__ import annotations

import asyncio
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from demur import Sample
from llama_index.evaluation.demur._nodes import (
    NodeDocument,
    as_documents,
    as_nodes,
    as_retriever,
)


def _node(text: str, **options: Any) -> NodeWithScore:
    return NodeWithScore(node=TextNode(text=text, **options), score=0.5)


def test_a_document_is_what_llama_index_shows_a_model() -> None:
    node = _node(
        "It is tall.",
        id_="n1",
        metadata={"title": "Towers", "file": "x.pdf"},
        excluded_llm_metadata_keys=["file"],
        start_char_idx=12,
        end_char_idx=23,
    )
    (document,) = as_documents([node])
    assert document.page_content == "title: Towers\n\nIt is tall."
    assert document.id == "n1"
    assert document.metadata == {
        "title": "Towers",
        "file": "x.pdf",
        "ref_doc_id": None,
        "start_char_idx": 12,
        "end_char_idx": 23,
        "score": 0.5,
    }
    assert document.page_content[document.shift :] == "It is tall."


def test_a_nodes_own_metadata_is_not_lost_to_ours() -> None:
    (document,) = as_documents([_node("x", metadata={"score": "A+"})])
    assert document.metadata["score"] == "A+"


@given(
    st.text(max_size=30),
    st.dictionaries(st.sampled_from(["a", "b"]), st.text(max_size=10), max_size=2),
    st.sampled_from(["{metadata_str}\n\n{content}", "{content}\n({metadata_str})", "{content}"]),
)
def test_the_nodes_text_is_found_wherever_the_template_puts_it(
    text: str, metadata: dict[str, str], template: str
) -> None:
    node = _node(text, metadata=metadata, text_template=template)
    document = NodeDocument.of(node)
    shown = text.strip()  # LlamaIndex strips the text that it shows with metadata.
    if not shown:
        assert document.shift is None
        return
    assert document.shift is not None
    at = text.index(shown) + document.shift
    assert document.page_content[at : at + len(shown)] == shown


def test_nodes_come_back_as_they_were() -> None:
    node = _node("It is tall.")
    sample = Sample(answer="x", contexts=list(as_documents([node])))
    assert as_nodes(sample.contexts)[0] is node
    copied = pickle.loads(pickle.dumps(sample.contexts[0]))
    assert as_nodes([copied])[0].node.node_id == node.node.node_id
    (other,) = as_nodes([Document("Plain.", metadata={"page": 1})])
    assert (other.node.get_content(), other.node.metadata) == ("Plain.", {"page": 1})


class Finds(BaseRetriever):
    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return [_node(f"about {query_bundle.query_str}")]

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return [_node(f"async about {query_bundle.query_str}")]


def test_retrievers() -> None:
    retriever = as_retriever(Finds())
    assert [one.page_content for one in retriever.invoke("towers")] == ["about towers"]
    found = asyncio.run(retriever.ainvoke("towers"))
    assert [one.page_content for one in found] == ["async about towers"]
    own = RunnableLambda(lambda _: [Document("x")])
    assert as_retriever(own) is own
    with pytest.raises(TypeError, match="expected a LlamaIndex BaseRetriever, got str"):
        as_retriever("bm25")  # type: ignore[arg-type]  # what is refused
