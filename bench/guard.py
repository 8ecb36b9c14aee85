"""Compare a guard with the bare chain, and measure when the first sentence of a stream leaves.

    make bench        or: python -m bench.guard [--rounds 15] [--calls 40] [--latency 0.2]

The overhead is measured with an evaluator and chains that reply at once, in turns with the bare
chains. Marks and trims are compared with answers that leave, or are refused, unchanged. For the
stream, a server sends ten sentences, one word every `--word` seconds. RefChecker judges them with
calls of `--latency` seconds each, and the two ways of streaming take turns. Figures over their
goals are listed at the end. They are not a failure, because other work on the machine changes the
figures.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import re
import statistics
import tracemalloc
from collections.abc import Callable
from contextlib import closing
from functools import cache, partial
from typing import Any

from bench.measuring import aread, arguments, in_turns, read, tell_goals
from bench.serving import asking, served
from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import Runnable, RunnableLambda

from demur import (
    Cite,
    Claim,
    ClaimLabel,
    Evaluation,
    Evidence,
    Guard,
    RefChecker,
    Sample,
    Span,
)

_MS_GOAL, _KB_GOAL, _FIRST_GOAL = 3.0, 200.0, 0.5

Loop = asyncio.AbstractEventLoop

_PROMPT = ChatPromptTemplate.from_template("Answer: {input}")
_GIVEN = {"input": "Which mills are there?"}
_ANSWER = "There is the Alder mill. It has two floors."


def _judge(sample: Sample) -> Evaluation:
    return Evaluation(name="at once", score=1.0, passed=True)


async def _ajudge(sample: Sample) -> Evaluation:
    return _judge(sample)


def _answer(given: dict[str, str]) -> str:
    return _ANSWER


async def _aanswer(given: dict[str, str]) -> str:
    return _ANSWER


CHAINS: dict[str, Runnable[Any, Any]] = {
    "a function": RunnableLambda(_answer, _aanswer),
    "prompt | model | parser": _PROMPT | FakeListChatModel(responses=[_ANSWER]) | StrOutputParser(),
}


def main() -> None:
    """Measure, and print the figures."""
    parser = arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--calls", type=int, default=40, help="calls per round")
    parser.add_argument("--latency", type=float, default=0.2, help="seconds per request")
    parser.add_argument("--word", type=float, default=0.02, help="seconds per word of a stream")
    parser.add_argument("--streams", type=int, default=3, help="streams of each kind")
    options = parser.parse_args()
    with closing(asyncio.new_event_loop()) as loop:
        over = _overhead(options, loop)
        print()
        _edits(options)
        print()
        over += _first_sentence(options, loop)
    print()
    tell_goals(over)


# --- A call --------------------------------------------------------------------------------------


def _overhead(options: argparse.Namespace, loop: Loop) -> list[str]:
    print("ms of CPU per call                    |  bare  guarded  more  ratio | KB more at peak")
    over = []
    for name, chain in CHAINS.items():
        guard: Guard[Any, Any] = Guard(chain, RunnableLambda(_judge, _ajudge))
        for way in ("sync", "async"):
            bare, guarded = _calls(chain, way, loop), _calls(guard, way, loop)
            ms = _ms([bare, guarded], options.rounds, options.calls)
            more, kb = ms[1] - ms[0], _peak(guarded) - _peak(bare)
            print(
                f"{name:<24} {way:<12} | {ms[0]:>5.2f} {ms[1]:>8.2f} {more:>5.2f} "
                f"{ms[1] / ms[0]:>6.1f} | {kb:>5.0f}"
            )
            if more > _MS_GOAL or kb > _KB_GOAL:
                over.append(f"{name}, {way}: {more:.2f} ms, {kb:.0f} KB")
    return over


def _calls(runnable: Runnable[Any, Any], way: str, loop: Loop) -> Callable[[int], None]:
    def run(count: int) -> None:
        for _ in range(count):
            runnable.invoke(_GIVEN)

    async def arun(count: int) -> None:
        for _ in range(count):
            await runnable.ainvoke(_GIVEN)

    return run if way == "sync" else lambda count: loop.run_until_complete(arun(count))


def _ms(runs: list[Callable[[int], None]], rounds: int, count: int) -> list[float]:
    """Return the milliseconds of CPU per call of each function, which run in turns."""
    clocks = in_turns({run: partial(run, count) for run in runs}, rounds)
    return [1000 * clock.typical.cpu / count for clock in clocks.values()]


def _peak(run: Callable[[int], None]) -> float:
    """Return the KB that one call takes at its peak, above the memory before it."""
    run(1)
    gc.collect()
    tracemalloc.start()
    run(1)
    before, _ = tracemalloc.get_traced_memory()
    tracemalloc.reset_peak()
    run(1)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return (peak - before) / 1024


# --- Marks and trims -----------------------------------------------------------------------------

_MILL = "There is a mill number {} by the river. "
_DOCUMENT = Document("".join(_MILL.format(at) for at in range(50)))


def _edits(options: argparse.Namespace) -> None:
    """Print the costs of marks and trims; every fifth claim of a trimmed answer fails."""
    print("ms of CPU per call | sentences | as it is  cited  ratio | failing  trimmed  ratio")
    for count in (5, 50):
        answer = "".join(_MILL.format(at) for at in range(count)).strip()
        runs = []
        for failing, guard in ((0, {}), (0, {"on_pass": Cite("footnotes")}), (5, {}), (5, _TRIM)):
            judge = partial(_claims, failing)
            made: Guard[Any, Any] = Guard(
                RunnableLambda(lambda given, said=answer: said),
                judge,
                contexts=_document,
                **{"on_fail": "abstain", **guard},
            )
            runs.append(partial(_again, made))
        ms = _ms(runs, options.rounds, max(1, options.calls // 4))
        print(
            f"{'':<18} | {count:>9} | {ms[0]:>8.2f} {ms[1]:>6.2f} {ms[1] / ms[0]:>6.1f} "
            f"| {ms[2]:>7.2f} {ms[3]:>8.2f} {ms[3] / ms[2]:>6.1f}"
        )


_TRIM: dict[str, Any] = {"on_fail": "strip"}


def _document(output: Any) -> list[Document]:
    return [_DOCUMENT]


def _again(guard: Guard[Any, Any], count: int) -> None:
    for _ in range(count):
        guard.invoke(_GIVEN)


@cache
def _claims_of(answer: str, failing: int) -> tuple[Claim, ...]:
    claims = []
    for match in re.finditer(r"There is [^.]*\.", answer):
        wrong = failing and int(re.findall(r"\d+", match[0])[0]) % failing == failing - 1
        label = ClaimLabel.NEUTRAL if wrong else ClaimLabel.ENTAILMENT
        span = Span(start=match.start(), end=match.end())
        at = _DOCUMENT.page_content.index(match[0])
        place = Span(start=at, end=at + len(match[0]))
        evidence = Evidence(context=0, span=place, text=match[0], label=ClaimLabel.ENTAILMENT)
        claim = Claim(text=match[0], span=span, label=label)
        claims.append(claim.model_copy(update={} if wrong else {"evidence": (evidence,)}))
    return tuple(claims)


def _claims(failing: int, sample: Sample) -> Evaluation:
    claims = _claims_of(sample.answer, failing)
    passed = all(claim.label is ClaimLabel.ENTAILMENT for claim in claims)
    return Evaluation(name="at once", score=float(passed), passed=passed, claims=claims)


# --- A stream ------------------------------------------------------------------------------------


def _first_sentence(options: argparse.Namespace, loop: Loop) -> list[str]:
    print("seconds until          | first sentence          | end")
    print("                       | sentence  buffer  ratio | sentence  buffer  ratio")
    over = []
    timing = ("--latency", options.latency, "--word", options.word)
    with served("bench.fixed_latency_server", *timing) as ready:
        model = asking(ready["url"])
        chain = _PROMPT | model | StrOutputParser()
        checker = RefChecker(model, checker="joint")
        guards = [
            Guard(chain, checker, contexts=_contexts, streaming=streaming)
            for streaming in ("sentence", "buffer")
        ]
        for way in ("sync", "async"):
            found: list[list[tuple[float, float]]] = [[], []]
            for _ in range(options.streams + 1):
                for guard, times in zip(guards, found, strict=True):
                    if way == "sync":
                        times.append(read(guard.stream(_GIVEN)))
                    else:
                        times.append(loop.run_until_complete(aread(guard.astream(_GIVEN))))
            # The first stream of each kind opened the connections, and is left out.
            first = [statistics.median(one for one, _ in times[1:]) for times in found]
            end = [statistics.median(one for _, one in times[1:]) for times in found]
            print(
                f"{'ten sentences, ' + way:<22} | {first[0]:>8.2f} {first[1]:>7.2f} "
                f"{first[0] / first[1]:>6.2f} | {end[0]:>8.2f} {end[1]:>7.2f} "
                f"{end[0] / end[1]:>6.2f}"
            )
            if first[0] / first[1] > _FIRST_GOAL:
                over.append(f"first sentence, {way}: {first[0] / first[1]:.2f} of buffering")
    return over


def _contexts(output: Any) -> list[str]:
    return ["The mills were built of grey stone."]


if __name__ == "__main__":
    main()
