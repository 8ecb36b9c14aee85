"""Test what an agent with the middleware says, keeps and spends."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from langchain.agents.middleware import AgentMiddleware
from langchain.agents.structured_output import ProviderStrategy, ToolStrategy
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt
from pydantic import BaseModel

from agent_server import (
    ASKED,
    REJECTED,
    TASKS_HAVE_CONTEXT,
    Calls,
    Reply,
    checker,
    judged_by,
    make_agent,
    search,
    search_tool,
    serving,
    small_search,
    speaking,
)
from demur import (
    AnswerRejected,
    DemurError,
    Evaluation,
    Regenerate,
    Sample,
)
from demur.guard import REFUSAL, UNCHECKED, Block, Budget, Feedback
from langchain_demur import HallucinationMiddleware
from support import facts
from support.evaluators import ForStrictGuards
from support.fakes import ScriptedModel
from support.openai_server import openai_server
from support.rag import FACTS, QUESTION, RIGHT, WRONG, make_retriever

Run = Callable[..., Any]


@pytest.fixture
def run(request: pytest.FixtureRequest) -> Iterator[Run]:
    """Return a function that runs an agent, synchronously unless a test's parameter says "async".

    All asynchronous runs of a test share a loop.
    """
    loop = asyncio.new_event_loop()

    def run(agent: Any, given: Any = ASKED, config: Any = None) -> Any:
        if getattr(request, "param", "sync") == "sync":
            return agent.invoke(given, config)
        return loop.run_until_complete(agent.ainvoke(given, config))

    yield run
    loop.close()


both = pytest.mark.parametrize("run", ["sync", "async"], indirect=True)


@pytest.fixture
def run_in_context(run: Run, request: pytest.FixtureRequest) -> Run:
    if not TASKS_HAVE_CONTEXT and request.node.callspec.params["run"] == "async":
        pytest.skip("langgraph has no interrupts for tasks on this Python")
    return run


def thread(name: str = "1") -> Any:
    return {"configurable": {"thread_id": name}}


def kinds(found: Any) -> list[str]:
    return [message.type for message in found["messages"]]


def test_a_right_answer_goes_through_unchanged(run: Run) -> None:
    with openai_server(serving(search(), RIGHT)) as server:
        tools = [search_tool(make_retriever())]
        bare = run(make_agent(server, tools))["messages"][-1]
    with openai_server(serving(search(), RIGHT)) as server:
        checks = HallucinationMiddleware(checker(server))
        found = run(make_agent(server, tools, checks))
    assert kinds(found) == ["human", "ai", "tool", "ai"]
    same = {"id": None, "response_metadata": {}}
    assert found["messages"][-1].model_copy(update=same) == bare.model_copy(update=same)
    assert "demur" not in found["messages"][-1].response_metadata


@both
def test_a_wrong_answer_is_answered_again_and_leaves_no_trace_in_the_history(run: Run) -> None:
    with openai_server(serving(search(), WRONG, RIGHT)) as server:
        checks = HallucinationMiddleware(checker(server))
        agent = make_agent(server, [small_search], checks, checkpointer=InMemorySaver())
        found = run(agent, config=thread())
        state = agent.get_state(thread()).values
        again = [one for one in server.requests if "does not hold" in str(one["messages"])]
    assert kinds(found) == ["human", "ai", "tool", "ai"]
    assert found["messages"][-1].text == RIGHT
    mark = found["messages"][-1].response_metadata["demur"]
    assert mark["outcome"] == "recovered"
    assert [one["text"] in FACTS[0] for one in mark["evidence"]] == [True]
    assert "97" not in repr(mark)
    assert "97" not in str([message.content for message in state["messages"]])
    assert set(state) == {"messages"}
    # The feedback came last, and named the claim and the passage that refutes it.
    assert [message["role"] for message in again[0]["messages"]] == [
        "user",
        "assistant",
        "tool",
        "user",
    ]
    assert "97" in again[0]["messages"][-1]["content"]
    assert FACTS[0] in again[0]["messages"][-1]["content"]


@both
def test_what_stays_wrong_is_refused_in_the_place_of_the_message(run: Run) -> None:
    given: list[str | None] = []

    class Listen(AgentMiddleware[Any, Any]):
        def wrap_model_call(self, request: Any, handler: Any) -> Any:
            response = handler(request)
            given.append(response.result[-1].id)
            return response

        async def awrap_model_call(self, request: Any, handler: Any) -> Any:
            response = await handler(request)
            given.append(response.result[-1].id)
            return response

    with openai_server(serving(search(), WRONG)) as server:
        checks = HallucinationMiddleware(checker(server), budget=Budget(attempts=1))
        found = run(make_agent(server, [small_search], checks, Listen()))
    answer = found["messages"][-1]
    assert kinds(found) == ["human", "ai", "tool", "ai"]
    assert [message.id for message in found["messages"] if message.type == "ai"] == given
    assert answer.text == REFUSAL
    assert answer.response_metadata["demur"]["outcome"] == "abstained"
    assert answer.response_metadata["demur"]["reason"]
    assert "97" not in repr(answer.model_dump(exclude={"id"}))


def test_a_blocked_answer_raises_and_stays_out_of_the_state(run: Run) -> None:
    with openai_server(serving(search(), WRONG)) as server:
        checks = HallucinationMiddleware(checker(server), on_fail=Block())
        agent = make_agent(server, [small_search], checks, checkpointer=InMemorySaver())
        with pytest.raises(AnswerRejected) as caught:
            run(agent, config=thread())
        state = agent.get_state(thread()).values
    assert caught.value.trace.outcome == "blocked"
    assert kinds(state) == ["human", "ai", "tool"]


def test_no_threshold_is_taken_that_promises_what_is_not_kept() -> None:
    judge = ForStrictGuards(script=lambda sample: 0.5)
    with pytest.raises(ValueError, match="chosen for a guard that fails answers"):
        HallucinationMiddleware(judge)
    HallucinationMiddleware(judge, on_abstain="fail")


class TestToolCalls:
    def test_go_through_unjudged_and_without_the_text_beside_them(self, run: Run) -> None:
        seen: list[Sample] = []
        with openai_server(serving(search(text=REJECTED), RIGHT)) as server:
            checks = HallucinationMiddleware(judged_by(seen, True))
            found = run(make_agent(server, [small_search], checks))
        assert [sample.answer for sample in seen] == [RIGHT]
        call = found["messages"][1]
        assert call.text == ""
        assert [one["name"] for one in call.tool_calls] == ["search"]

    @both
    def test_that_are_garbled_end_the_agent_and_so_are_judged(self, run: Run) -> None:
        garbled = Calls((("search", '{"query": '),), text=WRONG)
        with openai_server(serving(garbled)) as server:
            checks = HallucinationMiddleware(judged_by([], False))
            found = run(make_agent(server, [small_search], checks))
        assert kinds(found) == ["human", "ai"]
        assert found["messages"][-1].text == REFUSAL

    def test_between_wrong_answers_do_not_stretch_the_budget(self, run: Run) -> None:
        attempts = 3
        seen: list[Sample] = []
        numbers = iter(range(100))

        def speak(request: dict[str, Any]) -> Reply:
            searched = request["messages"][-1]["role"] == "tool"
            return f"It is {next(numbers)} metres tall." if searched else search()

        with openai_server(speaking(speak)) as server:
            budget = Budget(attempts=attempts)
            checks = HallucinationMiddleware(judged_by(seen, False), budget=budget)
            agent = make_agent(server, [small_search], checks, checkpointer=InMemorySaver())
            found = run(agent, config=thread())
            assert len(seen) == attempts
            assert found["messages"][-1].text == REFUSAL
            assert kinds(found).count("tool") == attempts
            reason = found["messages"][-1].response_metadata["demur"]["reason"]
            said = "no answer passed in 1 attempt, after 2 answers rejected before calls of tools"
            assert reason == said
            # Another question has all attempts again.
            again = run(agent, {"messages": [HumanMessage("And how wide?")]}, thread())
        assert len(seen) == 2 * attempts
        assert again["messages"][-1].text == REFUSAL


class TestQuestionAndContexts:
    def test_are_of_the_users_last_message(self, run: Run) -> None:
        seen: list[Sample] = []
        given = [
            HumanMessage("What of the ferry?"),
            AIMessage("", tool_calls=[{"name": "search", "args": {}, "id": "1"}]),
            ToolMessage("It sails at noon.", tool_call_id="1"),
            AIMessage("At noon."),
            HumanMessage(QUESTION),
        ]
        with openai_server(serving(search(), RIGHT)) as server:
            checks = HallucinationMiddleware(judged_by(seen, True))
            run(make_agent(server, [small_search], checks), {"messages": given})
            run(make_agent(server, [], checks), {"messages": given})
        assert [sample.question for sample in seen] == [QUESTION, QUESTION]
        assert [[one.page_content for one in sample.contexts] for sample in seen] == [
            [FACTS[0]],
            ["It sails at noon."],
        ]

    def test_are_not_what_a_failed_tool_said(self, run: Run) -> None:
        seen: list[Sample] = []
        unknown = Calls((("fly", {}),))
        with openai_server(serving(unknown, search(), RIGHT)) as server:
            checks = HallucinationMiddleware(judged_by(seen, True))
            found = run(make_agent(server, [small_search], checks))
        assert found["messages"][2].status == "error"
        assert [document.page_content for document in seen[0].contexts] == [FACTS[0]]

    def test_are_found_where_the_caller_says(self, run: Run) -> None:
        seen: list[Sample] = []
        with openai_server(serving(RIGHT)) as server:
            checks = HallucinationMiddleware(
                judged_by(seen, True), contexts=lambda state: [str(len(state["messages"]))]
            )
            run(make_agent(server, [], checks))
            lost = HallucinationMiddleware(judged_by(seen, True), contexts="library")
            with pytest.raises(DemurError, match=r"contexts='library'.*'messages'"):
                run(make_agent(server, [], lost))
        assert [document.page_content for document in seen[0].contexts] == ["1"]

    @both
    def test_are_of_retrievers_inside_the_model_call_if_no_tool_was_called(self, run: Run) -> None:
        seen: list[Sample] = []
        retriever = make_retriever()

        class Augment(AgentMiddleware[Any, Any]):
            def wrap_model_call(self, request: Any, handler: Any) -> Any:
                retriever.invoke(QUESTION)
                return handler(request)

            async def awrap_model_call(self, request: Any, handler: Any) -> Any:
                await retriever.ainvoke(QUESTION)
                return await handler(request)

        with openai_server(serving(RIGHT)) as server:
            checks = HallucinationMiddleware(judged_by(seen, True))
            run(make_agent(server, [], checks, Augment()))
        assert FACTS[0] in [document.page_content for document in seen[0].contexts]


class TestAnsweringAgain:
    def test_with_messages_that_the_caller_makes(self, run: Run) -> None:
        def shout(messages: list[Any], feedback: Feedback) -> list[Any]:
            return [*messages, HumanMessage(f"NO! {feedback.text}")]

        with openai_server(serving(search(), WRONG, RIGHT)) as server:
            checks = HallucinationMiddleware(checker(server), on_fail=Regenerate(shout))
            found = run(make_agent(server, [small_search], checks))
            told = [one for one in server.requests if "NO!" in str(one["messages"])]
        assert found["messages"][-1].text == RIGHT
        assert len(told) == 1

    @both
    def test_by_a_model_in_the_agents_place(self, run: Run) -> None:
        with openai_server([RIGHT]) as repairer, openai_server(serving(search(), WRONG)) as server:
            checks = HallucinationMiddleware(checker(server), model=repairer.model())
            found = run(make_agent(server, [small_search], checks))
            assert len(repairer.requests) == 1
        assert found["messages"][-1].text == RIGHT
        assert kinds(found) == ["human", "ai", "tool", "ai"]


class Height(BaseModel):
    """How tall it is."""

    metres: int


class TestStructuredResponses:
    strategies = pytest.mark.parametrize("strategy", [ToolStrategy, ProviderStrategy])

    @staticmethod
    def reply(strategy: Any, metres: int) -> Reply:
        if strategy is ToolStrategy:
            return Calls((("Height", {"metres": metres}),))
        return f'{{"metres": {metres}}}'

    @strategies
    def test_are_judged_as_their_json(self, run: Run, strategy: Any) -> None:
        seen: list[Sample] = []
        replies = [search(), self.reply(strategy, 97), self.reply(strategy, 84)]
        with openai_server(serving(*replies)) as server:
            checks = HallucinationMiddleware(judged_by(seen, False, True))
            agent = make_agent(server, [small_search], checks, response_format=strategy(Height))
            found = run(agent)
        assert found["structured_response"] == Height(metres=84)
        answers = [re.sub(r"\s", "", sample.answer) for sample in seen]
        assert answers == ['{"metres":97}', '{"metres":84}']
        assert "97" not in str(found["messages"][-1].content)

    @strategies
    def test_are_repaired_as_their_class_validates_them(self, run: Run, strategy: Any) -> None:
        for written, left in (
            ('{"metres": "84"}', None),  # The value has another type than the one that it replaces.
            ('{"metres": 84}', Height(metres=84)),
        ):
            model = ScriptedModel(script=lambda stage, messages, written=written: written)
            with openai_server(serving(search(), self.reply(strategy, 97))) as server:
                checks = HallucinationMiddleware(judged_by([], False, True), model=model)
                agent = make_agent(server, [small_search], checks, response_format=strategy(Height))
                found = run(agent)
            assert found.get("structured_response") == left
            assert found["messages"][-1].text == (REFUSAL if left is None else written)
            said = [(m.content, getattr(m, "tool_calls", ())) for m in found["messages"]]
            assert "97" not in str(said)  # Ids are left out, because they may hold any digits.


@tool
def ask_the_keeper(question: str) -> str:
    """Ask the keeper of the tower."""
    return str(interrupt(question))


class TestInterrupts:
    @both
    def test_of_a_tool_pass_and_are_taken_up_again(self, run: Run) -> None:
        asks = Calls((("ask_the_keeper", {"question": "How tall?"}),))
        with openai_server(serving(asks, WRONG, RIGHT)) as server:
            checks = HallucinationMiddleware(checker(server))
            agent = make_agent(server, [ask_the_keeper], checks, checkpointer=InMemorySaver())
            stopped = run(agent, config=thread())
            assert stopped["__interrupt__"][0].value == "How tall?"
            found = run(agent, Command(resume=FACTS[0]), thread())
        assert found["messages"][-1].text == RIGHT

    @both
    def test_inside_the_model_call_pass(self, run_in_context: Run) -> None:
        class Ask(AgentMiddleware[Any, Any]):
            def wrap_model_call(self, request: Any, handler: Any) -> Any:
                interrupt("may I?")
                return handler(request)

            async def awrap_model_call(self, request: Any, handler: Any) -> Any:
                interrupt("may I?")
                return await handler(request)

        seen: list[Sample] = []
        with openai_server(serving(RIGHT)) as server:
            checks = HallucinationMiddleware(judged_by(seen, True))
            agent = make_agent(server, [], checks, Ask(), checkpointer=InMemorySaver())
            stopped = run_in_context(agent, config=thread())
            assert stopped["__interrupt__"][0].value == "may I?"
            assert not seen
            assert (
                run_in_context(agent, Command(resume=True), thread())["messages"][-1].text == RIGHT
            )


@tool("look")
def look(item: int) -> str:
    """Look at an item."""
    return f"A list of items, with item {item}."


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["threads", "tasks"])
def test_many_threads_of_one_agent_share_nothing(mode: str) -> None:
    """Let each first answer be about the next item, and so wrong; every judge knows its item."""
    asked = re.compile(r"What is item (\d+) like")

    def speak(request: dict[str, Any]) -> Reply:
        messages = request["messages"]
        number = int(asked.findall(messages[0]["content"])[-1])
        if messages[-1]["role"] == "tool":
            return facts.answer(number + 1)
        if messages[-1]["content"].startswith("Your answer was checked"):
            return facts.answer(number)
        return Calls((("look", {"item": number}),))

    def judge(sample: Sample) -> Evaluation:
        assert sample.question is not None
        number = int(asked.findall(sample.question)[0])
        assert [f"item {number}." in one.page_content for one in sample.contexts] == [True]
        return Evaluation(name="judge", passed=sample.answer == facts.answer(number))

    numbers = range(20)
    with openai_server(speaking(speak)) as server:
        checks = HallucinationMiddleware(judge)
        agent = make_agent(server, [look], checks, checkpointer=InMemorySaver())

        def given(number: int) -> Any:
            return {"messages": [HumanMessage(facts.question(number))]}

        def one(number: int) -> Any:
            return agent.invoke(given(number), thread(str(number)))

        async def all_of_them() -> list[Any]:
            runs = [agent.ainvoke(given(n), thread(str(n))) for n in numbers]
            return await asyncio.gather(*runs)

        if mode == "threads":
            with ThreadPoolExecutor(8) as pool:
                found = list(pool.map(one, numbers))
        else:
            found = asyncio.run(all_of_them())
    assert [one["messages"][-1].text for one in found] == [facts.answer(n) for n in numbers]
    assert {tuple(kinds(one)) for one in found} == {("human", "ai", "tool", "ai")}


class TestArguments:
    def test_are_refused_where_they_are_given(self) -> None:
        with pytest.raises(ValueError, match="needs an evaluator"):
            HallucinationMiddleware()
        with pytest.raises(TypeError, match=r"contexts= says where.* a key of the state.* a list"):
            HallucinationMiddleware(judged_by([], True), contexts=["a"])  # type: ignore[arg-type]

    def test_a_mistake_in_an_evaluator_is_raised_until_it_has_judged(self, run: Run) -> None:
        coming: list[Any] = [TypeError("t"), False, TypeError("t")]

        def judge(sample: Sample) -> bool:
            item = coming.pop(0)
            if isinstance(item, Exception):
                raise item
            return bool(item)

        # The agent calls a tool between the two answers, so another guard judges the second.
        replies = (WRONG, WRONG, search(), WRONG)
        with openai_server(serving(*replies)) as server:
            checks = HallucinationMiddleware(judge)
            agent = make_agent(server, [small_search], checks)
            with pytest.raises(TypeError, match="t"):
                run(agent)
            answer = run(agent)["messages"][-1]
        assert (answer.text, coming) == (UNCHECKED, [])
        assert answer.response_metadata["demur"]["outcome"] == "evaluator_failed"
