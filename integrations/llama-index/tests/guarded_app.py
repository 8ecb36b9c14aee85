"""Make a LlamaIndex application over a real Chroma, and judges that know the facts."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Sequence
from typing import Any

import chromadb
from langchain_core.messages import BaseMessage
from llama_index.core import Document, StorageContext, VectorStoreIndex
from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.instrumentation.events import BaseEvent
from llama_index.core.llms import LLM
from llama_index.core.memory import BaseMemory, ChatMemoryBuffer
from llama_index.core.query_engine import CustomQueryEngine
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from llama_index.embeddings.langchain import LangchainEmbedding
from llama_index.vector_stores.chroma import ChromaVectorStore
from llama_index_instrumentation import root_dispatcher
from pydantic import PrivateAttr
from pydantic_core import to_json

from demur import RefChecker
from fake_llm import ScriptedLLM
from support.fakes import ScriptedModel
from support.rag import FACTS, QUESTION, RIGHT, WRONG, WordEmbeddings, application

BOTH = f"{RIGHT} {WRONG}"
"""A sentence that passes, followed by one that fails."""


def speaker(*answers: str) -> ScriptedLLM:
    """Return a model for engines that gives these answers in order, then repeats the last."""
    coming = list(answers)
    return ScriptedLLM(script=lambda *_: coming.pop(0) if len(coming) > 1 else coming[0])


def llm_of(engine: Any) -> Any:
    """Return the LLM that an engine asks; LlamaIndex has no public access to it."""
    return engine._llm if hasattr(engine, "_llm") else engine._response_synthesizer._llm


def prompts(llm: ScriptedLLM) -> list[str]:
    """Return the prompts that the LLM was asked, in order."""
    return ["\n".join(str(one.text) for one in messages) for messages in llm.requests]


def build(llm: LLM, k: int = 2) -> VectorStoreIndex:
    """Build an index over the facts, in a Chroma collection of its own."""
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
    """Return a query engine whose model gives these answers, and then repeats the last one."""
    llm = speaker(*answers)
    return build(llm).as_query_engine(llm=llm, similarity_top_k=k, **options)


def chat_engine(kind: str, *answers: str, memory: BaseMemory | None = None) -> Any:
    """Return such a chat engine, whose memory is a list unless another one is given.

    LlamaIndex's default is a database whose thread raises an error when its event loop is gone.
    """
    llm = speaker(*answers)
    memory = memory or ChatMemoryBuffer.from_defaults()
    return build(llm).as_chat_engine(chat_mode=kind, llm=llm, memory=memory, similarity_top_k=2)


def judge() -> RefChecker:
    """Return a judge that labels a claim by whether its numbers are in the reference."""
    return RefChecker(ScriptedModel(script=labels))


def sentence_judge() -> RefChecker:
    """Return such a judge with sentences as claims, so that the evidence has exact places."""
    return RefChecker(ScriptedModel(script=labels), claims="sentences")


def labels(stage: str, messages: Sequence[BaseMessage]) -> str:
    """Reply as a judge that labels a claim by whether its numbers are in the reference."""
    return application("unused")({"messages": [{"content": str(messages[-1].content)}]}, 0)


def assert_cited(response: Any) -> None:
    """Assert that each citation belongs to the node of its number, which has its quote exactly."""
    quoted: dict[int, set[str]] = {}
    citations = response.metadata["demur"]["citations"]
    assert citations
    for one in citations:
        node = response.source_nodes[one["number"] - 1].node
        assert one["node_id"] in (node.node_id, None)
        assert one["node_start"] is not None
        assert node.get_content()[one["node_start"] : one["node_end"]] == one["quote"]
        quoted.setdefault(one["number"], set()).add(one["quote"])
    for number, source in enumerate(response.source_nodes, start=1):
        if number not in quoted:
            assert "demur" not in source.metadata
            continue
        noted = source.metadata["demur"]
        assert noted["number"] == number
        assert {one["text"] for one in noted["quotes"]} == quoted[number]
        for one in noted["quotes"]:
            assert source.node.get_content()[one["start"] : one["end"]] == one["text"]


SILENT = "I don't know."
"""An answer without any claim."""


def silent_judge() -> RefChecker:
    """Return a judge that finds nothing to check."""
    return RefChecker(ScriptedModel(script=lambda stage, messages: "No claims"))


MODES = ["sync", "async"]
"""The ways to ask an engine."""


def ask(mode: str, engine: BaseQueryEngine, question: Any = QUESTION) -> Any:
    return engine.query(question) if mode == "sync" else asyncio.run(engine.aquery(question))


def read(
    mode: str, engine: BaseQueryEngine, heard: Callable[[], None] = lambda: None
) -> tuple[list[str], Any]:
    """Return the pieces of a stream, calling `heard` after each, and the response after it."""
    pieces = []
    if mode == "sync":
        response: Any = engine.query(QUESTION)
        for piece in response.response_gen:
            pieces.append(piece)
            heard()
        return pieces, response.get_response()

    async def in_loop() -> Any:
        response: Any = await engine.aquery(QUESTION)
        async for piece in response.async_response_gen():
            pieces.append(piece)
            heard()
        return await response.get_response()

    return pieces, asyncio.run(in_loop())


def written(response: Any) -> str:
    """Return all that a logger may write of a response."""
    kept = to_json(response, serialize_unknown=True).decode()
    return f"{response!r}\n{vars(response)!r}\n{kept}"


class Said(CustomQueryEngine):
    """Represent a minimal LlamaIndex engine, which neither retrieves nor synthesizes."""

    script: Callable[[str], Any]
    asked: list[str] = []  # noqa: RUF012  # a field: pydantic copies it

    def custom_query(self, query_str: str) -> Any:
        self.asked.append(query_str)
        return self.script(query_str)


def nodes_of(*texts: str) -> list[NodeWithScore]:
    return [NodeWithScore(node=TextNode(text=text)) for text in texts]


def finds(text: str) -> Any:
    class Finds(BaseRetriever):
        def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
            return nodes_of(text)

    return Finds()


class Heard(BaseEventHandler):
    """Keep the events that LlamaIndex emits while the block runs."""

    _events: list[BaseEvent] = PrivateAttr(default_factory=list)

    def handle(self, event: BaseEvent, **kwargs: Any) -> None:
        self._events.append(event)

    def of(self, kind: type[Any]) -> list[Any]:
        return [one for one in self._events if isinstance(one, kind)]

    def __enter__(self) -> Heard:
        root_dispatcher.add_event_handler(self)
        return self

    def __exit__(self, *_: object) -> None:
        root_dispatcher.event_handlers.remove(self)
