"""Test what handlers record of a run: question, contexts, answer, and evaluations."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel, FakeListLLM
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import (
    Runnable,
    RunnableLambda,
    RunnablePassthrough,
)

from demur import (
    Evaluation,
    Guard,
    RefChecker,
    Sample,
    ScoreCallbackHandler,
)
from demur.evaluators import as_evaluator
from demur.observe import Record
from support.handlers import (
    MODES,
    Library,
    echo,
    handler_for,
    nothing_left,
    rag,
    run,
)

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


@pytest.mark.parametrize("mode", ["invoke", "ainvoke", "stream", "astream"])
def test_a_model_alone(mode: str) -> None:
    handler, records = handler_for(echo)
    run(mode, FakeListChatModel(responses=["good"]), "How tall?", handler)
    assert (records.one.question, records.one.answer) == ("How tall?", "good")
    handler, records = handler_for(echo)
    run(mode, FakeListLLM(responses=["good"]), "How tall?", handler)
    assert (records.one.question, records.one.answer) == ("How tall?", "good")


def test_a_model_with_callbacks_of_its_own() -> None:
    handler, records = handler_for(echo)
    model = FakeListChatModel(responses=["good"], callbacks=[handler])
    (ChatPromptTemplate.from_template("{question}") | model).invoke({"question": "How tall?"})
    handler.flush(30)
    assert (records.one.question, records.one.answer) == ("How tall?", "good")
    assert nothing_left(handler)


def test_an_agents_messages() -> None:
    call = {"name": "search", "args": {}, "id": "1"}
    messages = [
        HumanMessage("How tall?"),
        AIMessage("", tool_calls=[call]),
        ToolMessage("84 metres.", tool_call_id="1"),
        AIMessage("good: 84 metres"),
    ]
    agent = RunnableLambda(lambda state: {"messages": [*state["messages"], *messages[1:]]})
    handler, records = handler_for(echo)
    run("invoke", agent, {"messages": messages[:1]}, handler)
    assert (records.one.question, records.one.answer) == ("How tall?", "good: 84 metres")
    assert [document.page_content for document in records.one.contexts] == ["84 metres."]


def test_a_model_that_only_calls_tools_has_not_answered() -> None:
    call = {"name": "search", "args": {}, "id": "1"}
    handler, records = handler_for(echo)
    run("invoke", RunnableLambda(lambda _: AIMessage("", tool_calls=[call])), "q", handler)
    assert not records.all
    assert handler.counts.unanswered == 1


def test_readers_say_where_things_are() -> None:
    chain = RunnableLambda(lambda given: {"text": "good", "found": ["a", "b"]})
    handler, records = handler_for(
        echo, question="ask", answer=lambda output: output["text"], contexts="found"
    )
    run("invoke", chain, {"ask": "How tall?"}, handler)
    assert records.one.evaluations[0].explanation == "How tall?|good|['a', 'b']"


@pytest.mark.parametrize("output", [{"number": object()}, 7, None])
def test_an_answer_that_cannot_be_found_is_undetermined(
    output: Any, caplog: pytest.LogCaptureFixture
) -> None:
    handler, records = handler_for(echo)
    for _ in range(3):
        run("invoke", RunnableLambda(lambda _: output), "q", handler)
    for record in records.all:
        assert record.verdict == "undetermined"
        assert "no answer can be found" in str(record.evaluations[0].error)
    assert len(records.all) == 3
    assert len([one for one in caplog.records if "cannot be scored" in one.message]) == 1


def test_what_was_said_is_kept_as_it_was() -> None:
    """Let a caller change the output while the answer still waits to be judged."""
    go = threading.Event()

    def slow(sample: Sample) -> Evaluation:
        go.wait(30)
        return echo(sample)

    handler, records = handler_for(slow)
    chain = RunnableLambda(lambda _: {"answer": "good", "context": [Document("a")]})
    output = chain.invoke("q", {"callbacks": [handler]})
    output["answer"] = "other"
    output["context"].clear()
    go.set()
    assert handler.flush(30)
    assert records.one.evaluations[0].explanation == "q|good|['a']"


# --- Which model, which response ------------------------------------------------------------------


def test_the_model_and_its_response() -> None:
    said = {"model_name": "gpt-x", "id": "resp-1"}
    model = FakeListChatModel(responses=["x"]) | (lambda _: "q2")
    replies = [AIMessage("good", response_metadata=said)]

    from langchain_core.language_models import GenericFakeChatModel

    chain = model | GenericFakeChatModel(messages=iter(replies))
    handler, records = handler_for(echo)
    run("invoke", chain, "q", handler)
    assert (records.one.model, records.one.response) == ("gpt-x", "resp-1")


# --- Evaluators -----------------------------------------------------------------------------------


def test_several_evaluators_and_one_that_fails() -> None:
    def broken(sample: Sample) -> Evaluation:
        raise ValueError("out of order")

    def wrong(sample: Sample) -> Any:
        return "yes"

    handler, records = handler_for(echo, broken, wrong)
    run("invoke", rag(), "How tall?", handler)
    first, second, third = records.one.evaluations
    assert first.passed
    assert second.undetermined
    assert "out of order" in str(second.error)
    assert "wrong returned a str, expected a bool" in str(third.error)
    assert records.one.verdict == "undetermined"


def test_functions_and_lists_of_them_are_evaluators_as_in_a_guard() -> None:
    def scored(sample: Sample) -> float:
        return 0.5

    def mistaken(sample: Sample) -> bool:
        raise TypeError("nobody is there to see it")

    handler, records = handler_for(
        [scored, as_evaluator(scored, threshold=0.6)], lambda sample: True, mistaken
    )
    run("invoke", rag(), "How tall?", handler)
    evaluations = records.one.evaluations
    assert [e.name for e in evaluations] == ["scored", "scored 2", "lambda", "mistaken"]
    findings = ["scored", "failed", "passed", "undetermined"]
    assert [e.finding for e in evaluations] == findings


def test_what_it_cannot_use_is_refused_by_name() -> None:
    made: Any = ScoreCallbackHandler
    with pytest.raises(TypeError, match=r"make one first, RefChecker\(model\)"):
        made(RefChecker, sink=print)
    for name in ("question", "answer", "contexts"):
        with pytest.raises(TypeError, match=rf"{name}= says where .* got a list"):
            made(echo, sink=print, **{name: ["a"]})


@pytest.mark.parametrize("form", ["function", "bound", "sequence"])
@pytest.mark.parametrize("mode", [*MODES, "a loop that ends"])
def test_an_evaluator_that_is_only_asynchronous(mode: str, form: str) -> None:
    """Run also in a thread: the handler's own, or one that goes on after its loop has ended."""

    async def judge(sample: Sample) -> Evaluation:
        await asyncio.sleep(0.01)
        return echo(sample)

    evaluator: Runnable[Any, Any] = RunnableLambda(judge)
    if form == "bound":
        evaluator = evaluator.with_config(tags=["x"])
    if form == "sequence":
        evaluator = RunnablePassthrough() | evaluator
    handler, records = handler_for(evaluator)
    if mode == "a loop that ends":
        asyncio.run(rag().ainvoke("q", {"callbacks": [handler]}))
        assert handler.flush(30)
    else:
        run(mode, rag(), "q", handler)
    assert {record.verdict for record in records.all} == {"passed"}


@pytest.mark.parametrize("several", [False, True])
def test_an_evaluator_that_wants_to_exit_is_undetermined(several: bool) -> None:
    def leaves(sample: Sample) -> Evaluation:
        raise SystemExit(3)

    evaluators = (leaves, echo) if several else (leaves,)
    handler, records = handler_for(*evaluators)
    run("invoke", rag(), "q", handler)
    assert records.one.evaluations[0].error == "it raised SystemExit: 3"
    assert handler.counts.lost == 0


def test_an_evaluator_without_a_threshold() -> None:
    handler, records = handler_for(RunnableLambda(lambda sample: Evaluation(name="raw", score=0.3)))
    run("invoke", rag(), "How tall?", handler)
    assert records.one.verdict == "scored"
    assert records.one.evaluations[0].score == 0.3


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
    class Ears(BaseCallbackHandler):
        names: list[str]

        def __init__(self) -> None:
            self.names = []

        def on_chain_start(self, serialized: Any, inputs: Any, **kwargs: Any) -> None:
            self.names.append(kwargs["name"])

    ears = Ears()
    handler, records = handler_for(RunnableLambda(echo, name="echo"))
    rag().invoke("How tall?", {"callbacks": [handler, ears]})
    handler.flush(30)
    assert records.one.verdict == "passed"
    assert "echo" not in ears.names
