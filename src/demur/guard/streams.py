"""Stream an answer by sentences: each leaves once accepted, while later ones are being generated.

A client follows the stream by these rules. The text T is empty at first. A chunk with text appends
to T. The event `demur.replace` cuts T to its first `keep` characters, and takes back the values of
the keys in `keys`. At the end, T is the answer that `invoke` would have returned.

`StreamedAnswer` knows what to judge and what may leave, and never waits. `stream` and `astream` do
the waiting: whatever happens arrives in one queue, as a call to a method of the streamed answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Iterator, Mapping
from functools import partial, reduce
from queue import SimpleQueue
from typing import Any, TypeAlias

from langchain_core.runnables import RunnableConfig

from demur.guard.arguments import GuardArguments
from demur.guard.call import GuardedCall
from demur.guard.streamed import Leaving, StreamedAnswer
from demur.runtime import adrive, drive, in_background, take, within_scope
from demur.schema import Sample
from demur.shapes import added

Happening: TypeAlias = Callable[[], None]
"""A call that tells the streamed answer what happened."""


# --- In threads ----------------------------------------------------------------------------------


def stream(
    guard: GuardArguments[Any, Any],
    inputs: Iterator[Any],
    kwargs: Mapping[str, Any],
    config: RunnableConfig,
) -> Iterator[Any]:
    """Stream a guarded call. The chain and the evaluators run in other threads.

    Args:
        guard: The guard.
        inputs: The chain's input, in chunks.
        kwargs: Further arguments for the chain.
        config: The config of the guard's run.
    """
    chunks = list(inputs)
    if not chunks:
        return
    streamed = StreamedAnswer(call := GuardedCall(guard, reduce(added, chunks), kwargs))
    inbox: SimpleQueue[Happening] = SimpleQueue()

    def begin(work: Callable[[], Happening | None]) -> None:
        in_background(partial(_deliver, inbox, work))

    begin(partial(_read, streamed, config, inbox))
    try:
        while not streamed.settled:
            take(inbox)()
            for at, sample in streamed.to_judge():
                begin(partial(_judge, streamed, at, sample, config))
            yield from streamed.leaving()
        streamed.over = True
        with within_scope(call.scope):
            rest, _ = drive(streamed.finish(), config, None)
        for item in rest:
            if isinstance(item, Leaving):
                yield item.chunk
            else:
                item.tell(config)
    finally:
        streamed.over = True  # a blocking call cannot be stopped, but no new one begins


def _read(
    streamed: StreamedAnswer, config: RunnableConfig, inbox: SimpleQueue[Happening]
) -> Happening | None:
    chain = streamed.chain
    with chain.running(config) as inner:
        chunks = chain.chain.stream(chain.input, inner, **chain.kwargs)
        for chunk in chunks:
            if streamed.over:
                if isinstance(chunks, Generator):
                    chunks.close()
                return None
            inbox.put(partial(streamed.feed, chunk))
    return streamed.end


def _judge(
    streamed: StreamedAnswer, at: int, sample: Sample, config: RunnableConfig
) -> Happening | None:
    if streamed.over:
        return None
    with within_scope(streamed.call.scope):
        evaluations, _ = drive(streamed.judge(sample), config, None)
    return partial(streamed.judged, at, evaluations)


def _deliver(inbox: SimpleQueue[Happening], work: Callable[[], Happening | None]) -> None:
    """Do some work, and put its result or its error into the queue."""
    try:
        event = work()
    except BaseException as error:
        event = partial(_throw, error)
    if event is not None:
        inbox.put(event)


def _throw(error: BaseException) -> None:
    raise error


# --- In tasks ------------------------------------------------------------------------------------


async def astream(
    guard: GuardArguments[Any, Any],
    inputs: AsyncIterator[Any],
    kwargs: Mapping[str, Any],
    config: RunnableConfig,
) -> AsyncIterator[Any]:
    """Do the same as `stream`, in tasks of the running loop. No task is left when it ends."""
    chunks = [chunk async for chunk in inputs]
    if not chunks:
        return
    streamed = StreamedAnswer(call := GuardedCall(guard, reduce(added, chunks), kwargs))
    inbox: asyncio.Queue[Happening] = asyncio.Queue()
    tasks: set[asyncio.Task[None]] = set()

    def begin(work: Callable[[], Coroutine[Any, Any, Happening]]) -> None:
        tasks.add(asyncio.create_task(_adeliver(streamed, inbox, work)))

    begin(partial(_aread, streamed, config, inbox))
    try:
        while not streamed.settled:
            (await inbox.get())()
            for at, sample in streamed.to_judge():
                begin(partial(_ajudge, streamed, at, sample, config))
            for chunk in streamed.leaving():
                yield chunk
        streamed.over = True
        await _stop(tasks)
        with within_scope(call.scope):
            rest, _ = await adrive(streamed.finish(), config, None)
        for item in rest:
            if isinstance(item, Leaving):
                yield item.chunk
            else:
                await item.atell(config)
    finally:
        streamed.over = True
        await _stop(tasks)


async def _aread(
    streamed: StreamedAnswer, config: RunnableConfig, inbox: asyncio.Queue[Happening]
) -> Happening:
    chain = streamed.chain
    with chain.running(config) as inner:
        chunks = chain.chain.astream(chain.input, inner, **chain.kwargs)
        async for chunk in chunks:
            inbox.put_nowait(partial(streamed.feed, chunk))
    return streamed.end


async def _ajudge(
    streamed: StreamedAnswer, at: int, sample: Sample, config: RunnableConfig
) -> Happening:
    with within_scope(streamed.call.scope):
        evaluations, _ = await adrive(streamed.judge(sample), config, None)
    return partial(streamed.judged, at, evaluations)


async def _adeliver(
    streamed: StreamedAnswer,
    inbox: asyncio.Queue[Happening],
    work: Callable[[], Coroutine[Any, Any, Happening]],
) -> None:
    try:
        event = await work()
    except BaseException as error:
        if streamed.over:  # the error of a stopped task would hold on to the chain's streams
            return
        event = partial(_throw, error)
    inbox.put_nowait(event)


async def _stop(tasks: set[asyncio.Task[None]]) -> None:
    """Cancel tasks, and wait until they have ended."""
    running = [task for task in tasks if not task.done()]
    for task in running:
        task.cancel()
    if running:  # a loop that shuts down closes generators side by side; none may wait for another
        await asyncio.wait(running)
    tasks.clear()
