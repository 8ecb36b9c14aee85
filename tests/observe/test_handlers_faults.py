"""Test chains that fail, are left, or run in crowds: every answer is recorded once, at its run."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import random
import threading
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langchain_core.runnables import (
    Runnable,
    RunnableGenerator,
    RunnableLambda,
    RunnableParallel,
    RunnablePassthrough,
)

from demur import Evaluation, Sample
from support.handlers import Library, echo, handler_for, nothing_left, rag, run
from support.waiting import PATIENCE, until

# --- What goes wrong ------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["invoke", "astream", "abatch"])
def test_a_chain_that_raises_leaves_nothing_behind(mode: str) -> None:
    def broken(_: Any) -> str:
        raise ValueError("no")

    handler, records = handler_for(echo)
    chain = RunnablePassthrough() | RunnableParallel(a=RunnableLambda(broken), b=rag())
    with pytest.raises(ValueError, match="no"):
        run(mode, chain, "q", handler)
    until(lambda: nothing_left(handler))  # The other branch goes on for a while.
    assert not records.all
    assert handler.counts.unanswered == 1


def test_a_stream_that_is_closed_early() -> None:
    def words(_: Iterator[Any]) -> Iterator[str]:
        yield from ("a good ", "answer ", "that goes on")

    handler, records = handler_for(echo)
    stream = RunnableGenerator(words).stream("q", {"callbacks": [handler]})
    assert next(stream) == "a good "
    assert next(stream) == "answer "
    stream.close()  # type: ignore[attr-defined]  # it is a generator
    handler.flush(30)
    # LangChain does not report the chunk that was read last.
    assert records.one.answer == "a good "
    stream = RunnableGenerator(words).stream("q", {"callbacks": [handler]})
    next(stream)
    stream.close()  # type: ignore[attr-defined]  # it is a generator
    handler.flush(30)
    assert len(records.all) == handler.counts.unanswered == 1
    assert nothing_left(handler)


async def test_a_run_that_is_cancelled() -> None:
    begun = asyncio.Event()

    async def slow(_: Any) -> None:
        begun.set()
        await asyncio.Event().wait()

    handler, records = handler_for(echo)
    chain = RunnablePassthrough() | RunnableLambda(slow)
    task = asyncio.create_task(chain.ainvoke("q", {"callbacks": [handler]}))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.to_thread(handler.flush, 30)
    assert nothing_left(handler)
    assert not records.all


def test_streams_that_are_never_closed_do_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("demur.observe.runs._MOST_OPEN", 50)

    def words(_: Iterator[Any]) -> Iterator[str]:
        yield from ("a", "b")

    handler, _ = handler_for(echo)
    streams = [RunnableGenerator(words).stream("q", {"callbacks": [handler]}) for _ in range(80)]
    for stream in streams:
        next(stream)
    assert handler.counts.given_up == 30


@pytest.mark.slow
@pytest.mark.parametrize("where", ["runs", "backlog"])
def test_a_stream_that_is_garbage_may_end_at_any_time(where: str) -> None:
    """Let the stream end even while its handler works in the same thread."""

    def words(_: Iterator[Any]) -> Iterator[str]:
        yield from ("good", "b", "c")

    handler, records = handler_for(echo)
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
    assert [record.answer for record in records.all] == ["good"]
    assert nothing_left(handler)


def test_a_sync_chain_in_a_coroutine_does_not_wait_for_ever() -> None:
    async def ajudge(sample: Sample) -> Evaluation:
        await asyncio.sleep(0.01)
        return echo(sample)

    handler, records = handler_for(RunnableLambda(echo, ajudge), on_full="block", max_queue=2)
    chain: Runnable[Any, Any] = RunnableLambda(lambda _: "good")

    async def app() -> None:
        config: Any = {"callbacks": [handler]}
        for _ in range(6):
            await chain.ainvoke("q", config)
        for _ in range(6):
            chain.invoke("q", config)
        await asyncio.gather(*(asyncio.to_thread(chain.invoke, "q", config) for _ in range(40)))
        assert await asyncio.to_thread(handler.flush, 30)

    thread = threading.Thread(target=lambda: asyncio.run(app()), daemon=True)
    thread.start()
    thread.join(PATIENCE)
    assert not thread.is_alive()
    assert len({record.id for record in records.all}) == 52


def test_a_graph_that_is_interrupted_and_resumed() -> None:
    graphs = pytest.importorskip("langgraph.graph")
    types = pytest.importorskip("langgraph.types")
    memory = pytest.importorskip("langgraph.checkpoint.memory")

    def answer(state: Any) -> Any:
        said = types.interrupt("May I?")
        return {"messages": [AIMessage(f"good, since {said}")]}

    builder = graphs.StateGraph(graphs.MessagesState)
    builder.add_node("answer", answer)
    builder.add_edge(graphs.START, "answer")
    builder.add_edge("answer", graphs.END)
    graph = builder.compile(checkpointer=memory.InMemorySaver())
    handler, records = handler_for(echo)
    for question in ("first", "second"):
        for given in ({"messages": [("user", question)]}, types.Command(resume=question)):
            run("stream", graph, given, handler, configurable={"thread_id": "1"})
    said = [(record.question, record.answer) for record in records.all]
    assert said == [("first", "good, since first"), ("second", "good, since second")]
    assert handler.counts.unanswered == 2
    assert nothing_left(handler)


# --- Many -----------------------------------------------------------------------------------------


@pytest.mark.slow
async def test_every_score_belongs_to_its_run() -> None:
    """Run nested, parallel, streamed and failing chains at once, in threads and in tasks."""
    dice = random.Random(1)
    leaf: Runnable[Any, Any] = RunnableLambda(lambda given: {"text": "step"})

    def chain_for(number: int, depth: int = 3) -> Runnable[Any, Any]:
        parts: list[Runnable[Any, Any]] = []
        for _ in range(dice.randint(1, 3)):
            if depth and dice.random() < 0.5:
                branches = {f"b{i}": chain_for(number, depth - 1) for i in range(2)}
                parts.append(RunnableParallel(**branches))
            else:
                parts.append(leaf)
        chain = parts[0]
        for part in parts[1:]:
            chain = chain | part
        return chain

    def whole(number: int) -> Runnable[Any, Any]:
        def end(_: Any) -> str:
            if number % 7 == 3:
                raise ValueError("no")
            return f"good {number}"

        return chain_for(number) | {"x": Library(texts=(f"text {number}",))} | RunnableLambda(end)

    handler, records = handler_for(echo, max_queue=10**6)
    numbers = range(40)
    chains = [whole(number) for number in numbers]
    ids = [uuid.UUID(int=dice.getrandbits(128)) for _ in numbers]

    async def one(number: int) -> None:
        chain, question = chains[number], f"q{number}"
        config: Any = {"callbacks": [handler], "run_id": ids[number]}
        with contextlib.suppress(ValueError):
            if number % 4 == 0:
                await asyncio.to_thread(chain.invoke, question, config)
            elif number % 4 == 1:
                await asyncio.to_thread(lambda: [*chain.stream(question, config)])
            elif number % 4 == 2:
                await chain.ainvoke(question, config)
            else:
                async for _ in chain.astream(question, config):
                    pass

    await asyncio.gather(*map(one, numbers))
    assert await asyncio.to_thread(handler.flush, 60)
    expected = {str(ids[n]): f"q{n}|good {n}|{[f'text {n}']}" for n in numbers if n % 7 != 3}
    found = {record.id: record.evaluations[0].explanation for record in records.all}
    assert found == expected
    assert len(records.all) == len(expected)
    assert nothing_left(handler)
