"""Test what handlers record of a run: question, contexts, answer, and evaluations."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel, FakeListLLM, GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import Runnable, RunnableLambda, RunnablePassthrough

from demur import Evaluation, Guard, RefChecker, Sample, ScoreCallbackHandler
from demur.observe import Record
from support.handlers import MODES, Library, echo, handler_for, nothing_left, rag, run
from support.waiting import wait

# --- One run ----------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_question_contexts_and_answer_of_a_run(mode: str) -> None:
    handler, records = handler_for(echo)
    run(mode, rag(), "How tall?", handler, tags=["shop"], metadata={"user": 7}, run_name="tower")
    record = records.one
    assert (record.question, record.answer) == ("How tall?", "A good answer.")
    assert [document.page_content for document in record.contexts] == [Library().texts[0]]
    (found,) = record.evaluations
    assert found.explanation == f"How tall?|A good answer.|{[Library().texts[0]]}"
    assert (record.verdict, record.outcome) == ("passed", None)
    assert record.id == record.root
    assert record.name == "tower"
    assert record.tags == ("shop",)
    assert record.metadata["user"] == 7
    assert record.usage.calls == 3  # One call is the chain's; the evaluator reports the others.
    assert record.usage.input_tokens == 30
    assert record.seconds >= 0
    assert Record.model_validate_json(record.as_json()) == record
    assert handler.counts.runs == handler.counts.recorded == 1
    assert nothing_left(handler)


@pytest.mark.parametrize("mode", ["invoke", "astream"])
def test_a_model_alone(mode: str) -> None:
    for model in (FakeListChatModel(responses=["good"]), FakeListLLM(responses=["good"])):
        handler, records = handler_for(echo)
        run(mode, model, "How tall?", handler)
        assert (records.one.question, records.one.answer) == ("How tall?", "good")


def test_a_model_with_callbacks_of_its_own_also_as_a_copy() -> None:
    handler, records = handler_for(echo)
    model = FakeListChatModel(responses=["good"], callbacks=[handler]).model_copy(deep=True)
    (ChatPromptTemplate.from_template("{question}") | model).invoke({"question": "How tall?"})
    handler.flush(30)
    assert (records.one.question, records.one.answer) == ("How tall?", "good")
    assert nothing_left(handler)


def test_of_an_agents_messages_the_last_is_the_answer_unless_it_calls_tools() -> None:
    call = {"name": "search", "args": {}, "id": "1"}
    messages = [
        HumanMessage("How tall?"),
        AIMessage("", tool_calls=[call]),
        ToolMessage("84 metres.", tool_call_id="1"),
        AIMessage("good: 84 metres"),
    ]
    handler, records = handler_for(echo)
    for end in (2, 4):
        said = messages[1:end]
        agent = RunnableLambda(lambda state, said=said: {"messages": [*state["messages"], *said]})
        run("invoke", agent, {"messages": messages[:1]}, handler)
    assert (handler.counts.runs, handler.counts.unanswered) == (2, 1)
    assert (records.one.question, records.one.answer) == ("How tall?", "good: 84 metres")
    result, called = records.one.contexts
    assert result.page_content == "84 metres."
    assert "search" in called.page_content
    assert called.metadata["tool_call"] == "done"


def test_metadata_that_json_cannot_hold_is_left_out() -> None:
    given = {"nan": float("nan"), "inf": float("inf"), "huge": 10**5000, "x": object(), "n": None}
    handler, records = handler_for(echo)
    given = {**given, "big": 2**62, "yes": True, 5: 0.5}  # type: ignore[dict-item]  # wrong
    run("invoke", rag(), "q", handler, metadata=given)
    assert records.one.metadata == {"n": None, "big": 2**62, "yes": True, "5": 0.5}


def test_readers_say_where_things_are() -> None:
    chain = RunnableLambda(lambda given: {"text": "good", "found": ["a", "b"]})
    handler, records = handler_for(
        echo, question="ask", answer=lambda output: output["text"], contexts="found"
    )
    run("invoke", chain, {"ask": "How tall?"}, handler)
    assert records.one.evaluations[0].explanation == "How tall?|good|['a', 'b']"


def test_an_answer_that_cannot_be_found_is_undetermined(caplog: pytest.LogCaptureFixture) -> None:
    handler, records = handler_for(echo)
    for output in ({"number": object()}, 7, None):
        run("invoke", RunnableLambda(lambda _, output=output: output), "q", handler)
    for record in records.all:
        assert record.verdict == "undetermined"
        assert "no answer can be found" in str(record.evaluations[0].error)
    assert len(records.all) == 3
    assert len([one for one in caplog.records if "cannot be scored" in one.message]) == 1


def test_what_was_said_is_kept_as_it_was() -> None:
    """Let a caller change input and output while the answer still waits to be judged."""
    go = threading.Event()

    def slow(sample: Sample) -> Evaluation:
        wait(go)
        return echo(sample)

    def answered(given: Any) -> Any:
        given["question"] = "another"
        return {"answer": "good", "context": [Document("a")]}

    handler, records = handler_for(slow)
    output = RunnableLambda(answered).invoke({"question": "q"}, {"callbacks": [handler]})
    output["answer"] = "other"
    output["context"].clear()
    go.set()
    assert handler.flush(30)
    assert records.one.evaluations[0].explanation == "q|good|['a']"


# --- Which model, which response ------------------------------------------------------------------


def test_the_model_and_its_response() -> None:
    said = {"model_name": "gpt-x", "id": "resp-1"}
    replies = iter([AIMessage("good", response_metadata=said)])
    first = FakeListChatModel(responses=["x"]) | (lambda _: "q2")
    chain = first | GenericFakeChatModel(messages=replies)
    handler, records = handler_for(echo)
    run("invoke", chain, "q", handler)
    assert (records.one.model, records.one.response) == ("gpt-x", "resp-1")


# --- Evaluators -----------------------------------------------------------------------------------


def test_of_several_evaluators_those_that_fail_are_undetermined() -> None:
    def broken(sample: Sample) -> Evaluation:
        raise ValueError("out of order")

    def wrong(sample: Sample) -> Any:
        return "yes"

    def leaves(sample: Sample) -> Evaluation:
        raise SystemExit(3)

    handler, records = handler_for([echo, broken], wrong, leaves)
    run("invoke", rag(), "How tall?", handler)
    first, *others = records.one.evaluations
    assert first.passed
    assert all(other.undetermined for other in others)
    assert "out of order" in str(others[0].error)
    assert "wrong returned a str, expected a bool" in str(others[1].error)
    assert others[2].error == "it raised SystemExit: 3"
    assert records.one.verdict == "undetermined"
    handler, records = handler_for(leaves)
    run("invoke", rag(), "q", handler)
    assert records.one.evaluations[0].error == "it raised SystemExit: 3"
    assert handler.counts.lost == 0


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"sample_rate": 1.5}, r"sample_rate must be in \[0, 1\], got 1.5"),
        ({"sample_rate": float("nan")}, "sample_rate must be in"),
        ({"max_queue": 0}, "max_queue must be at least 1, got 0"),
        ({"max_concurrency": 0}, "max_concurrency must be at least 1, got 0"),
        ({"on_full": "wait"}, "on_full must be 'drop' or 'block', got 'wait'"),
        ({"question": ["a"]}, "question= says where .* got a list"),
        ({"answer": ["a"]}, "answer= says where .* got a list"),
        ({"contexts": ["a"]}, "contexts= says where .* got a list"),
    ],
)
def test_what_it_cannot_use_is_refused_by_name(arguments: Any, says: str) -> None:
    with pytest.raises((TypeError, ValueError), match=says):
        ScoreCallbackHandler(echo, sink=print, **arguments)
    made: Any = ScoreCallbackHandler
    with pytest.raises(TypeError, match=r"make one first, RefChecker\(model\)"):
        made(RefChecker, sink=print)


@pytest.mark.parametrize(
    ("mode", "before"),
    [
        *(("invoke", "nothing"), ("abatch", "a step")),
        *(("a loop that ends", "nothing"), ("a loop that ends", "a step")),
    ],
)
def test_an_evaluator_that_is_only_asynchronous(mode: str, before: str) -> None:
    """Run also in a thread: the handler's own, or one that goes on after its loop has ended."""

    async def judge(sample: Sample) -> Evaluation:
        await asyncio.sleep(0.01)
        return echo(sample)

    evaluator: Runnable[Any, Any] = RunnableLambda(judge)
    if before == "a step":
        evaluator = RunnablePassthrough() | evaluator
    handler, records = handler_for(evaluator)
    if mode == "a loop that ends":
        asyncio.run(rag().ainvoke("q", {"callbacks": [handler]}))
        assert handler.flush(30)
    else:
        run(mode, rag(), "q", handler)
    assert {record.verdict for record in records.all} == {"passed"}


def test_a_run_that_is_an_evaluation_is_recorded_as_it_is() -> None:
    handler, records = handler_for(echo)
    judge: Runnable[Any, Any] = RunnableLambda(echo)
    run("invoke", judge, Sample(question="q", answer="bad"), handler)
    assert records.one.evaluations[0].explanation == "q|bad|[]"
    assert (records.one.question, records.one.answer) == ("q", "bad")


def test_without_evaluators_only_guards_are_recorded() -> None:
    handler, records = handler_for()
    run("invoke", rag(), "How tall?", handler)
    assert not records.all
    run("invoke", Guard(rag(), echo), "How tall?", handler)
    assert records.one.outcome == "passed"


def test_the_evaluators_runs_are_not_taken_for_chains() -> None:
    """Ignore these runs, although a handler that is registered globally hears them too."""

    def heard(sample: Sample) -> Evaluation:
        inner = RunnableLambda(echo)
        return inner.invoke(sample, {"callbacks": [handler], "tags": ["demur:judge"]})

    handler, records = handler_for(heard)
    run("invoke", rag(), "How tall?", handler)
    assert len(records.all) == 1


def test_the_chains_handlers_do_not_hear_the_evaluators() -> None:
    names: list[str] = []

    class Ears(BaseCallbackHandler):
        def on_chain_start(self, serialized: Any, inputs: Any, **kwargs: Any) -> None:
            names.append(kwargs["name"])

    handler, records = handler_for(RunnableLambda(echo, name="echo"))
    rag().invoke("How tall?", {"callbacks": [handler, Ears()]})
    handler.flush(30)
    assert records.one.verdict == "passed"
    assert names
    assert "echo" not in names
