"""Test nodes of graphs that are not agents, each guarded where it is added."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, TypedDict

import pytest
from langchain.agents.structured_output import ToolStrategy
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langgraph.graph import END, MessagesState, StateGraph
from langgraph.graph.message import add_messages
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.runtime import Runtime
from langgraph.types import Command, interrupt
from pydantic import BaseModel

from agent_server import (
    ASKED,
    LETTERS,
    REJECTED,
    Calls,
    Sources,
    checker,
    judged_by,
    make_agent,
    one_node,
    search,
    serving,
    small_search,
)
from demur import DemurError, Regenerate, Retrieve, Sample
from demur.guard import REFUSAL, Budget, Feedback
from langchain_demur import guarded_node
from support.openai_server import openai_server
from support.rag import FACTS, QUESTION, RIGHT, WRONG, make_retriever

THREAD: Any = {"configurable": {"thread_id": "1"}, "tags": ["production"]}
MODES = ["values", "updates", "messages", "debug", "tasks", "checkpoints"]


def saying(*texts: str) -> Callable[[Any], Any]:
    """Return a node for a graph with messages: it says these texts, then repeats the last."""
    coming = list(texts)

    def node(state: Any) -> Any:
        return {"messages": [AIMessage(coming.pop(0) if len(coming) > 1 else coming[0], id="a")]}

    return node


class TestLeaks:
    """Test what `test_listeners` has no place for."""

    def test_nothing_of_a_rejected_answer_of_a_coroutine_is_streamed(self) -> None:
        async def collect() -> list[Any]:
            options: Any = {"stream_mode": MODES, "subgraphs": True}
            return [chunk async for chunk in graph.astream(given, THREAD, **options)]

        with openai_server(serving(REJECTED, RIGHT)) as server:
            model = server.model()

            async def generate(state: Sources) -> Any:
                return {"messages": [await model.ainvoke(state["messages"])]}

            graph = one_node(guarded_node(generate, checker(server)))
            given = {**ASKED, "context": [Document(FACTS[0])]}
            heard = asyncio.run(collect())
        for mode in MODES:
            told = repr([one for one in heard if one[1] == mode])
            assert not LETTERS & set(told), mode
            assert "does not hold" not in told, mode
            assert RIGHT in told, mode

    @pytest.mark.parametrize("name", ["Guard", "generate"])
    def test_no_run_inside_passes_for_the_node(self, name: str) -> None:
        node = guarded_node(saying(REJECTED), judged_by([], False))
        heard = repr(list(one_node(node, name=name).stream(ASKED, THREAD, stream_mode="messages")))
        assert not LETTERS & set(heard)
        assert REFUSAL in heard


class TestHistory:
    def test_has_one_message_under_the_id_of_the_answer(self) -> None:
        seen: list[Sample] = []
        graph = one_node(guarded_node(saying(WRONG), judged_by(seen, False)))
        found = graph.invoke({**ASKED, "context": [Document("x")]}, THREAD)
        assert [(one.type, one.id) for one in found["messages"]] == [
            ("human", "asked"),
            ("ai", "a"),
        ]
        assert found["messages"][1].text == REFUSAL
        assert found["messages"][1].response_metadata["demur"]["outcome"] == "abstained"

    def test_is_not_judged_again_but_what_a_node_rewrites_in_it_is(self) -> None:
        seen: list[Sample] = []
        before = AIMessage(WRONG, id="before")

        def rewrite(state: Any) -> Any:
            said = [AIMessage(REJECTED, id="before"), AIMessage(RIGHT, id="after")]
            return {"messages": [*state["messages"][:1], *said]}

        def repeat(state: Any) -> Any:
            return {"messages": [*state["messages"], AIMessage(RIGHT, id="after")]}

        texts = []
        for node in (rewrite, repeat):
            given = {"messages": [HumanMessage(QUESTION, id="asked"), before]}
            found = one_node(guarded_node(node, judged_by(seen, True))).invoke(given, THREAD)
            texts.append([message.text for message in found["messages"]])
        assert [sample.answer for sample in seen] == [RIGHT, RIGHT]
        assert texts == [[QUESTION, "", RIGHT], [QUESTION, WRONG, RIGHT]]

    def test_keeps_the_steps_of_an_agent_as_a_node(self) -> None:
        seen: list[Sample] = []
        with openai_server(serving(search(text=REJECTED), RIGHT)) as server:
            graph = one_node(
                guarded_node(make_agent(server, [small_search]), judged_by(seen, True))
            )
            found = graph.invoke(ASKED, THREAD)
        assert [one.type for one in found["messages"]] == ["human", "ai", "tool", "ai"]
        assert [one.text for one in found["messages"]] == [QUESTION, "", FACTS[0], RIGHT]
        assert [document.page_content for document in seen[0].contexts] == [FACTS[0]]


class Rag(TypedDict, total=False):
    question: str
    context: list[Document]
    answer: str


class Height(BaseModel):
    """How tall it is."""

    metres: int


class Model(BaseModel):
    messages: Annotated[list[AnyMessage], add_messages]
    documents: list[Document] = []


@dataclass
class Record:
    messages: Annotated[list[AnyMessage], add_messages]
    documents: list[Document] = field(default_factory=list)


class TestShapes:
    def test_a_key_that_the_caller_names(self) -> None:
        class Odd(TypedDict, total=False):
            asked: str
            library: list[str]
            said: str

        seen: list[Sample] = []
        node = guarded_node(
            lambda state: {"said": WRONG},
            judged_by(seen, False),
            question="asked",
            contexts="library",
            answer="said",
        )
        found = one_node(node, schema=Odd).invoke({"asked": "a", "library": ["b"]}, THREAD)
        assert found["said"] == REFUSAL
        assert (seen[0].question, seen[0].contexts[0].page_content) == ("a", "b")

    def test_contexts_of_retrievers_in_the_node(self) -> None:
        seen: list[Sample] = []
        retriever = make_retriever()

        def generate(state: Any) -> Any:
            retriever.invoke(QUESTION)
            return {"messages": AIMessage(RIGHT)}

        one_node(guarded_node(generate, judged_by(seen, True))).invoke(ASKED, THREAD)
        assert FACTS[0] in [document.page_content for document in seen[0].contexts]

    @pytest.mark.parametrize("schema", [Model, Record])
    def test_states_that_are_no_mappings(self, schema: Any) -> None:
        seen: list[Sample] = []
        told: list[Any] = []

        def generate(state: Any) -> Any:
            assert isinstance(state, schema)
            told.append(state.messages[-1].text)
            return {"messages": [AIMessage(WRONG if len(told) == 1 else RIGHT)]}

        graph = one_node(guarded_node(generate, judged_by(seen, False, True)), schema=schema)
        found = graph.invoke({**ASKED, "documents": [Document(FACTS[0])]}, THREAD)
        assert found["messages"][-1].text == RIGHT
        assert told[0] == QUESTION
        assert "does not hold" in told[1]
        assert seen[0].contexts[0].page_content == FACTS[0]

    def test_commands(self) -> None:
        seen: list[Sample] = []

        def generate(state: Sources) -> Command[Literal["after"]]:
            return Command(update={"messages": [AIMessage(WRONG)]}, goto="after")

        graph = StateGraph(Sources)
        # The node's name comes from the function.
        graph.add_node(guarded_node(generate, judged_by(seen, False)))
        graph.add_node("after", lambda state: {"context": [Document("came by")]})
        graph.set_entry_point("generate")
        found = graph.compile().invoke(ASKED)
        assert found["messages"][-1].text == REFUSAL
        assert found["context"][0].page_content == "came by"

    @pytest.mark.parametrize("passes", [True, False])
    def test_an_update_may_have_none_for_messages(self, passes: bool) -> None:
        update = {"messages": None, "answer": RIGHT, "context": [FACTS[0]]}
        node = guarded_node(lambda state: update, judged_by([], passes))
        assert node(ASKED) == {**update, "answer": RIGHT if passes else REFUSAL}

    @pytest.mark.parametrize(
        "asked",
        [
            [("user", QUESTION)],
            [{"role": "user", "content": QUESTION}],
            [HumanMessage(QUESTION).model_dump()],
        ],
    )
    def test_messages_of_a_state_may_be_in_short_form(self, asked: list[Any]) -> None:
        seen: list[Sample] = []
        given: list[Any] = []

        def generate(state: Any) -> Any:
            given.append(state["messages"])
            return {"messages": [*state["messages"], AIMessage(answers.pop())]}

        answers = [RIGHT, WRONG]
        node = guarded_node(generate, judged_by(seen, False, True))
        found = node({"messages": asked, "context": [FACTS[0]]})
        assert [sample.question for sample in seen] == [QUESTION, QUESTION]
        assert given[0] == asked
        assert given[1][0].text == QUESTION
        assert found["messages"][-1].text == RIGHT

    @pytest.mark.parametrize("odd", [None, "hello", [3]])
    def test_what_is_no_messages_is_none(self, odd: Any) -> None:
        seen: list[Sample] = []
        node = guarded_node(lambda state: {"answer": RIGHT}, judged_by(seen, True))
        found = node({"messages": odd, "question": QUESTION, "context": [FACTS[0]]})
        assert found == {"answer": RIGHT}
        assert [one.page_content for one in seen[0].contexts] == [FACTS[0]]

    def test_what_has_no_answer_is_named(self) -> None:
        judge = judged_by([], True)
        with pytest.raises(DemurError, match=r"'context'.*answer='key'"):
            guarded_node(lambda state: {"context": []}, judge)(ASKED)
        with pytest.raises(DemurError, match="a text under 'said'"):
            guarded_node(saying(RIGHT), judge, answer="said")(ASKED)
        with pytest.raises(DemurError, match="NoneType"):
            guarded_node(lambda state: None, judge)(ASKED)
        with pytest.raises(DemurError, match="question='asked'"):
            guarded_node(saying(RIGHT), judge, question="asked")(ASKED)


class TestAsANode:
    def test_it_gets_what_langgraph_injects(self) -> None:
        got: list[Any] = []

        @dataclass
        class Context:
            user: str

        def generate(state: Sources, config: RunnableConfig, runtime: Runtime[Context]) -> Any:
            got.append((config["configurable"]["thread_id"], runtime.context.user))
            return {"messages": [AIMessage(RIGHT)]}

        graph = StateGraph(Sources, context_schema=Context)
        graph.add_node("generate", guarded_node(generate, judged_by([], True)))
        graph.set_entry_point("generate")
        graph.compile().invoke(ASKED, THREAD, context=Context("Ada"))
        assert got == [("1", "Ada")]

    @pytest.mark.parametrize("how", ["sync", "async"])
    def test_an_interrupt_passes(self, how: str) -> None:
        def generate(state: Any) -> Any:
            return {"messages": [AIMessage(interrupt("what shall I say?"))]}

        seen: list[Sample] = []
        graph = one_node(guarded_node(RunnableLambda(generate), judged_by(seen, True)))
        loop = asyncio.new_event_loop()

        def run(given: Any) -> Any:
            if how == "sync":
                return graph.invoke(given, THREAD)
            return loop.run_until_complete(graph.ainvoke(given, THREAD))

        assert run(ASKED)["__interrupt__"][0].value == "what shall I say?"
        assert not seen
        assert run(Command(resume=RIGHT))["messages"][-1].text == RIGHT
        loop.close()

    def test_tools_called_between_wrong_answers_do_not_stretch_the_budget(self) -> None:
        seen: list[Sample] = []
        numbers = iter(range(100))

        def answer(state: Any) -> Any:
            if state["messages"][-1].type == "tool":
                return {"messages": [AIMessage(f"It is {next(numbers)} metres tall.")]}
            call = {"name": "search", "args": {"query": "tower"}, "id": f"c{len(seen)}"}
            return {"messages": [AIMessage(REJECTED, tool_calls=[call])]}

        node = guarded_node(answer, judged_by(seen, False), budget=Budget(attempts=3))
        graph = StateGraph(MessagesState)
        graph.add_node("answer", node)
        graph.add_node("tools", ToolNode([small_search]))
        graph.add_edge("tools", "answer")
        graph.add_conditional_edges("answer", tools_condition, {"tools": "tools", END: END})
        graph.set_entry_point("answer")
        found = graph.compile().invoke(ASKED)
        assert len(seen) == 3
        assert found["messages"][-1].text == REFUSAL
        assert not LETTERS & set(repr(found))

    def test_a_structured_response_is_refused(self) -> None:
        reply = Calls((("Height", {"metres": 97}),))
        with openai_server(serving(reply)) as server:
            agent = make_agent(server, [], response_format=ToolStrategy(Height))
            with pytest.raises(DemurError, match="HallucinationMiddleware"):
                one_node(guarded_node(agent, judged_by([], True))).invoke(ASKED, THREAD)

    def test_feedback_by_the_caller(self) -> None:
        def again(state: Any, feedback: Feedback) -> Any:
            return {**state, "messages": [HumanMessage(f"No: {feedback.answer}")]}

        told: list[str] = []

        def generate(state: Any) -> Any:
            told.append(state["messages"][-1].text)
            return {"messages": [AIMessage(WRONG)]}

        node = guarded_node(generate, judged_by([], False, True), on_fail=Regenerate(again))
        one_node(node).invoke(ASKED, THREAD)
        assert told == [QUESTION, f"No: {WRONG}"]

    def test_what_the_retriever_found_is_among_the_documents_of_the_state(self) -> None:
        given: list[int] = []

        def generate(state: Any) -> Any:
            given.append(len(state["context"]))
            return {"answer": WRONG if len(given) == 1 else RIGHT}

        seen: list[Sample] = []
        node = guarded_node(
            generate,
            judged_by(seen, False, True),
            on_fail=Retrieve(RunnableLambda(lambda query: [Document("found")])),
        )
        state = {"question": QUESTION, "context": [Document(FACTS[0])]}
        found = one_node(node, schema=Rag).invoke(state, THREAD)
        assert found["answer"] == RIGHT
        assert given == [1, 2]
        assert [document.page_content for document in seen[1].contexts] == [FACTS[0], "found"]
        assert len(found["context"]) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"contexts": ["a"]},
            "contexts= says where .* of the update or of the state, .*a list",
        ),
        ({"question": ["a"]}, "question= says where .* a key of the state, .* a list"),
        ({"answer": str}, "answer= takes a key of the update, got a type"),
    ],
)
def test_what_says_where_something_is_is_refused_by_name(
    options: dict[str, Any], message: str
) -> None:
    with pytest.raises(TypeError, match=message):
        guarded_node(saying("so"), judged_by([], True), **options)
