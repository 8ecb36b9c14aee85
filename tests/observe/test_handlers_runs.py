"""Test which runs handlers take: by name, by tag, by share, and runs with guards inside."""

from __future__ import annotations

import random
from typing import Any
from uuid import UUID

import pytest
from langchain_core.runnables import RunnableLambda

from demur import Abstain, AnswerRejected, Block, Evaluation, Guard, Sample
from support.handlers import Library, echo, handler_for, nothing_left, rag, run

# --- Which runs -----------------------------------------------------------------------------------


def test_runs_by_name_and_by_tag() -> None:
    inner = RunnableLambda(lambda _: "good inner").with_config(run_name="answer", tags=["a"])
    chain = RunnableLambda(lambda given: given) | inner | (lambda text: f"{text}, wrapped")
    for wanted in ({"names": "answer"}, {"tags": ["a", "b"]}):
        handler, records = handler_for(echo, **wanted)
        run("invoke", chain, "q", handler)
        assert records.one.answer == "good inner"
        assert records.one.name == "answer"
        assert records.one.root != records.one.id
        assert nothing_left(handler)


def test_of_runs_with_the_tag_only_the_outermost() -> None:
    handler, records = handler_for(echo, tags="wanted")
    # LangChain passes the tag to all inner runs.
    run("invoke", rag(), "q", handler, tags=["wanted"])
    assert records.one.id == records.one.root


def test_sampling_takes_the_same_runs_in_every_handler_with_their_guards() -> None:
    made = [handler_for(echo, sample_rate=rate) for rate in (0.3, 0.3, 0.6, 0)]
    guard: Guard[Any, Any] = Guard(RunnableLambda(lambda _: "good"), echo)
    for number in range(100):
        run_id = UUID(int=random.Random(number).getrandbits(128))
        guard.invoke("q", {"callbacks": [handler for handler, _ in made], "run_id": run_id})
    for handler, _ in made:
        handler.flush(30)
    some, same, more, none = ({record.id for record in records.all} for _, records in made)
    assert some == same < more
    assert none == set()
    assert 15 < len(some) < 45
    for handler, records in made:
        assert handler.counts.unsampled == 100 - len(records.all)
        assert nothing_left(handler)


# --- Guards ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["invoke", "ainvoke", "stream"])
def test_a_guards_scores_are_recorded_and_not_scored_again(mode: str) -> None:
    asked: list[str] = []

    def judge(sample: Sample) -> Evaluation:
        asked.append(sample.answer)
        return echo(sample)

    chain = RunnableLambda(lambda _: "bad" if len(asked) < 1 else "good")
    guard: Guard[Any, Any] = Guard(chain, judge)
    wrapped = RunnableLambda(lambda given: given) | guard | (lambda text: f"{text}!")
    handler, records = handler_for(judge)
    run(mode, wrapped, "How tall?", handler)
    record = records.one
    assert [attempt.answer for attempt in record.attempts] == ["bad", "good"]
    assert asked == ["bad", "good"]
    assert (record.outcome, record.verdict) == ("recovered", "passed")
    assert record.attempts[0].verdict == "failed"
    assert record.root != record.id
    assert record.usage.calls == 4
    assert record.question == "How tall?"
    assert nothing_left(handler)


@pytest.mark.parametrize("mode", ["batch", "astream"])
def test_a_guard_that_lets_nothing_through(mode: str) -> None:
    handler, records = handler_for(echo)
    guard: Guard[Any, Any] = Guard(RunnableLambda(lambda _: "bad"), echo, on_fail=Block())
    with pytest.raises(AnswerRejected):
        run(mode, guard, "q", handler)
    handler.flush(30)
    assert records.one.outcome == "blocked"
    assert records.one.answer == "bad"
    assert nothing_left(handler)


def test_a_guard_whose_chain_raises_in_the_second_attempt() -> None:
    asked: list[int] = []

    def answer(_: Any) -> str:
        asked.append(1)
        if len(asked) == 2:
            raise ConnectionError("away")
        return "bad"

    handler, records = handler_for(echo)
    with pytest.raises(ConnectionError):
        Guard(RunnableLambda(answer), echo).invoke("q", {"callbacks": [handler]})
    handler.flush(30)
    (found,) = records.one.evaluations
    assert (found.name, found.passed, records.one.outcome) == ("echo", False, None)
    assert "did not come to its end" in str(records.one.reason)
    assert records.one.attempts[0].question == "q"
    assert nothing_left(handler)


def test_a_guard_inside_a_guard() -> None:
    inner: Guard[Any, Any] = Guard(RunnableLambda(lambda _: "bad"), echo, on_fail=Abstain("No."))
    handler, records = handler_for(echo)
    run("invoke", Guard(inner, echo), "q", handler)
    assert sorted(str(record.outcome) for record in records.all) == ["abstained", "abstained"]
    assert len({record.id for record in records.all}) == 2
    assert len({record.root for record in records.all}) == 1


@pytest.mark.parametrize("mode", ["invoke", "astream"])
def test_what_takes_the_place_of_a_guard_that_failed_is_scored(mode: str) -> None:
    guard: Guard[Any, Any] = Guard(RunnableLambda(lambda _: "bad"), echo, on_fail=Block())
    chain = guard.with_fallbacks([{"context": Library()} | RunnableLambda(lambda _: "good")])
    handler, records = handler_for(echo)
    run(mode, chain, "q", handler)
    judged, scored = sorted(records.all, key=lambda record: record.answer)
    assert (judged.answer, judged.outcome) == ("bad", "blocked")
    assert scored.evaluations[0].explanation == f"q|good|{[Library().texts[0]]}"
    # LangChain gives no parent to the runs inside a fallback.
    assert judged.root == scored.root == scored.id
    assert (handler.counts.runs, handler.counts.unanswered) == (1, 0)
    assert nothing_left(handler)
