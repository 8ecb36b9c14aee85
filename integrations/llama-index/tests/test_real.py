"""Test LlamaIndex with a real model as author and judge, real embeddings and a real Chroma."""

from __future__ import annotations

import uuid
from typing import Any

import chromadb
import pytest
from llama_index.core import Document, StorageContext, VectorStoreIndex
from llama_index.core.base.response.schema import Response
from llama_index.core.llms import LLM
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.schema import QueryBundle
from llama_index.embeddings.langchain import LangchainEmbedding
from llama_index.vector_stores.chroma import ChromaVectorStore

from demur.local import MiniLM
from fake_llm import EndpointLLM
from guarded_app import Said
from llama_index.evaluation.demur import (
    GuardedChatEngine,
    GuardedQueryEngine,
    RefCheckerEvaluator,
    trace_of,
)

pytestmark = pytest.mark.real

TEXTS = (
    "The kettle holds two litres. It is made of steel and weighs 900 grams.",
    "The last train to Turku leaves at 22:40 from platform 3.",
    "The Louvre, in Paris, opened as a museum in 1793.",
)
QUESTION = "What is the kettle made of? Answer in one short sentence."


@pytest.fixture(scope="module")
def llm() -> LLM:
    """Return the local model as LlamaIndex reaches it: through OpenAI's protocol."""
    pytest.importorskip("xllamacpp", reason="the local runtime is not installed: demur[local]")
    from demur.errors import LocalModelError
    from demur.local import ChatLocal

    try:
        model = ChatLocal()
    except LocalModelError as error:
        pytest.skip(f"the 1.5B model is not here: {error}")
    with model._session():
        assert model._connected is not None
        base, key = f"{model._connected.url}/v1", model._connected.key
    return EndpointLLM(
        model=model.model_name, api_base=base, api_key=key, timeout=1800, max_tokens=200
    )


@pytest.fixture(scope="module")
def index(llm: LLM) -> VectorStoreIndex:
    collection = chromadb.EphemeralClient().create_collection(f"real-{uuid.uuid4().hex}")
    storage = StorageContext.from_defaults(vector_store=ChromaVectorStore(collection))
    documents = [Document(text=text, id_=f"text-{at}") for at, text in enumerate(TEXTS)]
    return VectorStoreIndex.from_documents(
        documents, storage_context=storage, embed_model=LangchainEmbedding(MiniLM())
    )


def test_a_real_answer_passes_and_has_its_evidence(llm: LLM, index: VectorStoreIndex) -> None:
    engine = index.as_query_engine(llm=llm, similarity_top_k=1)
    response = GuardedQueryEngine(engine, RefCheckerEvaluator("local")).query(QUESTION)
    result: Any = response.metadata and response.metadata["demur"]
    assert result["outcome"] in ("passed", "recovered"), trace_of(response)
    assert "steel" in str(response).lower()
    assert result["evidence"]
    for found in result["evidence"]:
        assert found["ref_doc_id"] == "text-0"
        assert TEXTS[0][found["doc_start"] : found["doc_end"]] == found["text"]
    usage = trace_of(response).attempts[0].usage
    assert usage.calls == 1
    assert usage.output_tokens > 0


@pytest.mark.smoke
def test_a_wrong_answer_does_not_leave(llm: LLM, index: VectorStoreIndex) -> None:
    def wrong(query: str) -> Response:
        nodes = index.as_retriever(similarity_top_k=1).retrieve(QueryBundle(query))
        return Response("The kettle is made of copper.", nodes)

    guarded = GuardedQueryEngine(Said(script=wrong), RefCheckerEvaluator("local"), model=llm)
    response = guarded.query(QUESTION)
    assert trace_of(response).attempts[0].verdict == "failed"
    assert "copper" not in str(response)


async def test_a_real_chat_streams_by_sentences(llm: LLM, index: VectorStoreIndex) -> None:
    engine = index.as_chat_engine(
        chat_mode="context",
        llm=llm,
        memory=ChatMemoryBuffer.from_defaults(),
        similarity_top_k=1,
    )
    chat = GuardedChatEngine(engine, RefCheckerEvaluator("local"), streaming="sentence")
    response = await chat.astream_chat(QUESTION)
    said = "".join([piece async for piece in response.async_response_gen()])
    assert response.response in said
    assert chat.chat_history[-1].content == response.response
    assert len(trace_of(response).attempts) >= 1
