"""Test what all sinks for traces share, with a system that only takes down what it is given."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID

import pytest
from langchain_core.runnables import RunnableLambda

from demur import ScoreCallbackHandler
from demur._system import once_a_minute
from demur.observe import Record, TraceLink
from demur.observe.sinks.traces import TraceScore, TraceSink
from support import records
from support.handlers import Records, echo, rag


class Noted(TraceSink):
    """Note what is sent, and call a function whenever a run is to be found."""

    system, advice = "noted", "attach it"

    def __init__(self, locating: Callable[[], object] = lambda: None) -> None:
        self.sent: list[Sequence[TraceScore]] = []
        self._locating = locating

    def locate(self, run_id: UUID, beside: Sequence[Any] | None) -> TraceLink | None:
        self._locating()
        return TraceLink(system=self.system, trace_id=str(run_id))

    def send(self, link: TraceLink, scores: Sequence[TraceScore], record: Record) -> None:
        self.sent.append(scores)

    def page(self, link: TraceLink) -> str | None:
        return None


def test_other_threads_are_not_held_up_while_a_run_is_located() -> None:
    waited: list[bool] = []

    def elsewhere() -> None:
        if threading.current_thread().name != "elsewhere":
            call = {"config": {"callbacks": [handler]}}
            other = threading.Thread(target=step.invoke, args=["?"], kwargs=call, name="elsewhere")
            other.start()
            other.join(5)
            waited.append(other.is_alive())

    handler, step = ScoreCallbackHandler(echo, sink=Noted(elsewhere)), RunnableLambda(str)
    (step | step).invoke("Why?", config={"callbacks": [handler]})
    handler.close()
    assert waited
    assert not any(waited)


def test_a_system_that_fails_to_find_a_run_does_not_disturb_the_chain(
    caplog: pytest.LogCaptureFixture,
) -> None:
    once_a_minute._logged.clear()
    sink, kept = Noted(lambda: {}["lost"]), Records()
    handler = ScoreCallbackHandler(echo, sink=[sink, kept])
    rag().invoke("Why?", config={"callbacks": [handler]})
    handler.close()
    assert (kept.one.traces, sink.sent) == ((), [])
    assert "cannot find a trace: KeyError" in caplog.text


def test_a_record_without_evaluations_has_nothing_to_send() -> None:
    link, sink = TraceLink(system="noted", trace_id="1"), Noted()
    for record in (records.run(records.attempt()), records.scored()):
        sink.write(record.model_copy(update={"traces": (link,)}))
    assert [len(scores) for scores in sink.sent] == [1]
