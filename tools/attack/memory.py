"""Measure what calls leave in memory after they have ended."""

from __future__ import annotations

import asyncio
import gc
import tracemalloc
from collections.abc import Callable, Iterator
from functools import partial
from itertools import cycle
from typing import Any

from demur import Block, Guard
from demur.guard import REFUSAL

from .listening import GIVEN
from .play import SHAPES, Judge
from .truth import RIGHT, Tally, wrong

_MOST, _ONCE = 16.0, 20_000
"""The number of bytes that may stay for each call, and for all calls together, because caches of
the interpreter may still grow."""
_WARM = 100

_PATTERNS = {
    "recovers": ((wrong(0), RIGHT), None, RIGHT),
    "is refused": ((wrong(0),), None, REFUSAL),
    "is blocked": ((wrong(0),), Block(), None),
}


def _guard(pattern: str, streaming: Any) -> Guard[Any, Any]:
    texts, policy, _ = _PATTERNS[pattern]
    chain = SHAPES["string, streamed"].build(partial(next, cycle(texts)))
    return Guard(chain, Judge(), streaming=streaming, on_fail=policy)


def _invoke(guard: Guard[Any, Any]) -> str:
    return str(guard.invoke(GIVEN))


def _stream(guard: Guard[Any, Any]) -> str:
    return "".join(guard.stream(GIVEN))


async def _ainvoke(guard: Guard[Any, Any]) -> str:
    return str(await guard.ainvoke(GIVEN))


async def _astream(guard: Guard[Any, Any]) -> str:
    return "".join([one async for one in guard.astream(GIVEN)])


WAYS: dict[str, tuple[Callable[[Any], Any], str, bool]] = {
    "invoke": (_invoke, "buffer", False),
    "invoke, a guard for each call": (_invoke, "buffer", True),
    "ainvoke": (_ainvoke, "buffer", False),
    "stream, sentence": (_stream, "sentence", False),
    "astream, sentence": (_astream, "sentence", False),
}


def attack(count: int, seed: int = 0) -> Iterator[Tally]:
    """Make `count` calls, equally many in each way, with guards that recover, refuse and block."""
    loop = asyncio.new_event_loop()
    for way in WAYS:
        yield _measure(way, count // len(WAYS), loop)
    loop.close()


def _measure(way: str, count: int, loop: asyncio.AbstractEventLoop) -> Tally:
    tally = Tally(f"memory: {way}", "calls")
    call, streaming, anew = WAYS[way]
    guards = {pattern: _guard(pattern, streaming) for pattern in _PATTERNS}

    def run(times: int) -> None:
        for at in range(times):
            pattern = list(_PATTERNS)[at % len(_PATTERNS)]
            guard = _guard(pattern, streaming) if anew else guards[pattern]
            try:
                got = call(guard)
                got = loop.run_until_complete(got) if asyncio.iscoroutine(got) else got
            except Exception as error:
                got = type(error).__name__
            wanted = _PATTERNS[pattern][2]
            if streaming == "buffer" and got != (wanted or "AnswerRejected"):
                tally.add("wrong", pattern, got)

    with tally:
        run(_WARM)
        tracemalloc.start()
        run(count // 3)
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        run(count - count // 3)
        gc.collect()
        after = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
    tally.tried = _WARM + count
    calls = count - count // 3
    each = (after - before) / max(1, calls)
    tally.notes.append(f"{each:.1f} bytes stay of a call")
    if after - before > _MOST * calls + _ONCE:
        tally.add("wrong", f"{each:.0f} bytes stay of each call")
    return tally
