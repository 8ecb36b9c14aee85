"""Test what the guard learns from a chain's callbacks, with real retrievers and a real endpoint."""

from __future__ import annotations

from typing import Any

from langchain_classic.retrievers import EnsembleRetriever
from langchain_core.callbacks import (
    CallbackManagerForRetrieverRun,
    dispatch_custom_event,
)
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda

from demur import Guard, RefChecker, Usage
from demur.guard import USAGE, Capture
from support.handlers import Library
from support.openai_server import Answer, openai_server
from support.rag import application


class FirstOf(BaseRetriever):
    """Ask another retriever, and keep only the first document, as a reranker does."""

    inner: BaseRetriever

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        return self.inner.invoke(query, config={"callbacks": run_manager.get_child()})[:1]


def captured(chain: Runnable[Any, Any]) -> Capture:
    capture = Capture()
    chain.invoke("q", {"callbacks": [capture]})
    return capture


def texts(capture: Capture) -> list[str]:
    return [document.page_content for document in capture.documents]


def test_documents_of_all_retrievers_in_order_without_repeats() -> None:
    first, second = Library(texts=("a", "b")), Library(texts=("b", "c"))
    chain = RunnableLambda(str) | first | (lambda _: "again") | second
    assert texts(captured(chain)) == ["a", "b", "c"]


def test_of_nested_retrievers_only_the_outermost_counts() -> None:
    assert texts(captured(FirstOf(inner=Library(texts=("a", "b"))))) == ["a"]
    deeper = FirstOf(inner=FirstOf(inner=Library(texts=("a", "b"))))
    assert texts(captured(deeper)) == ["a"]
    parts = [Library(texts=("a", "b")), Library(texts=("a", "c"))]
    ensemble = EnsembleRetriever(retrievers=parts, weights=[0.5, 0.5])
    assert sorted(texts(captured(ensemble))) == ["a", "b", "c"]


def test_what_a_judge_inside_the_chain_retrieves_is_no_context() -> None:
    with openai_server(application("It has 7 floors.")) as server:
        model = server.model()
        inner = Guard(
            model, RefChecker(model, checker="joint", retriever=Library(texts=("7 floors",)))
        )
        capture = captured(inner)
        asked = len(server.requests)
    assert capture.documents == ()
    assert capture.usage.calls == asked == 3  # one each for answer, claims and labels


def test_calls_and_tokens_those_that_failed_included() -> None:
    with openai_server([Answer(status=500), "one two", "three"]) as server:
        chain = server.model().with_retry(wait_exponential_jitter=False)
        capture = captured(chain | (lambda message: message.text) | server.model())
    assert capture.usage.calls == 3
    assert capture.usage.input_tokens == 1 + 2
    assert capture.usage.output_tokens == 2 + 1
    assert capture.usage.seconds > 0


def test_what_a_chain_says_of_calls_that_langchain_does_not_see_adds_up() -> None:
    spent = Usage(calls=2, cached=1, input_tokens=30, output_tokens=4, seconds=0.5)

    def tell(said: str, config: RunnableConfig) -> str:
        dispatch_custom_event(USAGE, spent.model_dump(), config=config)
        dispatch_custom_event(USAGE, {"calls": 1}, config=config)
        return said

    with openai_server(["one two"]) as server:
        usage = captured(RunnableLambda(tell) | server.model()).usage
    assert (usage.calls, usage.cached) == (2 + 1 + 1, 1)
    assert (usage.input_tokens, usage.output_tokens) == (30 + 1, 4 + 2)
    assert usage.seconds > 0.5
