"""A LlamaIndex application over a real Chroma, and a judge who knows what is so."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

import chromadb
from langchain_core.messages import BaseMessage
from llama_index.core import Document, StorageContext, VectorStoreIndex
from llama_index.core.llms import LLM
from llama_index.embeddings.langchain import LangchainEmbedding
from llama_index.vector_stores.chroma import ChromaVectorStore

from demur import RefChecker
from fake_llm import ScriptedLLM
from support.fakes import ScriptedModel
from support.rag import FACTS, RIGHT, WRONG, WordEmbeddings, application

BOTH = f"{RIGHT} {WRONG}"
"""A sentence that passes, and one that does not."""


def speaker(*answers: str) -> ScriptedLLM:
    """A model for engines: it gives these answers in order, the last one again and again."""
    coming = list(answers)
    return ScriptedLLM(script=lambda *_: coming.pop(0) if len(coming) > 1 else coming[0])


def prompts(llm: ScriptedLLM) -> list[str]:
    """What it was asked, in order."""
    return ["\n".join(str(one.text) for one in messages) for messages in llm.requests]


def build(llm: LLM, k: int = 2) -> VectorStoreIndex:
    """An index over the facts, in a Chroma collection of its own."""
    collection = chromadb.EphemeralClient().create_collection(f"nodes-{uuid.uuid4().hex}")
    storage = StorageContext.from_defaults(vector_store=ChromaVectorStore(collection))
    documents = [
        Document(text=fact, id_=f"fact-{at}", metadata={"page": at})
        for at, fact in enumerate(FACTS)
    ]
    embedding = LangchainEmbedding(WordEmbeddings())
    return VectorStoreIndex.from_documents(
        documents, storage_context=storage, embed_model=embedding, llm=llm
    )


def query_engine(*answers: str, k: int = 2, **options: Any) -> Any:
    """A query engine whose model gives these answers, the last one again and again."""
    llm = speaker(*answers)
    return build(llm).as_query_engine(llm=llm, similarity_top_k=k, **options)


def judge() -> RefChecker:
    """Labels a claim by whether its numbers stand in the reference."""
    script = application("unused")

    def reply(stage: str, messages: Sequence[BaseMessage]) -> str:
        return script({"messages": [{"content": str(messages[-1].content)}]}, 0)

    return RefChecker(ScriptedModel(script=reply))
