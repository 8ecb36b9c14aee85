"""Test that streams let out nothing rejected, and leave nothing running without a reader."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import pytest
from allpairspy import AllPairs
from langchain_core.messages import AIMessageChunk
from langchain_core.runnables import Runnable, RunnableLambda
from langchain_core.runnables.utils import AddableDict

from demur import (
    Evaluation,
    Guard,
    Sample,
)
from support.streams import (
    GOOD,
    ByClaims,
    Client,
    Telling,
    by_sentences,
    by_words,
    guard,
)
from support.waiting import NEVER, auntil, await_, until

# --- What does not leave -------------------------------------------------------------------------

SECRET = "ЖЖЖ ФФФ bad ЩЩЩ. ЮЮЮ ЦЦЦ ДДД."
"""A rejected text, whose Cyrillic letters are nowhere else."""
RUNS = (f"One is good. {SECRET}", f"One is fine. {SECRET}", "All is well. Quite so.")


def leaked(received: str) -> set[str]:
    return {letter for letter in received if "\u0400" <= letter <= "\u04ff"}


async def _astream(runnable: Runnable[Any, Any]) -> list[Any]:
    return [chunk async for chunk in runnable.astream("why?")]


async def _atransform(runnable: Runnable[Any, Any]) -> list[Any]:
    async def given() -> Any:
        yield "why"
        yield "?"

    return [chunk async for chunk in runnable.atransform(given())]


async def _astream_events(runnable: Runnable[Any, Any]) -> list[Any]:
    """Return the chunks of the outermost run's events only."""
    return [
        event["data"].get("chunk", "")
        async for event in runnable.astream_events("why?", version="v2")
        if not event["parent_ids"]
    ]


async def _all_events(runnable: Runnable[Any, Any]) -> list[Any]:
    events = runnable.astream_events("why?", version="v2")
    return [event["data"] async for event in events if event["event"] != "on_custom_event"]


WAYS: dict[str, Callable[[Runnable[Any, Any]], Sequence[Any]]] = {
    "stream": lambda runnable: list(runnable.stream("why?")),
    "transform": lambda runnable: list(runnable.transform(iter(["why", "?"]))),
    "invoke": lambda runnable: [runnable.invoke("why?")],
    "astream": lambda runnable: asyncio.run(_astream(runnable)),
    "atransform": lambda runnable: asyncio.run(_atransform(runnable)),
    "astream_events": lambda runnable: asyncio.run(_astream_events(runnable)),
    "all_events": lambda runnable: asyncio.run(_all_events(runnable)),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("way", "shape", "streaming"),
    [*AllPairs([[*WAYS], ["text", "message", "mapping", "sequence"], ["sentence", "buffer"]])],
)
def test_no_character_of_a_rejected_sentence_is_let_out(
    shape: str, streaming: str, way: str
) -> None:
    runs: list[Any] = [by_words(run) for run in RUNS]
    if shape == "message":
        runs = [[AIMessageChunk(word, id="1") for word in run] for run in runs]
    if shape == "mapping":
        runs = [[{"context": []}, *(AddableDict(answer=word) for word in run)] for run in runs]
    chain = Telling(*runs)
    guarded: Runnable[Any, Any] = guard(chain, streaming=streaming)
    if shape == "sequence":
        guarded = RunnableLambda(str) | guarded | RunnableLambda(lambda answer: answer)
    received = str(WAYS[way](guarded))
    assert not leaked(received)
    assert "All is well. Quite so." in received
    assert len(chain.inputs) == 3


@pytest.mark.parametrize("way", ["stream", "transform", "astream", "atransform", "astream_events"])
def test_what_is_accepted_leaves_by_sentences_in_every_way(way: str) -> None:
    received = WAYS[way](guard(Telling(GOOD)))
    assert [chunk for chunk in received if chunk] == by_sentences(GOOD)


@pytest.mark.parametrize("way", WAYS)
def test_the_bare_chain_lets_it_out(way: str) -> None:
    """Show that the test above can fail."""
    assert leaked(str(WAYS[way](RunnableLambda(str) | Telling(*RUNS))))


# --- Errors, and clients that leave --------------------------------------------------------------


def test_what_a_chain_raises_comes_out(mode: str) -> None:
    got = threading.Event()
    error = RuntimeError("the model is away")
    chain = Telling(["One is good.", " Two is", error])
    chain.hold = lambda chunk: got if chunk is error else None
    client = Client()
    client.on_text = lambda text: got.set()
    with pytest.raises(RuntimeError, match="the model is away"):
        client.read(guard(chain), "why?", mode)
    assert client.received == "One is good."
    assert chain.under_way == 0


def test_a_reader_that_stops_stops_the_chain() -> None:
    chain = Telling(GOOD)
    got = threading.Event()
    chain.hold = lambda chunk: got if chunk == "  Three" else None
    stream = guard(chain).stream("why?")
    assert next(stream) == "One is good."
    stream.close()
    got.set()
    until(lambda: chain.under_way == 0)
    assert chain.told[-1] in (" too.", "  Three")


Leave = Callable[[Guard[Any, Any], threading.Event], Any]


async def _close(guarded: Guard[Any, Any], begun: threading.Event) -> None:
    stream = guarded.astream("why?")
    assert await anext(stream) == "One is good."
    await await_(begun)
    await stream.aclose()  # type: ignore[attr-defined]  # a generator


async def _forget(guarded: Guard[Any, Any], begun: threading.Event) -> None:
    async for _ in guarded.astream("why?"):
        await await_(begun)
        break
    gc.collect()


async def _cancel_around(guarded: Guard[Any, Any], begun: threading.Event) -> None:
    """Cancel a LangChain chain in which another step follows the guard."""
    around = RunnableLambda(str) | guarded | RunnableLambda(str)

    async def read() -> None:
        async for _ in around.astream("why?"):
            pass

    task = asyncio.create_task(read())
    await await_(begun)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.slow
@pytest.mark.parametrize(
    ("leave", "at"),
    [
        *product((_close, _forget, _cancel_around), ("generating", "judging")),
        (_cancel_around, "recovering"),
    ],
)
async def test_a_reader_that_leaves_leaves_nothing_running(leave: Leave, at: str) -> None:
    begun = threading.Event()
    running: list[str] = []

    class Watched(ByClaims):
        async def _alook(self, sample: Sample) -> bool | None:
            running.append(sample.answer)
            try:
                return await super()._alook(sample)
            finally:
                running.remove(sample.answer)

    def hold(text: str) -> threading.Event | None:
        begun.set()
        return NEVER

    judge = Watched()
    chain = Telling(GOOD)
    if at == "generating":
        chain.hold = lambda chunk: hold(chunk) if chunk == " as" else None
    elif at == "judging":
        judge = Watched(hold=lambda answer: hold(answer) if "Three" in answer else None)
    else:
        chain = Telling("One is good. Two is bad.", "Three is good.")
        judge = Watched(
            hold=lambda answer: hold(answer) if answer == "Three is good." else None,
        )
    before = asyncio.all_tasks()
    await leave(guard(chain, judge), begun)
    if leave in (_forget, _cancel_around):  # The loop soon closes abandoned streams.
        await auntil(lambda: not asyncio.all_tasks() - before)
    # A client of an earlier test may still have been closing before, so only new tasks count.
    assert not asyncio.all_tasks() - before
    assert running == []
    assert chain.under_way == 0


# --- Buffering, arguments ------------------------------------------------------------------------


def test_buffered_a_stream_is_the_checked_output(mode: str) -> None:
    judge = ByClaims()
    client = Client().read(guard(Telling(GOOD), judge, streaming="buffer"), "why?", mode)
    assert client.chunks == [GOOD]
    assert judge.answers == [GOOD]


def test_judging_by_sentences_needs_a_judge_of_claims() -> None:
    def whole(sample: Sample) -> Evaluation:
        return Evaluation(name="whole", passed=True)

    with pytest.raises(ValueError, match=r"streaming='sentence'.*whole judges answers as a whole"):
        Guard(Telling(GOOD), ByClaims(), whole, streaming="sentence")
    bound = ByClaims().with_config(tags=["mine"])
    assert list(guard(Telling(GOOD), bound).stream("why?")) != []
