"""Compare guarded calls that "small" judges with the judge alone: a crowd, a stream, long texts.

    make bench        or: python -m bench.crowd [--calls 500] [--parts crowd stream length]

**crowd**: so many calls of a guard are made at once, asynchronously. Each answer states one or two
facts about a mill of its own, and every other answer is wrong about the last one. Beside it, the
judge alone reads the same pairs of texts, in a thread for each core: no guard that has them judged
can be faster.

**stream**: ten sentences come from a chain that says a word every `--word` seconds. The guard sends
each sentence once it is checked, or all of them at the end.

**length**: an answer of two sentences is held against 1, 4, 16 and 64 passages of 100 words, with
the default of `max_windows`. The figures of the other lengths are given in times of the first's.

CPU is that of this process with all of its threads. All texts are made up, and the verdicts are the
judge's own: the benchmark ends if one is wrong.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from bench.measuring import Clock, aread, arguments, in_turns
from langchain_core.runnables import Runnable, RunnableGenerator, RunnableLambda

from demur import Guard, RefChecker
from demur.local import SmallJudge
from demur.local.cores import usable_cores

_LENGTHS = (1, 4, 16, 64)
_PLACES = ("Alder", "Birch", "Cedar", "Elder", "Hazel", "Linden", "Maple", "Rowan", "Willow")
_ENDS = ("brook", "ford", "ham", "holm", "mere", "stead", "thorpe", "ton", "wick", "wood")
_DAYS = ("Mondays", "Tuesdays", "Wednesdays", "Thursdays", "Fridays")
_STONES = ("grey stone", "red brick", "oak", "white limestone", "yellow sandstone")
_ABOUT = (
    "The wheel turned until the river was led around the town, and for some years the rooms were "
    "used as a school. A guide tells visitors how grain was carried up to the top and came down as "
    "flour. Children may try to lift one of the sacks. In the yard there are benches, a well and a "
    "small garden with herbs, and in summer a baker sells rolls there."
)


@dataclass(frozen=True)
class Mill:
    """Hold what the texts say about one mill."""

    at: int

    @property
    def name(self) -> str:
        """Return a name that no other mill of a run has."""
        at, end = divmod(self.at, len(_ENDS))
        more, begin = divmod(at, len(_PLACES))
        return f"{_PLACES[begin]}{_ENDS[end]}{f' {more + 1}' if more else ''}"

    @property
    def stone(self) -> str:
        """Return what the mill was built of."""
        return _STONES[self.at % len(_STONES)]

    @property
    def facts(self) -> tuple[str, ...]:
        """Return the sentences of the reference, each of which is true."""
        day = _DAYS[self.at % len(_DAYS)]
        return (
            f"The mill of {self.name} was built of {self.stone} in {1700 + self.at % 200}.",
            f"It is closed on {day}.",
        )

    @property
    def passage(self) -> str:
        """Return a passage of about 100 words."""
        return " ".join((*self.facts, _ABOUT))

    def answer(self, sentences: int, wrong: bool) -> str:
        """Return one or two sentences about the mill, the last of which may be wrong."""
        closed = "is never closed" if wrong else f"is closed on {_DAYS[self.at % len(_DAYS)]}"
        said = [f"was built of {self.stone}", closed][-sentences:]
        return " ".join(f"The mill of {self.name} {one}." for one in said)


def main() -> None:
    """Measure, and print the figures."""
    parts = {"crowd": _crowd, "stream": _stream, "length": _length}
    parser = arguments(__doc__)
    parser.add_argument("--calls", type=int, default=500, help="guarded calls at once")
    parser.add_argument("--rounds", type=int, default=3, help="rounds of each part")
    parser.add_argument("--word", type=float, default=0.02, help="seconds per word of the stream")
    parser.add_argument("--parts", nargs="+", choices=[*parts], default=[*parts])
    options = parser.parse_args()
    options.cores = usable_cores()
    print(f"{options.cores} cores, load of the last minute: {os.getloadavg()[0]:.1f}")
    SmallJudge().predict([("It is so.", "It is.")])  # loads the files
    for name in options.parts:
        print()
        parts[name](options)


# --- A crowd -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Noted(SmallJudge):
    """Note the pairs that the judge is asked about."""

    pairs: list[tuple[str, str]] = field(default_factory=list)

    def predict(self, pairs: Sequence[tuple[str, str]]) -> Any:
        """Return the probabilities that the judge gives."""
        self.pairs.extend(pairs)
        return super().predict(pairs)


@dataclass(frozen=True)
class _Case:
    """Describe the answers and the references of a crowd."""

    sentences: int
    words: int
    """The words of the reference, about."""

    def reference(self, mill: Mill) -> str:
        """Return the reference of an answer."""
        return mill.passage if self.words > 50 else " ".join(mill.facts)

    async def say(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Answer, as a chain that takes no time."""
        mill, wrong = Mill(asked["at"]), _is_wrong(asked["at"])
        answer = mill.answer(self.sentences, wrong)
        return {"answer": answer, "context": [self.reference(mill)]}

    def guard(self, judge: SmallJudge) -> Runnable[Any, Any]:
        """Return a guard around the chain, whose results have traces."""
        chain = RunnableLambda(self.say)
        return Guard(chain, RefChecker(judge), question="question", on_fail="abstain").with_trace()


_CASES = (_Case(1, 20), _Case(2, 20), _Case(2, 100))


def _is_wrong(at: int) -> bool:
    return at % 2 == 1


def _crowd(options: argparse.Namespace) -> None:
    asked = [
        {"question": f"What is known of the mill of {Mill(at).name}?", "at": at}
        for at in range(options.calls)
    ]
    print(f"{options.calls} calls at once, half of the answers wrong")
    print("sentences  words of  pairs an | wall s                | CPU ms an answer      | answers")
    print("in answer  reference  answer  | guarded  alone  ratio | guarded  alone  ratio | per s")
    for case in _CASES:
        noted = _Noted()
        _together(case.guard(noted), asked)
        guard, judge = case.guard(SmallJudge()), SmallJudge()
        with ThreadPoolExecutor(options.cores) as pool:
            runs = {
                "guarded": partial(_together, guard, asked),
                "alone": partial(_alone, judge, noted.pairs, pool),
            }
            clocks = in_turns(runs, options.rounds)
        guarded, alone = (clock.typical for clock in clocks.values())
        cpu = [1000 * one.cpu / options.calls for one in (guarded, alone)]
        print(
            f"{case.sentences:>9} {case.words:>9} {len(noted.pairs) / options.calls:>9.1f} "
            f"| {guarded.wall:>7.1f} {alone.wall:>6.1f} {guarded.wall / alone.wall:>6.2f} "
            f"| {cpu[0]:>7.1f} {cpu[1]:>6.1f} {cpu[0] / cpu[1]:>6.2f} "
            f"| {options.calls / guarded.wall:>8.0f}",
            flush=True,
        )


def _together(guard: Runnable[Any, Any], asked: Sequence[dict[str, Any]]) -> None:
    """Make all calls at once, and end the benchmark if a verdict is wrong."""

    async def together() -> list[Any]:
        return await asyncio.gather(*map(guard.ainvoke, asked))

    for call, found in zip(asked, asyncio.run(together()), strict=True):
        expected = "abstained" if _is_wrong(call["at"]) else "passed"
        if found.trace.outcome != expected:
            raise SystemExit(f"{found.trace.attempts[0].answer!r}: {found.trace.outcome}")


def _alone(judge: SmallJudge, pairs: Sequence[tuple[str, str]], pool: ThreadPoolExecutor) -> None:
    list(pool.map(judge.predict, [[pair] for pair in pairs]))


# --- A stream ------------------------------------------------------------------------------------

_MILLS = range(10)
_TEXT = " ".join(f"The mill of {Mill(at).name} is closed on {_DAYS[at % 5]}." for at in _MILLS)


def _stream(options: argparse.Namespace) -> None:
    words = [f"{word} " for word in _TEXT.split()]

    def say(given: Iterator[Any]) -> Iterator[str]:
        for _ in given:
            for word in words:
                time.sleep(options.word)
                yield word

    async def asay(given: AsyncIterator[Any]) -> AsyncIterator[str]:
        async for _ in given:
            for word in words:
                await asyncio.sleep(options.word)
                yield word

    chain: Any = RunnableGenerator(say, asay)
    contexts = [Mill(at).passage for at in _MILLS]
    ways: dict[str, Any] = {
        "no guard": chain,
        **{
            streaming: Guard(
                chain,
                RefChecker("small"),
                contexts=lambda output: contexts,
                streaming=streaming,
                on_fail="block",
            )
            for streaming in ("sentence", "buffer")
        },
    }
    print("seconds until          | first text   end | first text to the end without a guard")
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    for _ in range(options.rounds):
        for name, way in ways.items():
            found[name].append(asyncio.run(_read(way)))
    end = statistics.median(end for _, end in found["no guard"])
    for name, times in found.items():
        first, last = (statistics.median(one) for one in zip(*times, strict=True))
        print(f"{name:<22} | {first:>10.2f} {last:>5.2f} | {first / end:.2f}")


async def _read(way: Any) -> tuple[float, float]:
    """Return the seconds until the first text, and until the end."""
    pieces: list[str] = []

    async def kept() -> AsyncIterator[str]:
        async for piece in way.astream({"question": "When are the mills closed?"}):
            pieces.append(piece)
            yield piece

    times = await aread(kept())
    if (text := "".join(pieces)).split() != _TEXT.split():
        raise SystemExit(f"another text left the guard: {text!r}")
    return times


# --- Long references -----------------------------------------------------------------------------


def _length(options: argparse.Namespace) -> None:
    clocks = {count: Clock() for count in _LENGTHS}
    read: dict[int, Mapping[str, Any]] = {}
    for nth in range(options.rounds):
        for count, clock in clocks.items():
            passages = [Mill(100 * nth + at).passage for at in range(count)]
            answer = Mill(100 * nth + count // 2).answer(2, wrong=False)
            guard: Guard[Any, Any] = Guard(
                RunnableLambda(lambda given, said=answer: said),
                RefChecker("small"),
                contexts=lambda given, texts=passages: texts,
                on_fail="abstain",
            )
            with clock:
                found = guard.with_trace().invoke({"question": "What is known of the mill?"})
            if found.trace.outcome != "passed":
                raise SystemExit(f"{answer!r} {found.trace.outcome} with {count} passages")
            read[count] = found.trace.attempts[0].evaluations[0].details
    print("passages of 100 words | windows a claim  left out | CPU ms  ratio | wall ms  ratio")
    one = clocks[_LENGTHS[0]].typical
    for count, clock in clocks.items():
        told, spent = read[count], clock.typical
        print(
            f"{count:>21} | {told['windows_per_claim']:>15} {told['windows_left_out']:>9} "
            f"| {1000 * spent.cpu:>6.0f} {spent.cpu / one.cpu:>6.2f} "
            f"| {1000 * spent.wall:>7.0f} {spent.wall / one.wall:>6.2f}"
        )


if __name__ == "__main__":
    main()
