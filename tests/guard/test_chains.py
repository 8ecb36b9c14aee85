"""Test guards around unmodified chains like those of users, each guarded in one line."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import itemgetter
from typing import Any

import pytest
from langchain_classic.chains import create_history_aware_retriever, create_retrieval_chain
from langchain_classic.chains.combine_documents import create_stuff_documents_chain
from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnablePassthrough

from demur import Guard, RefChecker
from demur.guard import REFUSAL
from support.openai_server import openai_server
from support.rag import FACTS, QUESTION, REPHRASE, RIGHT, WRONG, application, make_retriever

Build = Callable[[BaseChatModel, BaseRetriever], Runnable[Any, Any]]

PROMPT = ChatPromptTemplate.from_template("From {context} answer: {question}")


def _joined(documents: list[Document]) -> str:
    return "\n".join(document.page_content for document in documents)


def _dict_chain(model: BaseChatModel, retriever: BaseRetriever) -> Runnable[Any, Any]:
    return RunnablePassthrough.assign(documents=itemgetter("question") | retriever).assign(
        answer={"context": itemgetter("documents"), "question": itemgetter("question")}
        | PROMPT
        | model
        | StrOutputParser()
    )


def _retrieval_chain(model: BaseChatModel, retriever: BaseRetriever) -> Runnable[Any, Any]:
    prompt = ChatPromptTemplate.from_messages([("system", "From {context}"), ("human", "{input}")])
    return create_retrieval_chain(retriever, create_stuff_documents_chain(model, prompt))


def _message_chain(model: BaseChatModel, retriever: BaseRetriever) -> Runnable[Any, Any]:
    return {"context": retriever | _joined, "question": RunnablePassthrough()} | PROMPT | model


def _string_chain(model: BaseChatModel, retriever: BaseRetriever) -> Runnable[Any, Any]:
    return _message_chain(model, retriever) | StrOutputParser()


def _history_chain(model: BaseChatModel, retriever: BaseRetriever) -> Runnable[Any, Any]:
    rephrase = ChatPromptTemplate.from_messages(
        [MessagesPlaceholder("chat_history"), ("human", "{input}"), ("human", REPHRASE)]
    )
    answer = ChatPromptTemplate.from_messages(
        [("system", "From {context}"), MessagesPlaceholder("chat_history"), ("human", "{input}")]
    )
    searching = create_history_aware_retriever(model, retriever, rephrase)
    return create_retrieval_chain(searching, create_stuff_documents_chain(model, answer))


HISTORY = [HumanMessage("I am in Lund."), AIMessage("A fine town.")]

CHAINS: dict[str, tuple[Build, Any, Callable[[Any], str]]] = {
    "LCEL dict chain": (_dict_chain, {"question": QUESTION}, itemgetter("answer")),
    "create_retrieval_chain": (_retrieval_chain, {"input": QUESTION}, itemgetter("answer")),
    "string only": (_string_chain, QUESTION, str),
    "AIMessage": (_message_chain, QUESTION, lambda message: str(message.text)),
    "chat history": (
        _history_chain,
        {"input": QUESTION, "chat_history": HISTORY},
        itemgetter("answer"),
    ),
}


@pytest.fixture(scope="module")
def retriever() -> BaseRetriever:
    return make_retriever()


@pytest.fixture(params=CHAINS)
def case(request: pytest.FixtureRequest) -> Iterator[tuple[Build, Any, Callable[[Any], str]]]:
    return CHAINS[request.param]


@pytest.mark.slow
@pytest.mark.smoke
def test_a_wrong_answer_is_answered_again(case: Any, retriever: BaseRetriever) -> None:
    build, given, answer_in = case
    with openai_server(application(WRONG, RIGHT)) as server:
        guard = Guard(build(server.model(), retriever), RefChecker(server.model(), checker="joint"))
        found = guard.with_trace().invoke(given)
        asked = len(server.requests)
    assert answer_in(found.output) == RIGHT
    assert found.trace.outcome == "recovered"
    assert [attempt.answer for attempt in found.trace.attempts] == [WRONG, RIGHT]
    assert [attempt.verdict for attempt in found.trace.attempts] == ["failed", "passed"]
    assert found.trace.usage.calls == asked
    assert found.trace.usage.input_tokens > 0


@pytest.mark.slow
def test_what_stays_wrong_is_refused_in_the_same_shape(case: Any, retriever: BaseRetriever) -> None:
    build, given, answer_in = case
    with openai_server(application(WRONG)) as server:
        chain = build(server.model(), retriever)
        bare = chain.invoke(given)
        guard = Guard(chain, RefChecker(server.model(), checker="joint"))
        refused = guard.invoke(given)
    assert answer_in(refused) == REFUSAL
    assert isinstance(bare, type(refused))
    if isinstance(bare, dict):
        assert {**refused, "answer": WRONG} == bare


def test_a_repair_model_corrects_from_what_the_chain_retrieved(
    case: Any, retriever: BaseRetriever
) -> None:
    build, given, answer_in = case
    with openai_server(application(WRONG)) as chains, openai_server(application(RIGHT)) as other:
        guard = Guard(
            build(chains.model(), retriever),
            RefChecker(other.model(), checker="joint"),
            model=other.model(),
        )
        found = guard.with_trace().invoke(given)
        (repair,) = (prompt for prompt in other.prompts() if "<problems-" in prompt)
    assert answer_in(found.output) == RIGHT
    assert [attempt.origin for attempt in found.trace.attempts] == ["chain", "repair"]
    assert all(text in repair for text in (FACTS[0], QUESTION, "97"))
    assert WRONG not in repair
    assert found.trace.usage.calls == len(chains.requests) + len(other.requests)
