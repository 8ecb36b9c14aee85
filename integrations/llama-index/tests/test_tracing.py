"""Test what LangChain's tracers see of a guarded engine."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langchain_core.runnables import RunnableLambda
from langchain_core.tracers import BaseTracer
from langchain_core.tracers.schemas import Run

from demur import AnswerRejected, Block
from guarded_app import judge, query_engine
from llama_index.evaluation.demur.query_engine import GuardedQueryEngine
from support.rag import QUESTION, RIGHT, WRONG


class Tracer(BaseTracer):
    """Keep every run."""

    def __init__(self) -> None:
        super().__init__()
        self.runs: list[Run] = []

    def _persist_run(self, run: Run) -> None:
        """Do nothing when a root run ends."""

    def _end_trace(self, run: Run) -> None:
        super()._end_trace(run)
        self.runs.append(run)

    @property
    def failed(self) -> list[str]:
        """Return the failed runs, without cancelled judges of later sentences."""
        return [
            f"{run.name}: {run.error}"
            for run in self.runs
            if run.error and not (run.name == "RefChecker" and "CancelledError" in run.error)
        ]


def read(mode: str, engine: Any, tracer: Tracer, method: str = "query") -> str:
    """Ask for a streamed answer inside a LangChain runnable, and return its text."""

    def run(_: Any) -> str:
        return "".join(getattr(engine, method)(QUESTION).response_gen)

    async def arun(_: Any) -> str:
        response = await getattr(engine, f"a{method}")(QUESTION)
        return "".join([piece async for piece in response.async_response_gen()])

    asks = RunnableLambda(run, arun)
    if mode == "sync":
        return asks.invoke(None, {"callbacks": [tracer]})
    return asyncio.run(asks.ainvoke(None, {"callbacks": [tracer]}))


@pytest.mark.parametrize(
    ("mode", "streaming", "answers"),
    [
        ("sync", "buffer", (WRONG, RIGHT)),
        ("sync", "sentence", (f"{RIGHT} {WRONG} More.", RIGHT)),
        ("async", "sentence", (f"{RIGHT} {WRONG} More.", RIGHT)),
    ],
)
def test_no_run_of_a_streamed_answer_failed(
    mode: str, streaming: Any, answers: tuple[str, ...]
) -> None:
    """Include an answer that the guard ends before the engine has given all of it."""
    tracer = Tracer()
    engine = query_engine(*answers, streaming=True)
    guarded = GuardedQueryEngine(engine, judge(), streaming=streaming)
    assert read(mode, guarded, tracer).endswith(RIGHT)
    assert "demur:guard" in {run.name for run in tracer.runs}
    assert tracer.failed == []


def test_a_guard_that_raises_is_a_failed_run() -> None:
    tracer = Tracer()
    guarded = GuardedQueryEngine(query_engine(WRONG, streaming=True), judge(), on_fail=Block())
    with pytest.raises(AnswerRejected):
        read("sync", guarded, tracer)
    assert any("demur:guard" in one for one in tracer.failed)
