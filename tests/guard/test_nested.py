"""Test guards inside guarded chains: a client sees only what leaves the outermost guard."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
from allpairspy import AllPairs
from langchain_core.output_parsers import StrOutputParser
from langchain_core.runnables import (
    Runnable,
    RunnableGenerator,
    RunnableLambda,
    RunnableParallel,
)

from demur import Guard, Sample
from demur.guard import REPLACE
from support.streams import ByClaims, Client, Telling, guard, not_bad

TAKEN_BACK, BETTER = "One is good.", "All is well. Quite so."


def taking_back(left: threading.Event | None = None) -> Guard[Any, Any]:
    """Return a guard that, used alone, takes its first sentence back after rejecting the second.

    The second one ends once the first one has left, or at least has passed.
    """
    second = left or threading.Event()

    def passes(sample: Sample) -> bool | None:
        if left is None:
            second.set()
        return not_bad(sample)

    chain = Telling("One is good. Two is bad.", BETTER)
    chain.hold = lambda chunk: second if chunk == " bad." else None
    return guard(chain, ByClaims(passes=passes))


def read_back(around: Callable[[Guard[Any, Any]], Any], mode: str) -> Client:
    """Read a guard that takes a sentence back once the client has it."""
    left, client = threading.Event(), Client()
    client.on_text = lambda text: left.set()
    return client.read(around(taking_back(left)), "why?", mode)


def _same(chunks: Iterator[str]) -> Iterator[str]:
    yield from chunks


async def _asame(chunks: AsyncIterator[str]) -> AsyncIterator[str]:
    async for chunk in chunks:
        yield chunk


def _as_it_comes(inner: Guard[Any, Any]) -> Runnable[Any, Any]:
    def read(given: Any) -> Iterator[Any]:
        yield from inner.stream(given)

    async def aread(given: Any) -> AsyncIterator[Any]:
        async for chunk in inner.astream(given):
            yield chunk

    return RunnableLambda(read, aread)


def _returned(inner: Guard[Any, Any]) -> Runnable[Any, Any]:
    async def aread(given: Any) -> Any:
        return inner

    return RunnableLambda(lambda given: inner, aread)


AROUND: dict[str, Callable[[Guard[Any, Any]], Any]] = {
    "alone": lambda inner: inner,
    "then a parser": lambda inner: inner | StrOutputParser(),
    "then a generator": lambda inner: inner | RunnableGenerator(_same, _asame),
    "then a function": lambda inner: inner | RunnableLambda(str),
    "behind a function": lambda inner: RunnableLambda(str) | inner,
    "read by a function": _as_it_comes,
    "returned by a function": _returned,
    "in parallel": lambda inner: RunnableParallel(answer=inner, other=RunnableLambda(str)),
    "with a fallback": lambda inner: inner.with_fallbacks([RunnableLambda(str)]),
    "configured": lambda inner: inner.with_config(tags=["mine"]).bind(),
    "two deep": lambda inner: guard(guard(inner) | StrOutputParser()),
}


@pytest.mark.parametrize(
    ("around", "streaming", "mode"),
    [*AllPairs([[*AROUND], ["sentence", "buffer"], ["sync", "async"]])],
)
def test_what_an_inner_guard_takes_back_is_not_seen(around: str, streaming: str, mode: str) -> None:
    outer = guard(AROUND[around](taking_back()), streaming=streaming)
    client = Client().read(outer, "why?", mode)
    assert client.text == BETTER
    assert TAKEN_BACK not in client.received


def test_by_itself_it_takes_back(mode: str) -> None:
    """Show that the test above can fail."""
    client = read_back(lambda inner: inner, mode)
    assert client.text == BETTER
    assert client.replaced == [{"keep": 0, "keys": []}]
    assert TAKEN_BACK in client.received


# --- Steps after a guard -------------------------------------------------------------------------


def test_a_step_that_passes_on_each_piece_of_text_may_follow(mode: str) -> None:
    assert read_back(lambda inner: inner | StrOutputParser(), mode).text == BETTER


def test_of_guards_side_by_side_the_event_says_whose_text_is_taken_back() -> None:
    names: dict[Any, str] = {}
    replaced: list[str] = []

    class Told(Client):
        def on_chain_start(self, *args: Any, **kwargs: Any) -> None:
            names[kwargs["run_id"]] = kwargs.get("name") or ""

        def on_custom_event(self, name: str, data: Any, **kwargs: Any) -> None:
            replaced.extend([names[kwargs["run_id"]]] if name == REPLACE else [])

    left, client = threading.Event(), Told()
    first = taking_back(left).with_config(run_name="first")
    second = guard(Telling(BETTER)).with_config(run_name="second")
    for chunk in RunnableParallel(first=first, second=second).stream(
        "why?", {"callbacks": [client]}
    ):
        if "first" in chunk:
            left.set()
    assert replaced == ["first"]
