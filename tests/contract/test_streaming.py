"""Test streaming as in applications: LangChain's chains, a real endpoint, RefChecker, LangGraph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable

from demur import Guard, RefChecker
from support.chains import CHAINS, text_chain
from support.openai_server import OpenAIServer, openai_server
from support.rag import QUESTION, application, make_retriever
from support.streams import Client

RIGHT = "The Amber Tower is 84 metres tall. It was opened in 1911. There are 302 steps."
WRONG = "The Amber Tower is 84 metres tall. It was opened in 6065. There are 302 steps."
MARK = "6"
"""A digit that is in no right answer."""


@pytest.fixture(scope="module")
def retriever() -> BaseRetriever:
    return make_retriever(k=4)


@pytest.fixture(params=zip(CHAINS, ["sync", "async", "sync", "async"], strict=True))
def case(request: pytest.FixtureRequest) -> tuple[str, str]:
    """Return the name of a chain, and how it is to be called."""
    found: tuple[str, str] = request.param
    return found


def guarded(server: OpenAIServer, chain: Runnable[Any, Any], **options: Any) -> Guard[Any, Any]:
    checker = RefChecker(server.model(), checker="joint")
    return Guard(chain, checker, **{"streaming": "sentence", **options})


GIVEN = {"input": QUESTION}


@pytest.mark.slow
@pytest.mark.smoke
def test_a_right_answer_is_streamed_by_sentences(
    case: tuple[str, str], retriever: BaseRetriever
) -> None:
    with openai_server(application(RIGHT)) as server:
        chain = CHAINS[case[0]](server.model(stream_usage=True), retriever)
        bare = chain.invoke(GIVEN)
        client = Client().read(guarded(server, chain), GIVEN, case[1])
    assert client.text == RIGHT
    texts = [text for text in client.texts if text]
    assert texts == [
        "The Amber Tower is 84 metres tall.",
        " It was opened in 1911.",
        " There are 302 steps.",
    ]
    if isinstance(bare, dict):
        assert client.others == {key: bare[key] for key in bare if key != "answer"}
    if isinstance(bare, AIMessage):
        whole = client.total
        assert whole.text == RIGHT
        assert whole.usage_metadata == bare.usage_metadata
        assert whole.response_metadata["finish_reason"] == "stop"


@pytest.mark.slow
@pytest.mark.smoke
def test_a_wrong_sentence_is_not_seen_and_is_corrected(
    case: tuple[str, str], retriever: BaseRetriever
) -> None:
    with openai_server(application(WRONG, RIGHT)) as server:
        chain = CHAINS[case[0]](server.model(), retriever)
        client = Client().read(guarded(server, chain), GIVEN, case[1])
    assert client.text == RIGHT
    assert MARK not in client.received


# --- langgraph -----------------------------------------------------------------------------------


def _streamed(node: Callable[[Any], Any]) -> list[BaseMessage]:
    """Return the messages that a graph with this node streams while it runs."""
    graph = pytest.importorskip("langgraph.graph")

    builder = graph.StateGraph(graph.MessagesState)
    builder.add_node("answer", node)
    builder.add_edge(graph.START, "answer")
    compiled = builder.compile()
    given = {"messages": [("user", QUESTION)]}
    return [message for message, _ in compiled.stream(given, stream_mode="messages")]


@pytest.mark.parametrize(("way", "streaming"), [("invoke", "buffer"), ("stream", "sentence")])
def test_langgraph_streams_no_token_of_what_was_not_accepted(
    way: str, streaming: str, retriever: BaseRetriever
) -> None:
    with openai_server(application(WRONG, RIGHT)) as server:
        guard = guarded(server, text_chain(server.model(), retriever), streaming=streaming)

        def node(state: Any) -> dict[str, Any]:
            asked = {"input": state["messages"][-1].text}
            if way == "invoke":
                return {"messages": [AIMessage(guard.invoke(asked))]}
            client = Client().read(guard, asked, "sync")
            return {"messages": [AIMessage(client.text)]}

        messages = _streamed(node)
    # Only the node's own message is streamed, with no token of the chain or the judge.
    assert [str(message.text) for message in messages] == [RIGHT]


def test_langgraph_streams_the_bare_chains_tokens(retriever: BaseRetriever) -> None:
    """Show that the test above can fail."""
    with openai_server(application(WRONG)) as server:
        chain = text_chain(server.model(streaming=True), retriever)

        def node(state: Any) -> dict[str, Any]:
            return {"messages": [AIMessage(chain.invoke({"input": state["messages"][-1].text}))]}

        messages = _streamed(node)
    assert len(messages) > 3
    assert any(MARK in str(message.text) for message in messages[:-1])
