"""Test that earlier messages support the answers of agents and nodes, where that is allowed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from langchain.agents.middleware import AgentMiddleware, SummarizationMiddleware
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver

from agent_server import THREAD, make_agent, one_node, search, serving, small_search
from demur import Evaluation, Regenerate, Sample
from demur.guard import REFUSAL
from langchain_demur import HallucinationMiddleware, guarded_node
from support.openai_server import openai_server
from support.rag import FACTS, QUESTION, RIGHT, WRONG

TOLD, NAME, OTHER = "My name is Ann.", "Your name is Ann.", "Your name is Eve."
ASKED, HELLO = "What is my name?", "Hello!"
Say = Callable[..., str]


def judge(sample: Sample) -> Evaluation:
    """Pass a greeting, or an answer whose numbers, else its last word, are in its contexts."""
    held = " ".join(document.page_content for document in sample.contexts)
    words = sample.answer.strip(".").split()
    telling = [word for word in words if word.isdigit()] or words[-1:]
    passed = sample.answer == HELLO or all(word in held for word in telling)
    return Evaluation(name="judge", passed=passed)


@pytest.fixture
def say(request: pytest.FixtureRequest) -> Iterator[Say]:
    """Return a function that says something in one conversation, and returns the answer.

    The call is synchronous, unless a test's parameter says "async".
    """
    loop = asyncio.new_event_loop()

    def say(graph: Any, text: str, **state: Any) -> str:
        given = {"messages": [HumanMessage(text)], **state}
        if getattr(request, "param", "sync") == "sync":
            found = graph.invoke(given, THREAD)
        else:
            found = loop.run_until_complete(graph.ainvoke(given, THREAD))
        return str(found["messages"][-1].text)

    yield say
    loop.close()


both = pytest.mark.parametrize("say", ["sync", "async"], indirect=True)


def checks(**options: Any) -> HallucinationMiddleware:
    return HallucinationMiddleware(judge, on_fail="abstain", **options)


class TestAnAgent:
    @staticmethod
    def agent(server: Any, *middleware: AgentMiddleware[Any, Any]) -> Any:
        return make_agent(server, [small_search], *middleware, checkpointer=InMemorySaver())

    @both
    @pytest.mark.parametrize("conversation", [True, False])
    def test_knows_what_the_user_said(self, say: Say, conversation: bool) -> None:
        with openai_server(serving(HELLO, search(), RIGHT, NAME, OTHER)) as server:
            agent = self.agent(server, checks(conversation=conversation))
            said = [say(agent, text) for text in (TOLD, QUESTION, ASKED, ASKED)]
        assert said == [HELLO, RIGHT, NAME if conversation else REFUSAL, REFUSAL]

    @pytest.mark.parametrize("conversation", [True, False])
    def test_knows_what_tools_returned_before(self, say: Say, conversation: bool) -> None:
        """Ask about a ferry last, so that the last tool result says nothing of the tower."""

        @tool("search")
        def find(query: str) -> str:
            """Search the archive."""
            return FACTS[3] if "ferry" in query else FACTS[0]

        with openai_server(serving(search(), RIGHT, search("the ferry"), RIGHT)) as server:
            checked = checks(conversation=conversation)
            agent = make_agent(server, [find], checked, checkpointer=InMemorySaver())
            said = [say(agent, QUESTION), say(agent, "And the ferry? How tall was it?")]
        assert said == [RIGHT, RIGHT if conversation else REFUSAL]

    def test_does_not_know_what_it_said_itself(self, say: Say) -> None:
        with openai_server(serving(search(), WRONG)) as server:
            lenient = HallucinationMiddleware(lambda sample: Evaluation(name="j", passed=True))
            loose, strict = self.agent(server, lenient), checks(conversation=True)
            agent = make_agent(server, [small_search], strict, checkpointer=loose.checkpointer)
            assert [say(loose, QUESTION), say(agent, QUESTION)] == [WRONG, REFUSAL]

    def test_does_not_know_what_it_was_told_of_a_rejected_answer(self, say: Say) -> None:
        seen: list[Sample] = []

        def noting(sample: Sample) -> Evaluation:
            seen.append(sample)
            return judge(sample)

        with openai_server(serving(HELLO, OTHER, f"{OTHER}  ", NAME)) as server:
            middleware = HallucinationMiddleware(noting, conversation=True, on_fail=Regenerate())
            agent = self.agent(server, middleware)
            assert [say(agent, text) for text in (TOLD, ASKED)] == [HELLO, REFUSAL]
        assert [document.page_content for document in seen[-1].contexts] == [TOLD]

    def test_does_not_know_what_a_model_summed_up(self, say: Say) -> None:
        with openai_server(serving(HELLO, "Their name is Eve.", OTHER)) as server:
            summing = SummarizationMiddleware(
                server.model(), trigger=("messages", 3), keep=("messages", 1)
            )
            agent = self.agent(server, checks(conversation=True), summing)
            assert [say(agent, text) for text in (TOLD, ASKED)] == [HELLO, REFUSAL]
            messages = agent.get_state(THREAD).values["messages"]
        assert "Eve" in messages[0].text, "the summary stands in the conversation"


class TestANode:
    @staticmethod
    def graph(node: Any, **options: Any) -> Any:
        return one_node(guarded_node(node, judge, on_fail="abstain", **options))

    @staticmethod
    def saying(*texts: str) -> Any:
        coming = list(texts)

        def generate(state: Any) -> Any:
            return {"messages": [AIMessage(coming.pop(0))]}

        return generate

    @both
    @pytest.mark.parametrize("conversation", [True, False])
    def test_knows_what_the_user_said(self, say: Say, conversation: bool) -> None:
        node = self.saying(HELLO, NAME, OTHER)
        graph = self.graph(node, conversation=conversation)
        said = [say(graph, text, context=[Document(FACTS[0])]) for text in (TOLD, ASKED, ASKED)]
        assert said == [HELLO, NAME if conversation else REFUSAL, REFUSAL]

    @pytest.mark.parametrize("conversation", [True, False])
    def test_knows_the_documents_of_the_state(self, say: Say, conversation: bool) -> None:
        def generate(state: Any) -> Any:
            return {"messages": [AIMessage(RIGHT)], "documents": [Document(FACTS[3])]}

        graph = self.graph(generate, conversation=conversation)
        said = say(graph, QUESTION, context=[Document(FACTS[0])])
        assert said == (RIGHT if conversation else REFUSAL)

    def test_does_not_know_what_it_said_itself(self, say: Say) -> None:
        graph = self.graph(self.saying(OTHER), conversation=True)
        graph.update_state(THREAD, {"messages": [HumanMessage("Hi."), AIMessage(OTHER)]})
        assert say(graph, ASKED) == REFUSAL

    def test_does_not_know_what_it_was_told_of_a_rejected_answer(self, say: Say) -> None:
        node = self.saying(HELLO, OTHER, f"{OTHER} ", OTHER)
        graph = one_node(guarded_node(node, judge, on_fail=Regenerate(), conversation=True))
        assert [say(graph, text) for text in (TOLD, ASKED)] == [HELLO, REFUSAL]
