"""Measure what a score callback handler adds to a run, and what 10,000 runs leave in memory.

    make bench        or: python -m bench.observe [--rounds 15] [--calls 40] [--runs 10000]

Bare chains, chains with a handler that does nothing, and chains with demur's handler run in turns.
The evaluator of demur's handler takes a second, so its queue is full and only the chain's own
thread is measured. Figures over their goals are listed at the end. They are not a failure, because
other work on the machine changes the figures.
"""

from __future__ import annotations

import argparse
import asyncio
import resource
import time
from collections.abc import Callable
from contextlib import closing
from functools import partial
from typing import Any

from bench.measuring import arguments, in_turns, peak_mb, seconds, tell_goals
from langchain_core.callbacks import (
    AsyncCallbackHandler,
    BaseCallbackHandler,
    CallbackManagerForRetrieverRun,
)
from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableLambda, RunnablePassthrough

from demur import Evaluation, Sample, ScoreCallbackHandler

_MS_GOAL = 0.3

_QUESTION = "Which mills are there?"
_ANSWER = "There is the Alder mill. It has two floors."
_PASSAGE = Document("The Alder mill in the east valley has two floors and a wheel. " * 8)


class _Library(BaseRetriever):
    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        return [_PASSAGE] * 4

    async def _aget_relevant_documents(self, query: str, **_: Any) -> list[Document]:
        return [_PASSAGE] * 4


def _answer(given: str) -> str:
    return _ANSWER


async def _aanswer(given: str) -> str:
    return _ANSWER


_MODEL = FakeListChatModel(responses=[_ANSWER])
_PROMPT = ChatPromptTemplate.from_template("{context}\n\n{question}")
CHAINS: dict[str, Runnable[Any, Any]] = {
    "a function": RunnableLambda(_answer, _aanswer),
    "prompt | model | parser": ChatPromptTemplate.from_template("{question}")
    | _MODEL
    | StrOutputParser(),
    "retrieval, four passages": {"context": _Library(), "question": RunnablePassthrough()}
    | _PROMPT
    | _MODEL
    | StrOutputParser(),
}


def _slow(sample: Sample) -> Evaluation:
    time.sleep(1)
    return Evaluation(name="slow", score=1.0, passed=True)


async def _aslow(sample: Sample) -> Evaluation:
    await asyncio.sleep(1)
    return Evaluation(name="slow", score=1.0, passed=True)


class _Nothing(BaseCallbackHandler):
    run_inline = True


class _AsyncNothing(AsyncCallbackHandler):
    run_inline = True


def main() -> None:
    """Measure, and print the figures."""
    parser = arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--calls", type=int, default=40, help="calls per round")
    parser.add_argument("--runs", type=int, default=10_000, help="runs to measure memory")
    options = parser.parse_args()
    with closing(asyncio.new_event_loop()) as loop:
        over = _latency(options, loop)
    print()
    _memory(options.runs)
    print()
    tell_goals(over)


# --- A run ---------------------------------------------------------------------------------------


def _latency(options: argparse.Namespace, loop: asyncio.AbstractEventLoop) -> list[str]:
    print("ms per run                            |  bare   +nothing  +scores  more  ratio")
    over = []
    for name, chain in CHAINS.items():
        for way in ("invoke", "stream", "ainvoke", "astream"):
            evaluator: Any = RunnableLambda(_slow, _aslow)
            nothing: Any = _AsyncNothing() if way.startswith("a") else _Nothing()
            handler = ScoreCallbackHandler(evaluator, sink=_no_sink, max_queue=100)
            runs = [_runs(chain, way, given, loop) for given in ([], [nothing], [handler])]
            bare, with_nothing, scored = _ms(runs, options.rounds, options.calls)
            more = scored - bare
            print(
                f"{name:<25} {way:<11} | {bare:>6.3f} {with_nothing:>8.3f} {scored:>9.3f} "
                f"{more:>6.3f} {scored / bare:>6.2f}"
            )
            if more > _MS_GOAL:
                over.append(f"{name}, {way}: {more:.2f} ms")
            handler.close(0)
    return over


def _no_sink(record: Any) -> None:
    pass


def _runs(
    chain: Runnable[Any, Any], way: str, handlers: list[Any], loop: asyncio.AbstractEventLoop
) -> Callable[[int], None]:
    config: Any = {"callbacks": handlers}

    def run(count: int) -> None:
        for _ in range(count):
            if way == "invoke":
                chain.invoke(_QUESTION, config)
            else:
                for _ in chain.stream(_QUESTION, config):
                    pass

    async def arun(count: int) -> None:
        for _ in range(count):
            if way == "ainvoke":
                await chain.ainvoke(_QUESTION, config)
            else:
                async for _ in chain.astream(_QUESTION, config):
                    pass

    return (lambda count: loop.run_until_complete(arun(count))) if way.startswith("a") else run


def _ms(runs: list[Callable[[int], None]], rounds: int, count: int) -> list[float]:
    """Return the median milliseconds per run of each function, after a round to warm up."""
    for run in runs:
        run(count)
    clocks = in_turns({run: partial(run, count) for run in runs}, rounds)
    return [1000 * clock.median.wall / count for clock in clocks.values()]


# --- Memory --------------------------------------------------------------------------------------


def _memory(count: int) -> None:
    """Print the memory of runs through a handler whose evaluator cannot keep up."""
    chain = CHAINS["retrieval, four passages"]
    handler = ScoreCallbackHandler(RunnableLambda(_slow), sink=_no_sink, max_queue=1000)
    config: Any = {"callbacks": [handler]}
    for _ in range(200):
        chain.invoke(_QUESTION, config)
    before, fifths = _resident_mb(), list[str]()

    def run() -> None:
        for at in range(1, count + 1):
            chain.invoke(_QUESTION, config)
            if at % (count // 5) == 0:
                fifths.append(f"{_resident_mb() - before:+.1f}")

    ms = 1000 * seconds(run) / count
    counts = handler.counts
    print(
        f"{count:,} runs, an evaluator of one second, a queue of 1,000: {ms:.3f} ms per run; "
        f"{counts.recorded + counts.waiting:,} taken in, {counts.dropped:,} dropped and counted; "
        f"MB more after each fifth: {', '.join(fifths)}"
    )
    handler.close(0)


def _resident_mb() -> float:
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * resource.getpagesize() / 2**20
    except OSError:  # not Linux
        return peak_mb()


if __name__ == "__main__":
    main()
