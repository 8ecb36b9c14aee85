"""What is scored beside engines, and what engines notice of it."""

from __future__ import annotations

import asyncio
import copy
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import BaseMessage
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.base.response.schema import PydanticResponse, Response
from llama_index.core.chat_engine.types import AgentChatResponse, BaseChatEngine
from llama_index.core.evaluation import (
    BatchEvalRunner,
    FaithfulnessEvaluator,
    RelevancyEvaluator,
)
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.dispatcher import instrument_tags
from llama_index.core.query_engine import CustomQueryEngine, RetrieverQueryEngine
from llama_index.core.schema import QueryBundle
from pydantic import BaseModel

from demur import Evaluation, Sample
from demur.observe.log import Filters, open_log, select
from fake_llm import EndpointLLM, ScriptedCompletions, ScriptedLLM
from guarded_app import build, judge, query_engine, speaker
from llama_index.evaluation.demur.evaluators import RefCheckerEvaluator
from llama_index.evaluation.demur.handler import ScoreEventHandler
from scored_app import (
    CHAT_MODES,
    SPEECH,
    Angry,
    added,
    chat_engine,
    history,
    listening,
    memory,
    routed,
    settled,
    sub_questions,
)
from support.handlers import Records, echo
from support.openai_server import openai_server
from support.rag import FACTS, RIGHT, WRONG

QUESTION = "How tall is the Amber Tower?"


def ask(engine: Any, method: str, *given: Any) -> Any:
    """Call a method of an engine, in a loop if it needs one."""
    called = getattr(engine, method)
    return asyncio.run(called(*given)) if method.startswith("a") else called(*given)


# --- What is recorded -----------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["query", "aquery"])
def test_a_query_with_its_answer_its_nodes_and_its_cost(method: str) -> None:
    with listening(judge()) as (handler, records):
        response = ask(query_engine(WRONG), method, QUESTION)
        assert settled(handler)
    record = records.one
    assert (record.name, record.root, record.model) == (
        "RetrieverQueryEngine",
        record.id,
        "scripted",
    )
    assert (record.question, record.answer) == (QUESTION, WRONG)
    assert record.answer == str(response)
    assert {one.page_content.splitlines()[-1] for one in record.contexts} <= {*FACTS}
    assert [one.id for one in record.contexts] == [one.node_id for one in response.source_nodes]
    assert {one.metadata["page"] for one in record.contexts} <= {*range(len(FACTS))}
    assert record.verdict == "failed"
    answering = record.attempts[0].usage
    assert (answering.calls, answering.output_tokens) == (1, len(WRONG.split()))
    assert answering.input_tokens > 10
    assert record.usage.calls == 3  # two of the judge
    assert record.seconds > 0
    assert handler.counts.runs == handler.counts.recorded == 1


def test_a_bundle_is_its_question() -> None:
    with listening(echo) as (handler, records):
        query_engine(RIGHT).query(QueryBundle(QUESTION, custom_embedding_strs=["height"]))
        assert settled(handler)
    assert records.one.question == QUESTION


@pytest.mark.parametrize("method", ["chat", "achat"])
@pytest.mark.parametrize("mode", CHAT_MODES)
def test_chats_of_every_engine(mode: str, method: str) -> None:
    engine = chat_engine(mode)

    async def both() -> None:
        for message in (QUESTION, "And how old?"):
            assert (await engine.achat(message)).response == SPEECH

    with listening(echo, max_concurrency=1) as (handler, records):
        if method == "achat":
            asyncio.run(both())
        else:
            for message in (QUESTION, "And how old?"):
                assert engine.chat(message).response == SPEECH
        assert settled(handler)
    assert [one.question for one in records.all] == [QUESTION, "And how old?"]
    assert {one.answer for one in records.all} == {SPEECH}
    assert {one.name for one in records.all} == {type(engine).__name__}
    assert [len(one.contexts) for one in records.all] == [0 if mode == "simple" else 2] * 2
    condenses = int(mode.startswith("condense"))
    assert [one.attempts[0].usage.calls for one in records.all] == [1, 1 + condenses]
    assert len(history(engine)) == 4


def test_an_endpoint_tells_the_model_and_the_reply() -> None:
    with openai_server([SPEECH]) as server, listening(echo) as (handler, records):
        llm = EndpointLLM(api_base=server.url)
        build(llm).as_query_engine(llm=llm).query(QUESTION)
        assert settled(handler)
    record = records.one
    assert record.model == "test"
    assert record.response
    assert record.attempts[0].usage.output_tokens == len(SPEECH.split())


def test_a_completion_inside_a_chat_is_one_call() -> None:
    llm = ScriptedCompletions(script=lambda *_: SPEECH)
    engine = build(llm).as_chat_engine(chat_mode="simple", llm=llm, memory=memory())
    with listening(echo) as (handler, records):
        engine.chat(QUESTION)
        assert settled(handler)
    usage = records.one.attempts[0].usage
    assert (usage.calls, usage.output_tokens) == (1, len(SPEECH.split()))


def test_evaluators_of_every_kind_side_by_side() -> None:
    llm = ScriptedLLM(script=lambda *_: "YES")
    evaluators = (RefCheckerEvaluator(llm=judge().model), FaithfulnessEvaluator(llm=llm), echo)
    with listening(*evaluators) as (handler, records):
        query_engine(RIGHT).query(QUESTION)
        assert settled(handler)
    found = {one.name: one.passed for one in records.one.evaluations}
    assert len(found) == 3
    assert (found["echo"], found["FaithfulnessEvaluator"]) == (False, True)
    assert "refchecker" in {name.lower() for name in found}


def test_a_log_can_be_opened(tmp_path: Path) -> None:
    path = tmp_path / "scores.sqlite"
    handler = ScoreEventHandler(judge(), sink=path)
    with added(handler):
        for answer in (RIGHT, WRONG):
            query_engine(answer).query(QUESTION)
    assert handler.close(30)
    with open_log(path) as log:
        runs = [*select(log, Filters())]
    assert len(runs) == 2


# --- Which runs -----------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["query", "aquery"])
def test_of_a_router_the_outermost_query(method: str) -> None:
    with listening(echo) as (handler, records):
        ask(routed(), method, QUESTION)
        assert settled(handler)
    assert records.one.name == "RouterQueryEngine"
    assert records.one.contexts
    assert records.one.attempts[0].usage.calls == 2


@pytest.mark.parametrize("use_async", [False, True])
@pytest.mark.parametrize("method", ["query", "aquery"])
def test_of_sub_questions_the_outermost_query(method: str, use_async: bool) -> None:
    with listening(echo) as (handler, records):
        ask(sub_questions(use_async), method, QUESTION)
        assert settled(handler)
    assert records.one.name == "SubQuestionQueryEngine"
    assert records.one.answer == "Good, all of it."
    assert records.one.attempts[0].usage.calls == 4


@pytest.mark.parametrize("use_async", [False, True])
async def test_a_query_inside_a_running_loop(use_async: bool) -> None:
    with listening(echo) as (handler, records):
        sub_questions(use_async).query(QUESTION)
        assert settled(handler)
    assert records.one.name == "SubQuestionQueryEngine"


def test_engines_by_the_name_of_their_class() -> None:
    with listening(echo, names="RetrieverQueryEngine") as (handler, records):
        routed().query(QUESTION)
        assert settled(handler)
    assert records.one.name == "RetrieverQueryEngine"
    assert records.one.root != records.one.id


def test_tags_of_the_application() -> None:
    engine = query_engine(RIGHT)
    with listening(echo, tags=["shop"]) as (handler, records):
        engine.query("not this")
        with instrument_tags({"shop": "north", "visit": 7, "object": object()}):
            engine.query(QUESTION)
        assert settled(handler)
    assert records.one.question == QUESTION
    assert records.one.tags == ("shop", "visit", "object")
    assert records.one.metadata == {"shop": "north", "visit": 7}


def test_handlers_that_sample_choose_the_same() -> None:
    engine = query_engine(RIGHT)
    with (
        listening(echo, sample_rate=0.5) as (first, some),
        listening(echo, sample_rate=0.5) as (second, same),
        listening(echo) as (third, everything),
    ):
        for _ in range(40):
            engine.query(QUESTION)
        assert all(map(settled, (first, second, third)))
    assert {one.id for one in some.all} == {one.id for one in same.all}
    assert {one.id for one in some.all} < {one.id for one in everything.all}
    assert first.counts.unsampled == 40 - len(some.all) > 0


def test_a_hundred_at_once() -> None:
    def script(stage: str, messages: Sequence[BaseMessage]) -> str:
        return "Good: " + str(messages[-1].content).split("Query: ")[1].split("\n")[0]

    llm = ScriptedLLM(script=script)
    engine = build(llm).as_query_engine(llm=llm)

    async def ask_all() -> None:
        await asyncio.gather(*(engine.aquery(f"number {at}") for at in range(100)))

    with listening(echo) as (handler, records):
        asyncio.run(ask_all())
        assert settled(handler)
    assert {one.answer for one in records.all} == {f"Good: number {at}" for at in range(100)}
    assert all(one.answer == f"Good: {one.question}" for one in records.all)
    assert {one.attempts[0].usage.calls for one in records.all} == {1}


# --- What evaluators do is nobody's run -----------------------------------------------------------


def test_an_evaluator_that_queries_is_not_recorded() -> None:
    llm = ScriptedLLM(script=lambda *_: "YES")
    inner = query_engine(RIGHT)

    def asks(sample: Sample) -> Evaluation:
        passed = str(inner.query("Is it so?")) in sample.answer
        return Evaluation(name="asks", score=float(passed), passed=passed)

    async def aasks(sample: Sample) -> Evaluation:
        passed = str(await inner.aquery("Is it so?")) in sample.answer
        return Evaluation(name="aasks", score=float(passed), passed=passed)

    with listening(FaithfulnessEvaluator(llm=llm), asks, aasks) as (handler, records):
        for _ in range(3):
            query_engine(SPEECH).query(QUESTION)
        assert settled(handler)
    assert handler.counts.runs == len(records.all) == 3
    assert {one.verdict for one in records.all} == {"passed"}


async def test_what_evaluators_of_the_application_query_is_not_recorded() -> None:
    """LlamaIndex's query an index that they make of the contexts."""
    llm = ScriptedLLM(script=lambda *_: "YES")
    judges = {"faithful": FaithfulnessEvaluator(llm=llm), "relevant": RelevancyEvaluator(llm=llm)}
    runner = BatchEvalRunner(judges, workers=2)
    with listening(echo) as (handler, records):
        results = await runner.aevaluate_queries(query_engine(RIGHT), queries=[QUESTION, "Why?"])
        assert settled(handler)
    assert all(one.passing for found in results.values() for one in found)
    assert {one.question for one in records.all} == {QUESTION, "Why?"}
    assert handler.counts.runs == len(records.all) == 2


# --- What the application notices -----------------------------------------------------------------


@pytest.mark.parametrize("method", ["query", "aquery", "chat", "achat"])
def test_what_raises_raises_and_is_counted(method: str) -> None:
    def script(*_: Any) -> str:
        raise ConnectionError("gone")

    llm = ScriptedLLM(script=script)
    index = build(llm)
    engine: Any = index.as_query_engine(llm=llm)
    if method.endswith("chat"):
        engine = index.as_chat_engine(chat_mode="context", llm=llm, memory=memory())
    with listening(echo) as (handler, records):
        with pytest.raises(ConnectionError, match="gone"):
            ask(engine, method, QUESTION)
        assert settled(handler)
    assert not records.all
    assert (handler.counts.runs, handler.counts.unanswered) == (1, 1)


def test_other_handlers_hear_as_before() -> None:
    angry = Angry()
    with (
        added(angry),
        listening(echo) as (first, some),
        listening(judge()) as (second, others),
    ):
        assert str(query_engine(RIGHT).query(QUESTION)) == RIGHT
        assert settled(first)
        assert settled(second)
    assert some.one.id == others.one.id
    assert some.one.evaluations != others.one.evaluations


def test_a_handler_that_is_added_twice_records_once() -> None:
    records = Records()
    handler = ScoreEventHandler(echo, sink=records)
    engine = chat_engine("simple")
    with added(handler, handler):
        query_engine(RIGHT).query(QUESTION)
        _ = [*engine.stream_chat(QUESTION).response_gen]
        assert settled(handler)
    assert [one.answer for one in records.all] == [RIGHT, SPEECH]
    assert handler.counts.runs == 2


def test_a_full_queue_drops_and_counts() -> None:
    go_on = threading.Event()

    def slow(sample: Sample) -> Evaluation:
        go_on.wait(30)
        return Evaluation(name="slow", score=1.0, passed=True)

    engine = query_engine(RIGHT)
    with listening(slow, max_queue=2, max_concurrency=1) as (handler, records):
        for _ in range(10):
            engine.query(QUESTION)
        assert (handler.counts.dropped, handler.counts.waiting) == (7, 2)
        go_on.set()
        assert settled(handler)
    assert len(records.all) == 3


@pytest.mark.parametrize("method", ["query", "aquery"])
def test_a_full_queue_blocks_if_it_is_to(method: str) -> None:
    engine = query_engine(RIGHT)
    with listening(echo, max_queue=1, max_concurrency=1, on_full="block") as (handler, records):

        async def ask_all() -> None:
            await asyncio.gather(*(engine.aquery(QUESTION) for _ in range(20)))

        if method == "aquery":
            asyncio.run(ask_all())
        else:
            for _ in range(20):
                engine.query(QUESTION)
        assert settled(handler)
    assert len(records.all) == 20
    assert not handler.counts.dropped


class Odd(BaseChatEngine):
    """A chat engine that returns what it was made with."""

    def __init__(self, returned: Any) -> None:
        self.returned = returned

    def chat(self, message: str, chat_history: list[ChatMessage] | None = None) -> Any:
        return self.returned

    stream_chat = achat = astream_chat = chat

    def reset(self) -> None: ...

    @property
    def chat_history(self) -> list[ChatMessage]:
        return []


def test_a_response_that_is_none_is_recorded_as_undetermined(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with listening(echo) as (handler, records):
        assert Odd("said").chat(QUESTION) == "said"
        assert settled(handler)
    record = records.one
    assert record.verdict == "undetermined"
    assert record.question == QUESTION
    assert "an engine returned a str" in (record.evaluations[0].error or "")
    assert "cannot be scored" in caplog.text


class Thing(BaseModel):
    thing: Any


@pytest.mark.parametrize(
    ("response", "what"),
    [
        (PydanticResponse(Thing(thing=object())), "PydanticSerializationError"),
        (Response("said", source_nodes=[object()]), "AttributeError"),  # type: ignore[list-item]  # it is wrong
    ],
    ids=["pydantic", "nodes"],
)
def test_a_response_that_cannot_be_read_is_recorded_as_undetermined(
    response: Any, what: str
) -> None:
    with listening(echo) as (handler, records):
        assert Odd(response).chat(QUESTION) is response
        assert settled(handler)
    record = records.one
    assert (record.question, record.verdict) == (QUESTION, "undetermined")
    assert f"cannot be read: {what}" in (record.evaluations[0].error or "")


@pytest.mark.parametrize("fails", [False, True])
async def test_a_method_that_returns_a_future(fails: bool) -> None:
    async def answer() -> AgentChatResponse:
        await asyncio.sleep(0)
        if fails:
            raise ConnectionError("gone")
        return AgentChatResponse(SPEECH)

    with listening(echo) as (handler, records):
        waiting = Odd(asyncio.ensure_future(answer())).chat(QUESTION)
        await asyncio.wait([waiting])
        await asyncio.sleep(0)
        assert settled(handler)
    assert [one.answer for one in records.all] == ([] if fails else [SPEECH])
    assert handler.counts.unanswered == fails


class Fixed(CustomQueryEngine):
    """LlamaIndex tells nothing of such engines."""

    def custom_query(self, query_str: str) -> str:
        return SPEECH


class Counting(RetrieverQueryEngine):
    """An engine that overrides what it uses."""

    def query(self, str_or_query_bundle: Any) -> Any:
        return super().query(str_or_query_bundle)

    async def aquery(self, str_or_query_bundle: Any) -> Any:
        return await super().aquery(str_or_query_bundle)


@pytest.mark.parametrize("question", [QUESTION, QueryBundle(QUESTION)])
@pytest.mark.parametrize("method", ["query", "aquery"])
def test_engines_with_a_query_of_their_own(method: str, question: Any) -> None:
    plain = query_engine(SPEECH)
    own = Counting(plain.retriever, plain._response_synthesizer)
    streaming = query_engine(SPEECH, streaming=True)
    own_streaming = Counting(streaming.retriever, streaming._response_synthesizer)

    async def read() -> None:
        response = await own_streaming.aquery(question)
        assert [one async for one in response.async_response_gen()]

    with listening(echo, max_concurrency=1) as (handler, records):
        ask(Fixed(), method, question)
        ask(own, method, question)
        if method == "aquery":
            asyncio.run(read())
        else:
            str(own_streaming.query(question))
        assert settled(handler)
    assert [one.name for one in records.all] == ["Fixed", "Counting", "Counting"]
    assert {one.question for one in records.all} == {QUESTION}
    assert {one.answer for one in records.all} == {SPEECH}
    assert all(one.root == one.id for one in records.all)
    assert handler.counts.runs == 3


def test_what_goes_wrong_in_the_handler_is_told_in_the_log(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with listening(echo) as (handler, _):
        monkeypatch.setattr(handler._engines, "_over", None)
        assert str(query_engine(RIGHT).query(QUESTION)) == RIGHT
    assert [one.name for one in caplog.records if one.levelname == "ERROR"] == ["demur.observe"]
    assert "could not follow" in caplog.text


# --- The handler itself ---------------------------------------------------------------------------


def test_a_copy_is_the_handler_itself() -> None:
    handler = ScoreEventHandler(echo, sink=Records())
    assert copy.copy(handler) is handler
    assert copy.deepcopy({"handler": handler})["handler"] is handler
    assert handler.close(1)


def test_a_handler_that_is_closed_takes_in_nothing_more() -> None:
    records = Records()
    handler = ScoreEventHandler(echo, sink=records)
    assert handler.close(5)
    with added(handler):
        query_engine(RIGHT).query(QUESTION)
    assert not records.all
    assert handler.counts.dropped == 1


@pytest.mark.parametrize(
    ("evaluators", "options", "error", "message"),
    [
        ((RefCheckerEvaluator,), {}, TypeError, "expected an evaluator"),
        ((7,), {}, TypeError, "expected an evaluator.*got an int"),
        ((echo,), {"sample_rate": 1.5}, ValueError, "sample_rate must be in"),
        ((echo,), {"max_queue": 0}, ValueError, "max_queue must be at least 1"),
        ((echo,), {"on_full": "wait"}, ValueError, "on_full must be"),
        ((echo,), {"redact": "shred"}, ValueError, "redact"),
    ],
)
def test_what_it_does_not_take(
    evaluators: tuple[Any, ...], options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        ScoreEventHandler(*evaluators, sink=Records(), **options)


def test_it_is_one_of_llamaindexs_handlers() -> None:
    handler = ScoreEventHandler(sink=Records())
    assert handler.class_name() == "ScoreEventHandler"
    with added(handler):
        assert any(one is handler for one in get_dispatcher().event_handlers)
        query_engine(RIGHT).query(QUESTION)  # without an evaluator only guards are recorded
    assert handler.flush(5)
    assert handler.counts.recorded == 0
    assert speaker(RIGHT).metadata.model_name == "scripted"
