"""Test that the findings of guarded engines are recorded as they are, and not scored again."""

from __future__ import annotations

import pytest

from demur import AnswerRejected, Block
from demur.observe import Record
from guarded_app import ask, chat_engine, judge, query_engine, read
from llama_index.evaluation.demur.chat_engine import GuardedChatEngine
from llama_index.evaluation.demur.query_engine import GuardedQueryEngine
from scored_app import listening, routed, settled
from support.handlers import echo
from support.rag import QUESTION, RIGHT, WRONG


def verdicts(record: Record) -> list[str]:
    return [attempt.verdict for attempt in record.attempts]


@pytest.mark.parametrize("streaming", [False, True])
def test_a_guarded_query(streaming: bool) -> None:
    guarded = GuardedQueryEngine(query_engine(WRONG, RIGHT, streaming=streaming), judge())
    with listening(echo) as (handler, records):
        answer = (read("async", guarded)[1] if streaming else ask("sync", guarded)).response
        assert settled(handler)
    record = records.one
    assert (record.name, record.outcome) == ("guard", "recovered")
    assert verdicts(record) == ["failed", "passed"]
    assert record.answer == answer == RIGHT
    assert {one.name for one in record.evaluations} == {"RefChecker"}
    assert handler.counts.runs == handler.counts.recorded == 1


def test_a_guarded_chat() -> None:
    guarded = GuardedChatEngine(chat_engine("context", WRONG, RIGHT), judge())
    with listening(echo) as (handler, records):
        answer = "".join(guarded.stream_chat(QUESTION).response_gen)
        assert settled(handler)
    record = records.one
    assert (record.name, record.outcome) == ("guard", "recovered")
    assert verdicts(record) == ["failed", "passed"]
    assert record.answer == answer == RIGHT


def test_one_that_blocks_is_recorded_and_raises() -> None:
    engine = query_engine(WRONG)
    guarded = GuardedQueryEngine(engine, judge(), on_fail=Block())
    with listening(echo) as (handler, records):
        with pytest.raises(AnswerRejected):
            str(guarded.query(QUESTION))
        assert settled(handler)
    assert records.one.outcome == "blocked"
    assert verdicts(records.one) == ["failed"]
    assert not handler.counts.unanswered


def test_inside_an_engine_it_is_a_record_of_its_own() -> None:
    guarded = GuardedQueryEngine(query_engine(WRONG, RIGHT), judge())
    with listening(echo) as (handler, records):
        assert str(routed(guarded).query(QUESTION)) == RIGHT
        assert settled(handler)
    record = records.one
    assert (record.name, record.outcome) == ("guard", "recovered")
    assert handler.counts.runs == 1


def test_the_query_of_a_guarded_chat_is_left_to_its_guard() -> None:
    """Ask a condensing engine; the guard of the chat judges its query engine's answer."""
    guarded = GuardedChatEngine(chat_engine("condense_question", RIGHT), judge())
    with listening(echo) as (handler, records):
        guarded.chat(QUESTION)
        assert settled(handler)
    assert (records.one.name, records.one.outcome) == ("guard", "passed")
    assert handler.counts.runs == 1


def test_a_guard_s_stream_that_is_left_has_no_outcome_and_no_record() -> None:
    guarded = GuardedQueryEngine(
        query_engine(f"{RIGHT} It was opened in 1911.", streaming=True),
        judge(),
        streaming="sentence",
    )
    with listening(echo) as (handler, records):
        stream = guarded.query(QUESTION).response_gen
        assert next(stream).strip() == RIGHT
        stream.close()
        assert settled(handler)
    assert not records.all
