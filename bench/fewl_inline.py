"""Measure how long one answer waits for its FEWL score, in latencies of the model's server.

    make bench        or: python -m bench.fewl_inline [--questions 6] [--latency 0.2]

An answer to a new question is scored, and then another answer to the same question, in turns with a
bare call of `ChatOpenAI`. 50 other questions are known. All requests for a new question should be
sent at once. Figures over the goal are listed at the end. They are not a failure, because other
work on the machine changes the figures.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

from bench import fewl_texts as made
from bench.fewl import Clock
from bench.fewl_texts import WordVectors
from bench.serving import served
from langchain_core.runnables import Runnable
from langchain_openai import ChatOpenAI

from demur import Evaluation
from demur.evaluators import FEWL, NeighborStore
from demur.evaluators.fewl.prompts import ANSWER

_GOAL = 1.5
_KNOWN = 50

Loop = asyncio.AbstractEventLoop


def main() -> None:
    """Measure, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--questions", type=int, default=6, help="new questions for each way")
    parser.add_argument("--latency", type=float, default=0.2, help="seconds per request")
    options = parser.parse_args()

    print(f"{options.latency * 1000:.0f} ms a call; medians of {options.questions} questions\n")
    print("references          | bare call              | new question           | known question")
    print("                    | " + " | ".join(["calls latencies CPU ms"] * 3))
    over = []
    with (
        tempfile.TemporaryDirectory(prefix="demur-bench-") as folder,
        served("bench.fixed_latency_server", "--latency", options.latency) as ready,
        closing(asyncio.new_event_loop()) as loop,
    ):
        # Models of the same name would be one model, whose equal requests in flight are sent once.
        models = [
            ChatOpenAI(base_url=ready["url"], api_key="none", model=f"none-{at}", max_retries=0)
            for at in range(made.N)
        ]
        for name, some in {"one model": models[:1], "five models": models}.items():
            store = NeighborStore(Path(folder) / name, embedding=WordVectors())
            store.add_many([one.asked for one in made.items(_KNOWN)])
            fewl = FEWL(
                some if some[1:] else some[0],
                similarity=WordVectors(),
                penalty=True,
                neighbors=store,
            )
            for way in ("sync", "async"):
                over += _row(f"{name}, {way}", fewl, models[0], way, options, loop)
            store.close()
    print("\n" + ("\n".join(f"over the goal: {one}" for one in over) or "nothing is over its goal"))


def _row(
    name: str, fewl: FEWL, model: ChatOpenAI, way: str, options: argparse.Namespace, loop: Loop
) -> list[str]:
    """Print a line of the table, and return the figures over the goal."""
    taken: dict[str, list[Clock]] = {"bare": [], "new": [], "known": []}
    calls: dict[str, set[int]] = {"new": set(), "known": set()}
    for at in range(options.questions + 1):
        # Each way has its own questions, so that they are new.
        one = made.item(_KNOWN + (way == "async") * 1000 + at, made.topics(_KNOWN))
        question = one.asked.question
        _, clock = _timed(model, ANSWER.messages(question=question), way, loop)
        taken["bare"].append(clock)
        for kind, answer in zip(calls, one.answers, strict=False):
            found, clock = _timed(fewl, {"question": question, "answer": answer}, way, loop)
            taken[kind].append(clock)
            calls[kind].add(_calls(found))
    cells = []
    for kind, clocks in taken.items():
        # The first call opened the connections, and is left out.
        wall, cpu = (
            statistics.median(getattr(clock, what) for clock in clocks[1:])
            for what in ("wall", "cpu")
        )
        counts = " to ".join(map(str, sorted(calls.get(kind, {1}))))
        cells.append(f"{counts:>5} {wall / options.latency:>9.2f} {1000 * cpu:>6.0f}")
        if kind == "new":
            over = wall / options.latency
    print(f"{name:<19} | " + " | ".join(cells), flush=True)
    return [f"{name}: {over:.2f} latencies for a new question"] if over > _GOAL else []


def _timed(one: Runnable[Any, Any], given: object, way: str, loop: Loop) -> tuple[Any, Clock]:
    """Return the output of a Runnable, and the time that it took."""
    clock = Clock()
    with clock:
        found = one.invoke(given) if way == "sync" else loop.run_until_complete(one.ainvoke(given))
    return found, clock


def _calls(found: Evaluation) -> int:
    if found.score is None or found.details["neighbors_used"] != made.K:
        raise RuntimeError(f"expected a score with {made.K} neighbours, got: {found.details}")
    return found.usage.calls


if __name__ == "__main__":
    main()
