"""Test that texts of judges and providers, which may quote answers or keys, stay in the trace."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.messages import AIMessage

from demur import AnswerRejected, Block, EvaluatorFailed, Guard
from support.fakes import ScriptedModel
from support.guarded import Chain, Heard, traced
from support.words import CAUSES, JUDGES, KEY, SAID, quotes

ENDS: dict[str, dict[str, Any]] = {
    "refused": {},
    "raised": {"on_error": "raise", "on_fail": Block()},
    "blocked": {"on_fail": Block()},
}
OUTPUT = {"answer": AIMessage(SAID), "context": [Document("The tower is 84 metres tall.")]}


@pytest.mark.slow
@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("judge", JUDGES)
def test_no_client_reads_them(judge: str, end: str, caplog: pytest.LogCaptureFixture) -> None:
    told = Heard()
    config: Any = {"callbacks": [told]}
    left: Any
    with caplog.at_level(logging.DEBUG, "demur"), JUDGES[judge]() as evaluator:
        guard: Any = Guard(Chain(OUTPUT), evaluator, **ENDS[end])
        try:
            left = guard.invoke("How tall?", config)
        except (AnswerRejected, EvaluatorFailed) as error:
            left = (str(error), repr(error), error.args[0], error.trace.reason)
    assert not quotes(left)
    assert not quotes(told.events)
    assert not quotes(caplog.text)
    (trace,) = told.traces
    (found,) = trace.attempts[0].evaluations
    assert quotes(found.explanation)
    assert not quotes(trace.reason)
    if judge in CAUSES:
        assert trace.reason.endswith(f"{CAUSES[judge]})")
        (cause,) = {data["cause"] for name, data in told.events if name == "demur.evaluation"}
        assert (cause, cause.endswith(CAUSES[judge])) == (found.cause, True)


@pytest.mark.parametrize("judge", [name for name in JUDGES if name != "rejecting"])
def test_a_note_says_of_what_could_not_be_judged_the_kind_of_error_alone(judge: str) -> None:
    with JUDGES[judge]() as evaluator:
        chain = Chain({**OUTPUT, "answer": AIMessage("Tall.")})
        guard: Any = Guard(chain, evaluator, on_fail="annotate")
        left = guard.invoke("How tall?")["answer"]
    assert left.text.startswith("Tall.\n\n")
    assert "could not decide about it" in left.text
    assert not quotes(left)


def test_so_it_is_of_a_repair_that_fails() -> None:
    def refuse(stage: str, messages: Any) -> str:
        raise PermissionError(f"who sent {messages[-1].text[-150:]}, and {KEY}?")

    model = ScriptedModel(script=refuse)
    with JUDGES["rejecting"]() as evaluator:
        found = traced(Guard(Chain(OUTPUT), evaluator, model=model))
    assert found.trace.reason == "the answer could not be repaired (PermissionError)"
    assert quotes(found.trace.error)
    assert not quotes(found.output)


async def test_streamed_events_have_none_of_them() -> None:
    for judge in JUDGES:
        with JUDGES[judge]() as evaluator:
            guard: Any = Guard(Chain(OUTPUT), evaluator)
            events = [one async for one in guard.astream_events("How tall?", version="v2")]
        assert not quotes(events), judge
        assert {one["event"] for one in events} >= {"on_chain_end", "on_custom_event"}
