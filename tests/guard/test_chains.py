"""Test guards around unmodified chains like those of users, each guarded in one line."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_classic.chains import create_history_aware_retriever, create_retrieval_chain
from langchain_classic.chains.combine_documents import create_stuff_documents_chain
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable

from demur import Guard, RefChecker
from demur.guard import REFUSAL
from support.chains import CHAINS, Build
from support.openai_server import openai_server
from support.rag import FACTS, QUESTION, REPHRASE, RIGHT, WRONG, application, make_retriever
from support.streams import text_in


def _history_chain(model: BaseChatModel, retriever: BaseRetriever) -> Runnable[Any, Any]:
    rephrase = ChatPromptTemplate.from_messages(
        [MessagesPlaceholder("chat_history"), ("human", "{input}"), ("human", REPHRASE)]
    )
    answer = ChatPromptTemplate.from_messages(
        [("system", "From {context}"), MessagesPlaceholder("chat_history"), ("human", "{input}")]
    )
    searching = create_history_aware_retriever(model, retriever, rephrase)
    return create_retrieval_chain(searching, create_stuff_documents_chain(model, answer))


BUILDS = {**CHAINS, "chat history": _history_chain}
HISTORY = [HumanMessage("I am in Lund."), AIMessage("A fine town.")]
GIVEN = {"input": QUESTION, "chat_history": HISTORY}


@pytest.fixture(scope="module")
def retriever() -> BaseRetriever:
    return make_retriever()


@pytest.fixture(params=BUILDS)
def build(request: pytest.FixtureRequest) -> Build:
    return BUILDS[request.param]


@pytest.mark.slow
@pytest.mark.smoke
def test_a_wrong_answer_is_answered_again(build: Build, retriever: BaseRetriever) -> None:
    with openai_server(application(WRONG, RIGHT)) as server:
        guard = Guard(build(server.model(), retriever), RefChecker(server.model(), checker="joint"))
        found = guard.with_trace().invoke(GIVEN)
        asked = len(server.requests)
    assert text_in(found.output) == RIGHT
    assert found.trace.outcome == "recovered"
    assert [attempt.answer for attempt in found.trace.attempts] == [WRONG, RIGHT]
    assert [attempt.verdict for attempt in found.trace.attempts] == ["failed", "passed"]
    assert found.trace.usage.calls == asked
    assert found.trace.usage.input_tokens > 0


@pytest.mark.slow
def test_what_stays_wrong_is_refused_in_the_same_shape(
    build: Build, retriever: BaseRetriever
) -> None:
    with openai_server(application(WRONG)) as server:
        chain = build(server.model(), retriever)
        bare = chain.invoke(GIVEN)
        guard = Guard(chain, RefChecker(server.model(), checker="joint"))
        refused = guard.invoke(GIVEN)
    assert text_in(refused) == REFUSAL
    assert isinstance(bare, type(refused))
    if isinstance(bare, dict):
        assert {**refused, "answer": WRONG} == {**bare, "answer": WRONG}


def test_a_repair_model_corrects_from_what_the_chain_retrieved(
    build: Build, retriever: BaseRetriever
) -> None:
    with openai_server(application(WRONG)) as chains, openai_server(application(RIGHT)) as other:
        guard = Guard(
            build(chains.model(), retriever),
            RefChecker(other.model(), checker="joint"),
            model=other.model(),
        )
        found = guard.with_trace().invoke(GIVEN)
        (repair,) = (prompt for prompt in other.prompts() if "<wrong-" in prompt)
    assert text_in(found.output) == RIGHT
    assert [attempt.origin for attempt in found.trace.attempts] == ["chain", "repair"]
    assert all(text in repair for text in (FACTS[0], QUESTION, "97"))
    assert WRONG not in repair
    assert found.trace.usage.calls == len(chains.requests) + len(other.requests)
