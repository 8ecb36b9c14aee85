"""Test that a conversation can support an answer if the guard is configured so."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from langchain_core.chat_history import InMemoryChatMessageHistory
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.runnables.history import RunnableWithMessageHistory
from langchain_core.runnables.utils import AddableDict
from pydantic import BaseModel

from demur import DemurError, Evaluation, Guard, RefChecker, Regenerate, Sample
from demur.guard import REFUSAL, Feedback
from support.fakes import ScriptedModel, isolated
from support.guarded import Chain, traced
from support.streams import ByClaims, Client, Telling, under

NAME, TOLD, ASKS = "Your name is Ann Miller.", "My name is Ann Miller.", "What is my name?"
OTHER = "Your name is Ann Smith."
TALK = [HumanMessage(TOLD), AIMessage("Hello!"), HumanMessage(ASKS)]
HISTORIES = pytest.mark.filterwarnings(r"ignore:.*MessageHistory`? (was|is) deprecated")
PRICE = "The lamp costs 40 euros."


def words(text: str) -> set[str]:
    """Return the names and numbers in a text."""
    return set(re.findall(r"[A-Z]\w+|\d+", text)) - {"Your", "The", "It", "Hello"}


def judge(sample: Sample) -> Evaluation:
    """Pass an answer whose names and numbers are all in its contexts."""
    held = words(" ".join(context.page_content for context in sample.contexts))
    return Evaluation(name="judge", passed=words(sample.answer) <= held)


def guard(*answers: Any, **options: Any) -> Guard[Any, Any]:
    return Guard(Chain(*answers), judge, on_fail="abstain", **options)


def contexts(guard: Guard[Any, Any], given: Any) -> tuple[Document, ...]:
    """Return the contexts of the first attempt."""
    return traced(guard, given).trace.attempts[0].contexts


def texts(documents: Sequence[Document]) -> list[str]:
    return [document.page_content for document in documents]


class _State(BaseModel):
    messages: list[Any]


@dataclass
class _Talk:
    question: str
    before: list[BaseMessage]


INPUTS: list[Any] = [
    TALK,
    {"messages": TALK},
    {"messages": [("user", TOLD), ("ai", "Hello!"), ("user", ASKS)]},
    {"question": ASKS, "history": TALK[:2]},
    {"input": ASKS, "chat_history": TALK[:2]},
    {"input": HumanMessage(ASKS), "what was said": TALK[:2]},
    _State(messages=TALK),
    _Talk(ASKS, TALK[:2]),
    f"{TOLD} {ASKS}",
]


class TestTheUser:
    @pytest.mark.parametrize("given", INPUTS)
    def test_supports_an_answer_wherever_the_messages_are(self, given: Any) -> None:
        assert guard(NAME).invoke(given) == REFUSAL
        assert guard(NAME, conversation=True).invoke(given) == NAME
        assert guard(OTHER, conversation=True).invoke(given) == REFUSAL

    @HISTORIES
    def test_supports_an_answer_of_a_chain_with_a_message_history(self) -> None:
        kept: dict[str, InMemoryChatMessageHistory] = {}

        def history(session_id: str) -> InMemoryChatMessageHistory:
            return kept.setdefault(session_id, InMemoryChatMessageHistory())

        chain = RunnableWithMessageHistory(
            guard("Hello!", PRICE, NAME, OTHER, conversation=True),
            history,
            input_messages_key="question",
            history_messages_key="earlier",
        )
        session: Any = {"configurable": {"session_id": "1"}}

        def say(question: str) -> Any:
            return chain.invoke({"question": question}, session)

        said = [say(one) for one in (TOLD, "The lamp costs 40 euros?", ASKS, ASKS)]
        assert said == ["Hello!", PRICE, NAME, REFUSAL]

    def test_is_named_as_the_source_with_the_turn(self) -> None:
        found = contexts(guard(NAME, conversation=True), {"messages": [*TALK, HumanMessage("Ok.")]})
        assert [(one.page_content, one.metadata) for one in found] == [
            (TOLD, {"source": "user", "turn": 1}),
            ("Ok.", {"source": "user", "turn": 3}),
        ]

    @pytest.mark.parametrize(
        ("said", "stated"),
        [
            ("Why is the Amber Tower 31 metres tall?", []),
            ("why is the amber tower 31 metres tall", []),
            ("And why is the Amber Tower 31 metres tall?", []),
            ("so how tall is the 31 metre tower", []),
            ("So my dogs and cats live in Lund.", ["So my dogs and cats live in Lund."]),
            ("Warum ist der Turm 31 Meter hoch?", []),
            ("塔为什么有31米高？", []),
            ("I live in Lund. How far is it?", ["I live in Lund."]),
            ("How far is it? I live in Lund.", ["I live in Lund."]),
            ("Hello! I live in Lund,\nin Sweden.", ["Hello! I live in Lund,\nin Sweden."]),
            ("My train leaves at 9, which platform?", ["My train leaves at 9, which platform?"]),
            ("i live in lund", ["i live in lund"]),
            ("I don't have a car.", ["I don't have a car."]),
            ("Name: Ann\nWhen: at noon", ["Name: Ann\nWhen: at noon"]),
            ("", []),
        ],
    )
    def test_is_no_source_by_asking(self, said: str, stated: list[str]) -> None:
        given = {"messages": [HumanMessage(said)]}
        assert texts(contexts(guard(NAME, conversation=True), given)) == stated


class TestTheAssistant:
    def test_is_no_source(self) -> None:
        talk = [HumanMessage("Hello!"), AIMessage(NAME), SystemMessage(NAME), HumanMessage(ASKS)]
        assert guard(NAME, conversation=True).invoke({"messages": talk}) == REFUSAL

    def test_is_none_either_where_it_sums_up_what_was_said(self) -> None:
        # LangChain's SummarizationMiddleware writes summaries in this form.
        summary = HumanMessage(f"To date: {NAME}", additional_kwargs={"lc_source": "summarization"})
        found = traced(guard(NAME, conversation=True), [summary, HumanMessage("I live in Lund.")])
        assert found.output == REFUSAL
        assert [one.metadata["turn"] for one in found.trace.attempts[0].contexts] == [1]

    def test_is_none_where_it_is_quoted_to_the_chain_that_answers_again(self) -> None:
        def tell(given: dict[str, Any], feedback: Feedback) -> dict[str, Any]:
            told = HumanMessage(f"{OTHER} That was wrong. {feedback.prompt}")
            return {"messages": [*given["messages"], told]}

        chain = Chain(OTHER, f"... {OTHER}", NAME)
        guarded = Guard(chain, judge, on_fail=Regenerate(tell), conversation=True)
        found = traced(guarded, {"messages": TALK})
        assert [attempt.verdict for attempt in found.trace.attempts] == [
            "failed",
            "failed",
            "passed",
        ]
        assert all(texts(one.contexts) == [TOLD] for one in found.trace.attempts)


class TestEarlierTurns:
    def talk(self) -> list[BaseMessage]:
        call = {"name": "search", "args": {}, "id": "1"}
        failed = ToolMessage("Ann Smith", tool_call_id="2", status="error")
        tools = [ToolMessage(PRICE, tool_call_id="1", name="search"), failed]
        return [
            HumanMessage("How much is the lamp?"),
            AIMessage("", tool_calls=[call]),
            *tools,
            *TALK[1:],
        ]

    def test_support_with_what_their_tools_returned(self) -> None:
        output = {"answer": PRICE, "context": ["The desk costs 90 euros."]}
        given = {"messages": self.talk()}
        assert guard(output).invoke(given)["answer"] == REFUSAL
        assert guard(output, conversation=True).invoke(given) == output

    def test_come_after_this_turn_and_before_the_user_each_text_once(self) -> None:
        output = {"answer": PRICE, "context": ["The desk costs 90 euros.", PRICE]}
        given = {"messages": [HumanMessage(TOLD), *self.talk(), HumanMessage(TOLD)]}
        found = contexts(guard(output, conversation=True), {**given, "documents": ["A rule."]})
        assert texts(found) == ["The desk costs 90 euros.", PRICE, "A rule.", TOLD]
        assert found[1].metadata == {}, "as this turn has it"


class TestWhereTheMessagesAre:
    def test_is_told_by_a_key_or_a_function(self) -> None:
        examples = [HumanMessage("My name is Ann Smith."), AIMessage("Hello, Ann Smith!")]
        given = {"question": ASKS, "examples": examples, "history": TALK[:2]}
        readers: list[Any] = ["history", lambda given: given["history"]]
        for reader in readers:
            assert guard(NAME, conversation=reader).invoke(given) == NAME
            assert guard(OTHER, conversation=reader).invoke(given) == REFUSAL

    @pytest.mark.parametrize(
        ("given", "message"),
        [
            ({"question": ASKS}, "conversation='history': there is no such key"),
            (
                {"question": ASKS, "history": f"Human: {TOLD}"},
                "conversation= found a str,",
            ),
            ({"question": ASKS, "history": ["a", "b"]}, "conversation= found a list,"),
        ],
    )
    def test_is_an_error_where_there_are_none(self, given: Any, message: str) -> None:
        with pytest.raises(DemurError, match=message):
            guard(NAME, conversation="history").invoke(given)


class TestStreams:
    @pytest.mark.parametrize("streaming", ["sentence", "buffer"])
    @pytest.mark.parametrize("conversation", [True, False])
    def test_hold_each_sentence_against_the_conversation(
        self, streaming: str, conversation: bool
    ) -> None:
        documents = AddableDict({"context": [Document(PRICE)]})
        chain = Telling([documents, *under("answer", f"{PRICE} {NAME}")])
        by_claims = ByClaims(passes=lambda sample: judge(sample).passed)
        options: dict[str, Any] = {"streaming": streaming, "conversation": conversation}
        guarded = Guard(chain, by_claims, on_fail="abstain", **options)
        client = Client().read(guarded, {"messages": TALK})
        assert client.text == (f"{PRICE} {NAME}" if conversation else REFUSAL)
        held = [PRICE, TOLD] if conversation else [PRICE]
        seen = [texts(sample.contexts) for sample in by_claims.seen]
        assert seen == [held] * len(seen)
        # The first failing sentence ends the stream, so the other one may not be judged.
        sentences = 2 if streaming == "sentence" else 1
        assert len(seen) in ([sentences] if conversation else range(1, sentences + 1))


def _by_claims() -> Any:
    def script(stage: str, messages: Sequence[BaseMessage]) -> str:
        held = words(isolated("reference", messages))
        lines = isolated("claims", messages).splitlines()
        labels = ["Entailment" if words(line[3:]) <= held else "Neutral" for line in lines]
        return "\n".join(f"{at}. {label}" for at, label in enumerate(labels, start=1))

    return RefChecker(ScriptedModel(script=script), claims="sentences", checker="joint")


class TestTheRetrieverOfAChecker:
    def test_searches_beside_what_the_user_said(self) -> None:
        asked: list[str] = []

        def retrieve(query: str) -> list[Document]:
            asked.append(query)
            return [Document(PRICE)]

        checker = _by_claims().model_copy(update={"retriever": RunnableLambda(retrieve)})
        guarded = Guard(Chain(f"{NAME} {PRICE}"), checker, on_fail="abstain", conversation=True)
        assert guarded.invoke({"messages": TALK}) == f"{NAME} {PRICE}"
        assert asked == [ASKS]
