"""Test that data beside an answer's text is judged with it, or does not leave the guard."""

from __future__ import annotations

import math
from types import MappingProxyType
from typing import Any

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk

from demur import DemurError, Evaluation, Guard, Sample
from demur.guard import REFUSAL, UNCHECKED
from demur.schema import ABSTAIN
from support.guarded import Chain, traced
from support.streams import Client, Telling, guard

FINE = "One is good."


def not_bad(sample: Sample) -> Evaluation:
    return Evaluation(name="judge", passed="bad" not in sample.answer)


def calling(*said: str, text: str = FINE, **more: Any) -> AIMessage:
    """Return a message that calls a tool once with each of these texts."""
    calls = [{"name": "send", "args": {"to": [one]}, "id": str(n)} for n, one in enumerate(said)]
    return AIMessage(text, tool_calls=calls, **more)


@pytest.mark.parametrize(
    "message",
    [
        calling("bad"),
        calling("fine", "bad"),
        calling("bad", text=""),
        AIMessage(
            FINE, invalid_tool_calls=[{"name": "f", "args": '{"bad"', "id": "1", "error": None}]
        ),
    ],
    ids=["one", "the second", "without a text", "garbled"],
)
@pytest.mark.parametrize("wrap", [lambda m: m, lambda m: {"answer": m}], ids=["message", "key"])
def test_what_tools_are_called_with_is_judged(message: AIMessage, wrap: Any) -> None:
    found = traced(Guard(Chain(wrap(message)), not_bad))
    assert found.trace.outcome == "abstained"
    assert "bad" in found.trace.attempts[0].answer
    assert "bad" not in repr(found.output)
    assert REFUSAL in repr(found.output)


def test_calls_that_passed_leave_with_the_text() -> None:
    message = calling("fine")
    assert Guard(Chain(message), not_bad).invoke("why?") is message


def test_in_a_stream_calls_are_judged_too() -> None:
    call = {"name": "send", "args": '{"to": "bad"}', "id": "1", "index": 0}
    chunks = [
        AIMessageChunk("One is good. ", id="1"),
        AIMessageChunk("Two is good.", id="1"),
        AIMessageChunk("", id="1", tool_call_chunks=[call]),
    ]
    client = Client().read(guard(Telling(chunks)), "why?")
    assert client.text == REFUSAL
    assert "bad" not in repr(client.chunks)


def test_in_a_stream_calls_that_passed_are_no_text() -> None:
    call = {"name": "send", "args": '{"to": "fine"}', "id": "1", "index": 0}
    chunks = [AIMessageChunk(FINE, id="1"), AIMessageChunk("", id="1", tool_call_chunks=[call])]
    client = Client().read(guard(Telling(chunks)), "why?")
    assert client.text == FINE
    assert client.total.tool_calls[0]["args"] == {"to": "fine"}


BESIDE = AIMessage(
    [
        {"type": "reasoning", "reasoning": "bad"},
        {"type": "text", "text": FINE, "annotations": [{"cited_text": "bad"}]},
        {"type": "refusal", "refusal": "bad"},
        {"type": "image", "url": "https://bad"},
    ],
    id="7",
    additional_kwargs={"reasoning_content": "bad"},
    response_metadata={"model_name": "m"},
    usage_metadata={"input_tokens": 1, "output_tokens": 2, "total_tokens": 3},
)


@pytest.mark.parametrize(
    ("wrap", "unwrap"),
    [
        (lambda m: m, lambda o: o),
        (lambda m: {"answer": m, "n": 1}, lambda o: o["answer"]),
        (lambda m: MappingProxyType({"answer": m}), lambda o: o["answer"]),
    ],
    ids=["message", "key", "mapping that cannot be changed"],
)
def test_of_a_message_that_passes_the_text_leaves_and_what_is_known_of_it(
    wrap: Any, unwrap: Any
) -> None:
    output = Guard(Chain(wrap(BESIDE)), not_bad).invoke("why?")
    left = unwrap(output)
    assert "bad" not in repr(output)
    assert (left.text, left.id, left.usage_metadata) == (FINE, "7", BESIDE.usage_metadata)
    assert left.response_metadata == {"model_name": "m"}
    assert "bad" in repr(BESIDE)  # The chain's own message is unchanged.


def test_so_it_is_where_there_was_nothing_to_check_and_where_a_judge_failed() -> None:
    def silent(sample: Sample) -> Evaluation:
        return Evaluation(name="judge", label=ABSTAIN)

    def broken(sample: Sample) -> Evaluation:
        return Evaluation(name="judge", error="no references")

    for each in (Guard(Chain(BESIDE), silent), Guard(Chain(BESIDE), broken, on_error="open")):
        output = each.invoke("why?")
        assert output.text == FINE
        assert "bad" not in repr(output)


def test_in_a_stream_only_text_leaves() -> None:
    chunks = [
        AIMessageChunk([{"type": "reasoning", "reasoning": "bad", "index": 0}], id="1"),
        AIMessageChunk([{"type": "text", "text": "One is good. ", "index": 1}], id="1"),
        AIMessageChunk([{"type": "text", "text": "Two is good.", "index": 1}], id="1"),
        AIMessageChunk("", id="1", additional_kwargs={"reasoning_content": "bad"}),
    ]
    for streaming in ("sentence", "buffer"):
        client = Client().read(guard(Telling(chunks), streaming=streaming), "why?")
        assert client.text == "One is good. Two is good."
        assert "bad" not in repr(client.chunks)


@pytest.mark.parametrize(
    "output",
    [
        {"answer": FINE, "output": "Two is bad.", "context": []},
        {"result": AIMessage("Two is bad."), "response": FINE},
        {"answer": FINE, "result": {"text": "Two is bad."}, "input": "why?"},
        {"answer": FINE, "response": AIMessage("Two is bad.")},
    ],
)
def test_of_several_answers_none_leaves(output: Any) -> None:
    with pytest.raises(DemurError, match=r"several answers.*answer='key'") as raised:
        Guard(Chain(output), not_bad).invoke("why?")
    assert "bad" not in str(raised.value)


def test_one_answer_under_several_keys_is_judged_and_refused_under_each() -> None:
    for text, left in (("One is bad.", REFUSAL), (FINE, FINE)):
        output = {"answer": text, "response": AIMessage(text), "output": None, "result": ""}
        found = Guard(Chain(output), not_bad).invoke("why?")
        assert (found["answer"], found["response"].text) == (left, left)


# --- Invalid evaluations ----------------------------------------------------------------------


@pytest.mark.parametrize("passed", [math.nan, "so", [], 3, "false"])
def test_what_only_looks_like_a_pass_is_none(passed: Any) -> None:
    found = Evaluation(name="judge", passed=True).model_copy(update={"passed": passed})
    assert found.finding != "passed"
    refusal = REFUSAL if passed == "false" else UNCHECKED  # Pydantic reads "false" as False.
    assert Guard(Chain(FINE), lambda sample: found).invoke("why?") == refusal
