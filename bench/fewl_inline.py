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
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

from bench import fewl_texts as made
from bench.fewl_texts import WordVectors
from bench.measuring import Clock, arguments, tell_goals
from bench.serving import asking, served
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
    parser = arguments(__doc__)
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
        models = [asking(ready["url"], f"none-{at}") for at in range(made.N)]
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
    print()
    tell_goals(over)


def _row(
    name: str, fewl: FEWL, model: ChatOpenAI, way: str, options: argparse.Namespace, loop: Loop
) -> list[str]:
    """Print a line of the table, and return the figures over the goal."""
    taken = {"bare": Clock(), "new": Clock(), "known": Clock()}
    calls: dict[str, set[int]] = {"new": set(), "known": set()}
    for at in range(options.questions + 1):
        # Each way has its own questions, so that they are new.
        one = made.item(_KNOWN + (way == "async") * 1000 + at, made.topics(_KNOWN))
        question = one.asked.question
        with taken["bare"]:
            _ask(model, ANSWER.messages(question=question), way, loop)
        for kind, answer in zip(calls, one.answers, strict=False):
            with taken[kind]:
                found = _ask(fewl, {"question": question, "answer": answer}, way, loop)
            calls[kind].add(_calls(found))
    cells = []
    for kind, clock in taken.items():
        # The first call opened the connections, and is left out.
        spent = Clock(clock.spent[1:]).median
        counts = " to ".join(map(str, sorted(calls.get(kind, {1}))))
        cells.append(f"{counts:>5} {spent.wall / options.latency:>9.2f} {1000 * spent.cpu:>6.0f}")
        if kind == "new":
            over = spent.wall / options.latency
    print(f"{name:<19} | " + " | ".join(cells), flush=True)
    return [f"{name}: {over:.2f} latencies for a new question"] if over > _GOAL else []


def _ask(one: Runnable[Any, Any], given: object, way: str, loop: Loop) -> Any:
    return one.invoke(given) if way == "sync" else loop.run_until_complete(one.ainvoke(given))


def _calls(found: Evaluation) -> int:
    if found.score is None or found.details["neighbors_used"] != made.K:
        raise RuntimeError(f"expected a score with {made.K} neighbours, got: {found.details}")
    return found.usage.calls


if __name__ == "__main__":
    main()
