"""Test what is scored beside engines, and what the engines notice of it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import BaseMessage
from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.response.schema import Response
from llama_index.core.evaluation import (
    FaithfulnessEvaluator,
)
from llama_index.core.instrumentation.dispatcher import instrument_tags
from llama_index.core.schema import QueryBundle

from demur import Annotate, Evaluation, Sample
from demur.observe.log import open_log
from demur.observe.log import records as logged
from fake_llm import ScriptedLLM
from guarded_app import MODES, Said, ask, build, chat_engine, judge, query_engine
from llama_index.evaluation.demur.chat_engine import GuardedChatEngine
from llama_index.evaluation.demur.handler import ScoreEventHandler
from llama_index.evaluation.demur.query_engine import GuardedQueryEngine
from scored_app import SPEECH, added, listening, routed, settled
from support.handlers import Records, echo
from support.rag import FACTS, QUESTION, RIGHT, WRONG

# --- What is recorded -----------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_a_query_with_its_answer_its_nodes_and_its_cost(mode: str) -> None:
    with listening(judge()) as (handler, records):
        response = ask(mode, query_engine(WRONG))
        assert settled(handler)
    record = records.one
    assert (record.name, record.root, record.model) == ("query", record.id, "scripted")
    assert (record.question, record.answer) == (QUESTION, WRONG)
    assert record.answer == str(response)
    assert {one.page_content.splitlines()[-1] for one in record.contexts} <= {*FACTS}
    assert [one.id for one in record.contexts] == [one.node_id for one in response.source_nodes]
    assert {one.metadata["page"] for one in record.contexts} <= {*range(len(FACTS))}
    assert record.verdict == "failed"
    answering = record.attempts[0].usage
    assert (answering.calls, answering.output_tokens) == (1, len(WRONG.split()))
    assert answering.input_tokens > 10
    assert record.usage.calls == 3  # Two of the calls are the judge's.
    assert record.seconds > 0
    assert handler.counts.runs == handler.counts.recorded == 1


@pytest.mark.smoke
def test_a_log_can_be_opened(tmp_path: Path) -> None:
    path = tmp_path / "scores.sqlite"
    handler = ScoreEventHandler(judge(), sink=path)
    with added(handler):
        for answer in (RIGHT, WRONG):
            query_engine(answer).query(QUESTION)
    assert handler.close(30)
    with open_log(path) as log:
        runs = [*logged(log)]
    assert len(runs) == 2


# --- Which runs -----------------------------------------------------------------------------------


def test_of_a_router_the_outermost_query() -> None:
    with listening(echo) as (handler, records):
        routed().query(QUESTION)
        assert settled(handler)
    assert records.one.id == records.one.root
    assert records.one.contexts
    assert records.one.attempts[0].usage.calls == 2


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


def test_many_at_once() -> None:
    def script(stage: str, messages: Sequence[BaseMessage]) -> str:
        return "Good: " + str(messages[-1].content).split("Query: ")[1].split("\n")[0]

    llm = ScriptedLLM(script=script)
    engine = build(llm).as_query_engine(llm=llm)

    async def ask_all() -> None:
        await asyncio.gather(*(engine.aquery(f"number {at}") for at in range(30)))

    with listening(echo) as (handler, records):
        asyncio.run(ask_all())
        assert settled(handler)
    assert {one.answer for one in records.all} == {f"Good: number {at}" for at in range(30)}
    assert all(one.answer == f"Good: {one.question}" for one in records.all)
    assert {one.attempts[0].usage.calls for one in records.all} == {1}


# --- Runs of evaluators do not count --------------------------------------------------------------


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


# --- What the application notices -----------------------------------------------------------------


def test_what_raises_raises_and_is_counted() -> None:
    def script(*_: Any) -> str:
        raise ConnectionError("gone")

    llm = ScriptedLLM(script=script)
    engine = build(llm).as_query_engine(llm=llm)
    with listening(echo) as (handler, records):
        with pytest.raises(ConnectionError, match="gone"):
            ask("async", engine)
        assert settled(handler)
        assert not records.all
        assert (handler.counts.runs, handler.counts.unanswered) == (1, 1)
        # This call has the same context.
        assert str(query_engine(SPEECH).query(QUESTION)) == SPEECH
        assert settled(handler)
    assert records.one.answer == SPEECH


class Odd(BaseQueryEngine):
    """Return whatever the engine was made with."""

    def __init__(self, returned: Any) -> None:
        super().__init__(None)
        self.returned = returned

    def _query(self, query_bundle: QueryBundle) -> Any:
        return self.returned

    async def _aquery(self, query_bundle: QueryBundle) -> Any:
        return self.returned

    def _get_prompt_modules(self) -> Any:
        return {}


def test_a_response_that_cannot_be_read_is_recorded_as_undetermined(
    caplog: pytest.LogCaptureFixture,
) -> None:
    response = Response("said", source_nodes=[object()])  # type: ignore[list-item]  # it is wrong
    with listening(echo) as (handler, records):
        assert Odd(response).query(QUESTION) is response
        assert settled(handler)
    record = records.one
    assert (record.question, record.verdict) == (QUESTION, "undetermined")
    assert "cannot be read: AttributeError" in (record.evaluations[0].error or "")
    assert "cannot be scored" in caplog.text


def test_what_tells_nothing_is_told_by_a_guard_that_lets_all_through() -> None:
    chat = chat_engine("context", WRONG)
    watched = GuardedChatEngine(chat, judge(), on_fail=Annotate(note=""))
    # LlamaIndex emits no events for such an engine.
    silent = Said(script=lambda _: SPEECH)
    fixed = GuardedQueryEngine(silent, judge(), on_fail=Annotate(note=""))
    with listening() as (handler, records):
        silent.query(QUESTION)
        chat.chat(QUESTION)
        assert handler.counts.runs == 0
        assert watched.chat(QUESTION).response == WRONG
        assert str(fixed.query(QUESTION)) == SPEECH
        assert settled(handler)
    assert [one.answer for one in records.all] == [WRONG, SPEECH]
    # The second answer has no source.
    assert [one.verdict for one in records.all] == ["failed", "undetermined"]
    assert handler.counts.runs == 2


def test_what_goes_wrong_in_the_handler_is_told_in_the_log(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with listening(echo) as (handler, _):
        monkeypatch.setattr(handler._recorder, "put", None)
        assert str(query_engine(RIGHT).query(QUESTION)) == RIGHT
    assert [one.name for one in caplog.records if one.levelname == "ERROR"] == ["demur.observe"]
    assert "could not handle an event of LlamaIndex: TypeError" in caplog.text


# --- The handler itself ---------------------------------------------------------------------------


def test_what_it_does_not_take() -> None:
    with pytest.raises(TypeError, match=r"expected an evaluator.*got an int"):
        ScoreEventHandler(7, sink=Records())  # type: ignore[arg-type]  # what is refused
    with pytest.raises(ValueError, match="sample_rate must be in"):
        ScoreEventHandler(echo, sink=Records(), sample_rate=1.5)
