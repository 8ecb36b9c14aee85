from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from types import MappingProxyType
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    ChatMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables.utils import AddableDict
from pydantic import BaseModel

from demur import DemurError
from demur.shapes import find_answer, find_contexts, find_question

DOCUMENT = Document("a passage", metadata={"source": "x"})
TALK = [SystemMessage("Be brief."), HumanMessage("first?"), AIMessage("yes"), HumanMessage("why?")]


class _Model(BaseModel):
    messages: list[Any] = []
    query: str = ""


@dataclass(slots=True)
class _Data:
    question: str


@pytest.mark.parametrize(
    ("input", "question"),
    [
        ("why?", "why?"),
        (HumanMessage("why?"), "why?"),
        (HumanMessage([{"type": "text", "text": "why?"}]), "why?"),
        ({"input": "why?", "chat_history": TALK}, "why?"),
        ({"question": "why?"}, "why?"),
        ({"messages": TALK}, "why?"),
        (TALK, "why?"),
        (ChatPromptTemplate.from_messages(TALK).invoke({}), "why?"),
        ({"input": "", "question": "why?"}, "why?"),
        ({"topic": "bears"}, None),
        ({"input": 3}, None),
        (None, None),
        ([AIMessage("yes")], None),
        # The states of graphs.
        (_Model(query="why?"), "why?"),
        (_Model(messages=[HumanMessage("why?")]), "why?"),
        (_Data("why?"), "why?"),
        ({"messages": [("user", "who?"), ("ai", "me"), ("user", "why?")]}, "why?"),
        ([{"role": "user", "content": "why?"}, {"role": "assistant", "content": "so"}], "why?"),
        ([HumanMessage("why?"), 3], "why?"),
    ],
)
def test_question(input: Any, question: str | None) -> None:
    assert find_question(input) == question


def test_question_by_key_and_by_function() -> None:
    assert find_question({"topic": "bears"}, "topic") == "bears"
    assert find_question({"a": {"b": HumanMessage("why?")}}, lambda x: x["a"]["b"]) == "why?"
    assert find_question("x", lambda _: None) is None


@pytest.mark.parametrize(
    ("output", "answer"),
    [
        ("so", "so"),
        ("", ""),
        (AIMessage("so"), "so"),
        (AIMessage([{"type": "text", "text": "s"}, {"type": "text", "text": "o"}]), "so"),
        ({"input": "why?", "answer": "so", "output": None}, "so"),
        ({"output": "so"}, "so"),
        ({"query": "why?", "result": "so", "source_documents": []}, "so"),
        ({"response": AIMessage("so")}, "so"),
        ({"answer": "so", "output": AIMessage("so")}, "so"),
    ],
)
def test_answer(output: Any, answer: str) -> None:
    assert find_answer(output, given="why?").text == answer


@pytest.mark.parametrize(
    ("output", "seen"),
    [
        ({"text": "so", "context": []}, "a dict with the keys 'text', 'context'"),
        ({}, "a dict with the keys (none)"),
        (None, "a NoneType"),
        ([object()], "a list"),
        ({"answer": object()}, "'answer'"),
    ],
)
def test_an_answer_that_is_not_there_is_named(output: Any, seen: str) -> None:
    with pytest.raises(DemurError, match="no answer can be found") as raised:
        find_answer(output)
    assert seen in str(raised.value)
    assert "answer='key'" in str(raised.value)


def test_answer_by_key_and_by_function() -> None:
    assert find_answer({"text": "so"}, "text").text == "so"
    assert find_answer({"a": ["no", "so"]}, lambda x: x["a"][1]).text == "so"


@pytest.mark.parametrize(
    ("find", "message"),
    [
        (lambda: find_answer({"a": 1}, "text"), "answer='text': there is no such key in a dict"),
        (lambda: find_answer({"text": 3}, "text"), "answer= found an int"),
        (lambda: find_question({"q": 3}, "q"), "question= found an int"),
        (lambda: find_contexts({}, {"a": 1}, (), "docs"), "contexts='docs': there is no such key"),
        (lambda: find_contexts({}, {"docs": 3}, (), "docs"), "contexts= found an int"),
    ],
)
def test_a_reader_that_finds_nothing_is_an_error(find: Any, message: str) -> None:
    with pytest.raises(DemurError, match=message):
        find()


def texts(documents: tuple[Document, ...]) -> list[str]:
    return [document.page_content for document in documents]


@pytest.mark.parametrize("key", ["context", "contexts", "source_documents", "documents"])
def test_contexts_of_the_output_come_first(key: str) -> None:
    captured = [Document("captured")]
    assert find_contexts({key: "given"}, {key: [DOCUMENT]}, captured) == (DOCUMENT,)
    assert texts(find_contexts({}, {key: "one text"}, captured)) == ["one text"]
    assert texts(find_contexts({}, {key: ["a", "b"]}, captured)) == ["a", "b"]


def test_then_what_was_captured_then_the_input() -> None:
    captured = [Document("captured")]
    for output in ("so", {"answer": "so"}, {"context": []}, {"context": 3}):
        assert texts(find_contexts({"context": "given"}, output, captured)) == ["captured"]
        assert texts(find_contexts({"context": "given"}, output, [])) == ["given"]
        assert find_contexts("why?", output, []) == ()


def test_contexts_by_key_and_by_function() -> None:
    captured = [Document("captured")]
    assert texts(find_contexts({"docs": "in"}, {"docs": ["out"]}, captured, "docs")) == ["out"]
    assert texts(find_contexts({"docs": "in"}, "so", captured, "docs")) == ["in"]
    assert texts(find_contexts({}, {"n": ["out"]}, captured, lambda x: x["n"])) == ["out"]
    assert find_contexts({}, {}, captured, lambda _: None) == ()


def _of_both(given: Any, output: Any) -> Any:
    return [f"{given['input']} {output['answer']}"]


def _of_output(output: Any, extra: str = "none") -> Any:
    return [f"{extra} {output['answer']}"]


@pytest.mark.parametrize(
    ("reader", "found"),
    [
        (_of_both, "i a"),
        (_of_output, "none a"),
        (partial(_of_both, {"input": "x"}), "x a"),
        (lambda *outputs: [str(len(outputs))], "1"),
        (itemgetter("answer"), "a"),
    ],
)
def test_contexts_by_a_function_of_the_output_or_of_both(reader: Any, found: str) -> None:
    assert texts(find_contexts({"input": "i"}, {"answer": "a"}, [DOCUMENT], reader)) == [found]


def shout(text: str) -> str:
    return text.upper()


def shouted(output: Any) -> Any:
    answer = find_answer(output, given={"input": "why?"})
    return answer.reworded(shout(answer.text))


def test_editing_keeps_the_type_and_all_else() -> None:
    assert shouted("so") == "SO"
    output = AddableDict({"input": "why?", "answer": "so", "context": [DOCUMENT]})
    edited = shouted(output)
    assert edited == {**output, "answer": "SO"}
    assert type(edited) is AddableDict
    assert output["answer"] == "so"  # The caller's object is unchanged.
    given = {"text": "so", "answer": "x"}
    assert find_answer(given, "text").reworded("SO") == {"text": "SO", "answer": None}
    assert shouted({"result": AIMessage("so")})["result"].content == "SO"


def test_an_edited_message_keeps_its_id_and_nothing_of_the_old_text() -> None:
    usage = {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}
    message = AIMessage(
        [{"type": "text", "text": "so"}],
        id="7",
        name="bot",
        usage_metadata=usage,
        additional_kwargs={"parsed": "so", "reasoning": "so"},
        response_metadata={"logprobs": "so"},
    )
    edited = shouted(message)
    assert isinstance(edited, AIMessage)
    assert (edited.content, edited.id, edited.name) == ("SO", "7", "bot")
    assert edited.usage_metadata == usage
    assert "so" not in repr(edited)


@pytest.mark.parametrize(
    ("output", "reader", "expected"),
    [
        ("so", None, True),
        ("so", shout, True),
        (AIMessage("so"), None, True),
        ({"answer": "so"}, None, True),
        ({"text": "so"}, "text", True),
        ({"text": "so"}, lambda x: x["text"], False),
        (MappingProxyType({"answer": "so"}), None, True),
        (3, lambda _: "so", False),
    ],
)
def test_what_can_be_edited(output: Any, reader: Any, expected: bool) -> None:
    answer = find_answer(output, reader)
    assert (answer.takes_text, answer.takes_repair) == (expected, expected)


class _Further(AIMessage):
    told: str


class _Own(BaseMessage):
    type: str = "own"
    told: str


@pytest.mark.parametrize(
    ("message", "kind", "kept"),
    [
        (ChatMessage("bad", role="bot"), ChatMessage, {"role": "bot"}),
        (ToolMessage("bad", tool_call_id="t", artifact="bad"), ToolMessage, {"tool_call_id": "t"}),
        (AIMessageChunk("bad"), AIMessageChunk, {}),
        (_Further("bad", told="bad"), AIMessage, {}),
        (_Own("bad", told="bad"), BaseMessage, {"type": "own"}),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseMessage) else "",
)
def test_every_kind_of_message_is_worded_anew_without_the_old_text(
    message: BaseMessage, kind: type[BaseMessage], kept: dict[str, str]
) -> None:
    message = message.model_copy(update={"id": "1", "additional_kwargs": {"said": "bad"}})
    changed = find_answer(message).reworded("not 3", {"outcome": "abstained"})
    assert type(changed) is kind
    assert (changed.content, changed.id) == ("not 3", "1")
    assert changed.response_metadata == {"demur": {"outcome": "abstained"}}
    assert {name: getattr(changed, name) for name in kept} == kept
    assert "bad" not in changed.model_dump_json()
