"""Build chains as users do, each from a chat model and a retriever; "input" is the question."""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter
from typing import Any

from langchain_classic.chains import create_retrieval_chain
from langchain_classic.chains.combine_documents import create_stuff_documents_chain
from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnablePassthrough

Build = Callable[[BaseChatModel, BaseRetriever], Runnable[Any, Any]]

PROMPT = ChatPromptTemplate.from_template("From {context} answer: {input}")


def _joined(documents: list[Document]) -> str:
    return "\n".join(document.page_content for document in documents)


def text_chain(model: BaseChatModel, retriever: BaseRetriever) -> Runnable[Any, Any]:
    return _message(model, retriever) | StrOutputParser()


def _message(model: BaseChatModel, retriever: BaseRetriever) -> Runnable[Any, Any]:
    asked = {"context": itemgetter("input") | retriever | _joined, "input": itemgetter("input")}
    return asked | PROMPT | model


def _mapping(model: BaseChatModel, retriever: BaseRetriever) -> Runnable[Any, Any]:
    return RunnablePassthrough.assign(documents=itemgetter("input") | retriever).assign(
        answer={"context": itemgetter("documents"), "input": itemgetter("input")} | PROMPT | model
    )


def _retrieval(model: BaseChatModel, retriever: BaseRetriever) -> Runnable[Any, Any]:
    return create_retrieval_chain(retriever, create_stuff_documents_chain(model, PROMPT))


CHAINS: dict[str, Build] = {
    "text": text_chain,
    "message": _message,
    "a message in a mapping": _mapping,
    "create_retrieval_chain": _retrieval,
}
