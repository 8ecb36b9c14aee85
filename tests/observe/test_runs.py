"""Test which run an event belongs to, with repeated ids, lost parents and interrupts."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from typing import Any
from uuid import UUID, uuid4

import pytest
from langchain_core.documents import Document
from langchain_core.runnables import RunnableGenerator

from demur import Evaluation, ScoreCallbackHandler
from demur.observe.reading import Readers
from demur.observe.runs import Runs
from support.waiting import PATIENCE


@pytest.fixture
def runs() -> Runs:
    return Runs(Readers())


def begin(runs: Runs, parent: UUID | None = None, input: Any = "q", **about: Any) -> UUID:
    run_id = uuid4()
    runs.start(input, run_id=run_id, parent_run_id=parent, answers=True, **about)
    return run_id


def test_an_id_that_comes_again_is_a_new_run(runs: Runs) -> None:
    run_id = uuid4()
    for _ in range(2):
        runs.start("q", run_id=run_id, answers=True)
        inner = uuid4()
        capture = runs.start("q", run_id=inner, parent_run_id=run_id, answers=False)
        assert capture is not None
        capture.on_retriever_start(None, "q", run_id=inner, parent_run_id=run_id)
        capture.on_retriever_end([Document("text")], run_id=inner)
        runs.end(inner, [])
        assert runs.start("q", run_id=run_id, answers=True) is not None  # It is told of twice.
        finished = runs.end(run_id, "good")
        assert finished is not None
        assert [document.page_content for document in finished.said.contexts] == ["text"]
        assert runs.end(run_id, "good") is None
    assert runs.tally.runs == 2
    assert not len(runs)


def test_what_begins_after_the_run_around_it_is_none_of_its_own(runs: Runs) -> None:
    root = begin(runs)
    step = begin(runs, root)
    runs.end(step, "x")
    late = begin(runs, step)  # This is how a thread begins a run that the step has started.
    assert runs.end(late, "late") is None
    assert runs.end(root, "good") is not None
    assert runs.end(begin(runs, step), "later") is None
    assert runs.tally.runs == 1
    assert not len(runs)


def test_what_is_inside_a_run_that_was_given_up_is_none_of_its_own(
    runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("demur.observe.runs._MOST_OPEN", 3)
    first = begin(runs)
    inside = begin(runs, first)
    others = [begin(runs) for _ in range(3)]
    assert runs.tally.given_up == 1
    for parent in (first, inside):
        assert runs.end(begin(runs, parent), "inner") is None
    assert runs.end(first, "good") is None
    assert sum(runs.end(other, "good") is not None for other in others) >= 2


def test_metadata_that_json_cannot_hold_is_left_out(runs: Runs) -> None:
    given = {"nan": float("nan"), "inf": float("inf"), "huge": 10**5000, "x": object(), "n": None}
    run_id = begin(runs, metadata={**given, "big": 2**62, "yes": True, 5: 0.5})
    finished = runs.end(run_id, "good")
    assert finished is not None
    assert finished.about.metadata == {"n": None, "big": 2**62, "yes": True, "5": 0.5}


def test_a_graph_that_asks_a_person_has_not_answered(runs: Runs) -> None:
    """Count no answer, although the graph ends with the answer to the previous question."""

    class GraphInterrupt(Exception):  # noqa: N818  # as langgraph names it
        pass

    class NodeInterrupt(GraphInterrupt):
        pass

    graph = begin(runs)
    inner = begin(runs, begin(runs, graph))
    assert runs.fail(inner, NodeInterrupt()) is None
    assert runs.end(graph, {"answer": "old"}) is not None  # The graph caught the interrupt itself.
    graph = begin(runs)
    assert runs.fail(begin(runs, graph), GraphInterrupt()) is None
    assert runs.end(graph, {"answer": "old"}) is None
    assert runs.tally.unanswered == 1
    graph = begin(runs)
    # This is how a run fails before its fallback.
    assert runs.fail(begin(runs, graph), ValueError()) is None
    assert runs.end(graph, {"answer": "new"}) is not None


@pytest.mark.slow
@pytest.mark.parametrize("where", ["runs", "backlog"])
def test_a_stream_that_is_garbage_may_end_at_any_time(where: str) -> None:
    """Let the stream end even while its handler works in the same thread."""

    def words(_: Iterator[Any]) -> Iterator[str]:
        yield from ("good", "b", "c")

    def judge(sample: Any) -> Evaluation:
        return Evaluation(name="judge", score=1.0, passed=True)

    answers: list[str] = []
    handler = ScoreCallbackHandler(judge, sink=lambda record: answers.append(record.answer))
    lock: Any = handler._runs._lock if where == "runs" else handler._recorder._backlog._changed

    def abandon() -> None:
        stream = RunnableGenerator(words).stream("q", {"callbacks": [handler]})
        assert [next(stream), next(stream)] == ["good", "b"]
        cycle: list[Any] = [stream]
        cycle.append(cycle)

    def collect() -> None:
        abandon()
        with lock:
            gc.collect()

    thread = threading.Thread(target=collect, daemon=True)
    thread.start()
    thread.join(PATIENCE)
    assert not thread.is_alive()
    assert handler.flush(PATIENCE)
    assert answers == ["good"]
    assert not len(handler._runs)
