"""Compare RefChecker with the time that the server alone takes, and measure its CPU and tokens.

    make bench        or: python -m bench.scheduling [--repeats 3] [--concurrency 1 4 16 64] ...

Answers of five claims over three passages of 80 words are judged against a server that takes the
same time for every request. In turns with it, the requests of joint checking run as bare calls of
`ChatOpenAI`, one after the other. The figures of joint checking over their goals are listed at the
end. They are not a failure, because other work on the machine changes the figures. If tiktoken
cannot fetch its tables, set TIKTOKEN_CACHE_DIR to a folder that has them.
"""

from __future__ import annotations

import argparse
import asyncio
import math
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any

from bench.measuring import Clock, Spent, arguments, in_turns, seconds, tell_goals
from bench.serving import asking, served
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import BaseMessage
from langchain_openai import ChatOpenAI

from demur import Evaluation, RefChecker, Sample, Usage
from demur.evaluators import Evaluator
from demur.runtime import Scope, within_scope
from demur_research.texts.bland import samples

# The wall time as a multiple of the bare calls', and the ms of CPU above theirs.
_WALL_GOAL, _CPU_GOAL = 1.1, 1.5
_TOKEN_GOALS = {"joint": 1100, "sentences": 550}
_MODES: dict[str, dict[str, Any]] = {
    "joint": {"checker": "joint"},
    "per_claim": {"checker": "per_claim"},
    "sentences": {"checker": "joint", "claims": "sentences"},
}
_BESIDE = {"bare 1": "bare 1", "sentences": "bare 1"}
"""The bare calls that each row is compared with: the two of joint checking, or the one of
sentences."""
# With fewer answers at a time, one run is long enough to be an average.
_REPEATED_FROM = 16


Run = Callable[[int], object]
"""A function that judges all answers once, with a number of answers at a time."""
Loop = asyncio.AbstractEventLoop


class Subject:
    """Have all answers judged by an evaluator."""

    def __init__(self, evaluator: Evaluator, asked: Sequence[Sample]) -> None:
        self._evaluator = evaluator
        self._asked = list(asked)
        seen = [_Seen() for _ in asked]
        # The first run also opens the connections and fills the caches.
        found = evaluator.batch(self._asked, [{"callbacks": [one]} for one in seen])
        self.usage = _usage(found)
        self.prompts = [one.prompts for one in seen]

    def run(self, at_once: int) -> None:
        """Judge the answers in threads."""
        self._evaluator.batch(self._asked, {"max_concurrency": at_once})

    async def arun(self, at_once: int) -> None:
        """Judge the answers in the running event loop."""
        await self._evaluator.abatch(self._asked, {"max_concurrency": at_once})


class _Seen(BaseCallbackHandler):
    def __init__(self) -> None:
        self.prompts: list[list[BaseMessage]] = []

    def on_chat_model_start(
        self, serialized: dict[str, Any], messages: list[list[BaseMessage]], **kwargs: Any
    ) -> None:
        self.prompts += messages


def _usage(found: Sequence[Evaluation]) -> Usage:
    for evaluation in found:
        if evaluation.undetermined:
            raise RuntimeError(f"expected every answer to be judged, got: {evaluation.error}")
    return sum((evaluation.usage for evaluation in found), Usage())


@dataclass(frozen=True)
class Bare:
    """Send the same requests, one after the other for each answer, with nothing around them."""

    model: ChatOpenAI
    prompts: Sequence[Sequence[list[BaseMessage]]]

    def run(self, at_once: int) -> None:
        """Send the requests in threads."""

        def ask(prompts: Sequence[list[BaseMessage]]) -> None:
            for prompt in prompts:
                self.model.invoke(prompt)

        with ThreadPoolExecutor(at_once) as pool:
            list(pool.map(ask, self.prompts))

    async def arun(self, at_once: int) -> None:
        """Send the requests in the running event loop."""
        free = asyncio.Semaphore(at_once)

        async def ask(prompts: Sequence[list[BaseMessage]]) -> None:
            async with free:
                for prompt in prompts:
                    await self.model.ainvoke(prompt)

        await asyncio.gather(*(ask(prompts) for prompts in self.prompts))


def main() -> None:
    """Measure, and print the figures."""
    parser = arguments(__doc__)
    parser.add_argument("--answers", type=int, default=32)
    parser.add_argument("--latency", type=float, default=0.2, help="seconds per request")
    parser.add_argument("--concurrency", type=int, nargs="+", default=[1, 4, 16, 64])
    parser.add_argument(
        "--repeats", type=int, default=3, help=f"repeats, from {_REPEATED_FROM} at a time"
    )
    options = parser.parse_args()

    with (
        served("bench.fixed_latency_server", "--latency", options.latency) as ready,
        closing(asyncio.new_event_loop()) as loop,
    ):
        url, counted_with = ready["url"], ready["tokens"]
        print(f"{options.answers} answers, {options.latency * 1000:.0f} ms a call")
        print(f"tokens counted with: {counted_with}\n")
        _long_references()
        _compare(asking(url), options, loop)


def _long_references() -> None:
    """Print how long it takes to choose the windows that 20 claims are checked against.

    The model replies at once, so only the choice is measured.
    """
    told = samples(2000)
    texts = [" ".join(one.page_content for one in sample.contexts) for sample in told]
    contexts = [" ".join(texts[at : at + 25])[:12_000] for at in range(0, 2000, 10)]
    answer = " ".join(sample.answer for sample in told[:5])
    checker = RefChecker(
        FakeListChatModel(responses=["No labels"]), checker="joint", claims="sentences"
    )
    sample = Sample(question="What is known?", answer=answer, contexts=contexts)
    clock = Clock()
    with within_scope(Scope()):
        for _ in range(2):
            with clock:
                checker.invoke(sample)
    first, second = clock.spent
    print(
        f"{len(contexts)} references of 2,000 words: {first.cpu:.2f} s of CPU an answer, "
        f"{second.cpu:.2f} s for the next in a guarded call\n"
    )


def _compare(model: ChatOpenAI, options: argparse.Namespace, loop: Loop) -> None:
    asked = samples(options.answers)
    joint = Subject(RefChecker(model, checker="joint"), asked)
    per_claim = Subject(RefChecker(model, checker="per_claim"), asked)
    sentences = Subject(RefChecker(model, checker="joint", claims="sentences"), asked)
    subjects: dict[str, Subject | Bare] = {
        "bare": Bare(model, joint.prompts),
        "joint": joint,
        "per_claim": per_claim,
        "bare 1": Bare(model, sentences.prompts),
        "sentences": sentences,
    }
    usages = {name: getattr(subject, "usage", Usage()) for name, subject in subjects.items()}
    usages |= {"bare": joint.usage, "bare 1": sentences.usage}
    for mode, options_of in _MODES.items():
        one = Subject(RefChecker(model, **options_of), asked[:1])
        run = in_loop(loop, one)
        run(1)  # opens a connection
        native, threads = (seconds(partial(way, 1)) / options.latency for way in (run, one.run))
        print(
            f"one answer, {mode}: {one.usage.calls} calls, {native:.2f} latencies async, "
            f"{threads:.2f} sync"
        )
    print()
    print("at once  requests       | wall s  / ideal  / bare | calls  tokens | CPU ms  - bare")
    over = []
    for at_once in options.concurrency:
        runs: dict[tuple[str, str], Run] = {}
        for name, subject in subjects.items():
            if name != "per_claim" or at_once == max(options.concurrency):
                runs[name, "async"] = in_loop(loop, subject)
                runs[name, "sync"] = subject.run
        repeats = options.repeats if at_once >= _REPEATED_FROM else 1
        latencies = options.latency * math.ceil(len(asked) / at_once)
        over += _table(measure(runs, at_once, repeats), usages, at_once, latencies, options)
    for name, goal in _TOKEN_GOALS.items():
        per_answer = tokens(usages[name]) / len(asked)
        if per_answer > goal:
            over.append(f"{name}: {per_answer:.0f} tokens per answer")
    print("(calls, tokens and CPU per answer)\n")
    tell_goals(over)


def in_loop(loop: Loop, subject: Subject | Bare) -> Run:
    """Return a function that runs the asynchronous way in the given event loop."""
    return lambda at_once: loop.run_until_complete(subject.arun(at_once))


def _table(
    spent: Mapping[tuple[str, str], Spent],
    usages: Mapping[str, Usage],
    at_once: int,
    latencies: float,
    options: argparse.Namespace,
) -> list[str]:
    """Print one line for each way, and return the figures of joint checking over a goal."""
    over = []
    for (name, way), found in spent.items():
        beside = spent[_BESIDE.get(name, "bare"), way]
        ratio = found.wall / beside.wall
        ideal = latencies * (1 if _BESIDE.get(name) else 2)
        above = 1000 * (found.cpu - beside.cpu) / options.answers
        print(
            f"{at_once:>7}  {name:<9} {way:<5}| {found.wall:>6.3f} {found.wall / ideal:>8.2f}"
            f" {ratio:>7.2f} | {usages[name].calls / options.answers:>5.1f}"
            f" {tokens(usages[name]) / options.answers:>7.0f} |"
            f" {1000 * found.cpu / options.answers:>6.2f} {above:>7.2f}"
        )
        where = f"{name}, {way}, {at_once} at once"
        if name in _TOKEN_GOALS and ratio > _WALL_GOAL:
            over.append(f"{where}: {ratio:.2f} times the bare calls' wall")
        if name in _TOKEN_GOALS and above > _CPU_GOAL:
            over.append(f"{where}: {above:.2f} ms CPU above the bare calls'")
    return over


def measure(
    runs: Mapping[tuple[str, str], Run], at_once: int, repeats: int
) -> dict[tuple[str, str], Spent]:
    """Return what each way takes, run in turns."""
    clocks = in_turns({name: partial(run, at_once) for name, run in runs.items()}, repeats)
    return {name: clock.typical for name, clock in clocks.items()}


def tokens(usage: Usage) -> int:
    """Return the tokens of prompts and replies together."""
    return usage.input_tokens + usage.output_tokens


if __name__ == "__main__":
    main()
