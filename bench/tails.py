"""Measure the tail latency that a guard adds, with bounds and without, while its judge fails.

    make bench        or: python -m bench.tails [--rate 8] [--seconds 8] [--case NAME ...]

Questions arrive in an open loop: at random moments that were drawn beforehand, whether or not
earlier answers are there. A latency counts from the moment at which the question was due. In a
closed loop, a slow reply would delay the next question, so the questions that wait would be missing
(coordinated omission). All rows of a case run side by side over the same arrivals. Each row begins
at another of these moments, so that no row is always the first.

The judge is slow, hangs, or returns errors. It is RefChecker with one request for each answer, on a
server of OpenAI's protocol in its own process. The server takes 50 ms for a request. Delays and
failures are drawn from the seed, the answer, and how often it was asked about before, so every row
meets the same ones. One answer in ten is wrong. The chain takes 50 ms and never fails. An answer
that has not come after `--patience` seconds is given up, and shown as such.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import random
import re
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.request import urlopen

from bench.measuring import arguments, line
from bench.serving import Connection, asking, completion, http, serve, served
from langchain_core.runnables import Runnable, RunnableLambda

from demur import Budget, CallPolicy, Guard, RefChecker

_FAST, _SLOW = 0.05, 2.0
"""The seconds of a fast and of a slow reply."""
_WRONG_EACH = 10
_CPU_GOAL = 0.5

# --- What happens to a request -------------------------------------------------------------------


@dataclass(frozen=True)
class Fate:
    """Describe what happens to one request."""

    seconds: float = _FAST
    """The seconds until the reply; infinity for no reply."""
    status: int = 200


def _slow(draw: random.Random) -> Fate:
    return Fate(_SLOW) if draw.random() < 0.05 else Fate()


def _hanging(draw: random.Random) -> Fate:
    return Fate(math.inf) if draw.random() < 0.01 else Fate()


def _failing(draw: random.Random) -> Fate:
    return Fate(status=draw.choice([429, 500])) if draw.random() < 0.05 else Fate()


CASES: dict[str, Callable[[random.Random], Fate]] = {
    "all in 50 ms": lambda draw: Fate(),
    "5 % take 2 s": _slow,
    "1 % hang": _hanging,
    "5 % fail (429, 500)": _failing,
    "5 % of answers take 2 s": _slow,
}
_FIRST = 10**9 + 1
"""The item that each row is asked about before it is measured, to open connections and fill
caches."""
_BY_ANSWER = "5 % of answers take 2 s"
"""The only case in which a repeated request meets the same delay as the first one."""


def fate_of(case: str, seed: int, item: int, asked: int) -> Fate:
    """Return what happens to a request about an item.

    Args:
        case: The case.
        seed: The seed.
        item: The item.
        asked: How often the item was asked about before.
    """
    if item == _FIRST:
        return Fate()
    nth = 0 if case == _BY_ANSWER else asked
    return CASES[case](random.Random(f"{seed} {case} {item} {nth}"))


# --- The server ----------------------------------------------------------------------------------


class _Answering(Connection):
    def __init__(self, fate: Callable[[str, int], Fate], counts: Counter[str]) -> None:
        self._fate = fate
        self._counts = counts

    def asked(self, head: bytes, body: bytes) -> None:
        if head.startswith(b"GET"):
            self._send(200, dict(self._counts))
            return
        request = json.loads(body)
        prompt = request["messages"][-1]["content"]
        claim = re.search(r"<(claims-\w+)>\n1\. .*?Item (\d+) is (\w+)", prompt, re.DOTALL)
        assert claim is not None, f"expected a prompt of RefChecker, got: {prompt[:200]}"
        self._counts[request["model"]] += 1
        fate = self._fate(request["model"], int(claim[2]))
        if math.isfinite(fate.seconds):
            label = "Entailment" if claim[3] == "red" else "Contradiction"
            said = completion("judge", f"1. {label}", 400, 3)
            reply = said if fate.status == 200 else {"error": {}}
            asyncio.get_running_loop().call_later(fate.seconds, self._send, fate.status, reply)

    def _send(self, status: int, reply: Mapping[str, Any]) -> None:
        self.write(http(status, json.dumps(reply).encode()))


async def _serve(case: str, seed: int) -> None:
    counts: Counter[str] = Counter()
    asked: Counter[tuple[str, int]] = Counter()

    def fate(row: str, item: int) -> Fate:
        asked[row, item] += 1
        return fate_of(case, seed, item, asked[row, item] - 1)

    await serve(lambda: _Answering(fate, counts))


# --- The rows ------------------------------------------------------------------------------------


async def _answer(item: int) -> dict[str, Any]:
    await asyncio.sleep(_FAST)
    colour = "blue" if item % _WRONG_EACH == 0 else "red"
    return {"answer": f"Item {item} is {colour}.", "context": [f"Item {item} is red."]}


CHAIN: Runnable[int, dict[str, Any]] = RunnableLambda(_answer)


How = tuple[CallPolicy, Budget] | Literal["bare", "small"]
"""The judge's policy and the guard's budget; or no guard, or one whose judge makes no request."""


def rows(options: argparse.Namespace) -> dict[str, How]:
    """Return the rows, by their names."""
    bound, hedge = options.bound, options.hedge
    hedged = CallPolicy(hedge_after=hedge)
    return {
        "bare chain": "bare",
        '"small", without requests': "small",
        "guard": (CallPolicy(), Budget()),
        f"judge_seconds={bound:g}": (CallPolicy(), Budget(judge_seconds=bound)),
        f"timeout={hedge:g}, first_delay=0": (CallPolicy(timeout=hedge, first_delay=0), Budget()),
        f"hedge_after={hedge:g}": (hedged, Budget()),
        f"hedge_after={hedge:g}, judge_seconds={bound:g}": (hedged, Budget(judge_seconds=bound)),
    }


def _runnable(url: str, name: str, how: How) -> Runnable[int, Any]:
    if how == "bare":
        return CHAIN
    if how == "small":
        judge, budget = RefChecker("small"), Budget()
    else:
        policy, budget = how
        judge = RefChecker(asking(url, name), claims="sentences", call_policy=policy)
    guard: Guard[int, Any] = Guard(
        CHAIN, judge, question=str, on_fail="abstain", budget=budget, on_error="closed"
    )
    return guard.with_trace()


@dataclass
class Row:
    """Hold what happened to all questions of a row."""

    seconds: list[float] = field(default_factory=list)
    """The seconds from each question to its answer; infinity if the answer was given up."""
    ended: Counter[str] = field(default_factory=Counter)
    requests: int = 0

    def share(self, *outcomes: str) -> float:
        """Return the percentage of the questions that had one of these outcomes."""
        return 100 * sum(self.ended[one] for one in outcomes) / len(self.seconds)

    def at(self, percent: float) -> float:
        """Return the latency that this percentage of the questions does not exceed."""
        ordered = sorted(self.seconds)
        return ordered[min(len(ordered) - 1, math.ceil(percent / 100 * len(ordered)) - 1)]


async def _run(runnable: Runnable[int, Any], arrivals: Sequence[float], patience: float) -> Row:
    row, started = Row(), time.monotonic()

    async def ask(item: int, due: float) -> None:
        await asyncio.sleep(started + due - time.monotonic())
        outcome, left = "given up", started + due + patience - time.monotonic()
        with suppress(asyncio.TimeoutError):
            found = await asyncio.wait_for(runnable.ainvoke(item), left)
            trace = getattr(found, "trace", None)
            outcome = "bare" if trace is None else trace.outcome
        took = time.monotonic() - started - due
        row.seconds.append(took if outcome != "given up" else math.inf)
        row.ended[outcome] += 1
        right = {"passed": item % _WRONG_EACH != 0, "abstained": item % _WRONG_EACH == 0}
        row.ended["wrong"] += not right.get(outcome, True)

    await asyncio.gather(*(ask(item, due) for item, due in enumerate(arrivals)))
    return row


# --- The table -----------------------------------------------------------------------------------


def main() -> None:
    """Measure, and print the figures."""
    parser = arguments(__doc__)
    parser.add_argument("--rate", type=float, default=8, help="questions a second, for each row")
    parser.add_argument(
        "--seconds", type=float, default=8, help="seconds of arrivals, for each case"
    )
    parser.add_argument("--bound", type=float, default=1.0, help="the budget's judge_seconds")
    parser.add_argument(
        "--hedge", type=float, default=0.15, help="the policy's hedge_after and timeout"
    )
    parser.add_argument(
        "--patience", type=float, default=4.0, help="seconds until an answer is given up"
    )
    parser.add_argument("--case", choices=CASES, action="append", help="measure only these cases")
    parser.add_argument("--seed", type=int, default=46, help="seed of the delays and failures")
    parser.add_argument("--serve", choices=CASES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        asyncio.run(_serve(options.serve, options.seed))
        return
    print(
        f"{options.rate:g} questions a second for "
        f"{options.seconds:g} s to each row, seed {options.seed}. Milliseconds.\n"
    )
    columns = ("p50", "p95", "p99", "longest", "added at p50", "p95", "p99")
    heads = ("judge", "", *columns, "passed", "refused", "undetermined", "given up", "requests")
    print(line(heads))
    print("|" + "---|" * 2 + "---:|" * (len(heads) - 2))
    notes = []
    for case in options.case or CASES:
        found, cpu = _case(case, options)
        for name, row in found.items():
            print(_line(case, name, row, found["bare chain"], options.patience), flush=True)
            if row.ended["wrong"]:
                notes.append(f"{case}, {name}: {row.ended['wrong']} wrong verdicts")
        busy = f"{case}: {cpu:.0%} of a core"
        notes.append(f"{busy}, over the goal of {_CPU_GOAL:.0%}" if cpu > _CPU_GOAL else busy)
    print("\nShares in percent; requests for each answer.")
    print("\n".join(notes))


def _case(case: str, options: argparse.Namespace) -> tuple[dict[str, Row], float]:
    """Return the rows of a case, and the share of a core that this process was busy."""
    draw = random.Random(f"{options.seed} arrivals")
    arrivals, at = [], 0.0
    while (at := at + draw.expovariate(options.rate)) < options.seconds:
        arrivals.append(at)

    def beginning_at(share: float) -> list[float]:
        return [(at + share * options.seconds) % options.seconds for at in arrivals]

    with served("bench.tails", "--serve", case, "--seed", options.seed) as ready:
        url = ready["url"]
        made = {name: _runnable(url, name, how) for name, how in rows(options).items()}

        async def side_by_side() -> tuple[list[Row], float]:
            for runnable in made.values():
                await runnable.ainvoke(_FIRST)
            wall, cpu = time.monotonic(), time.process_time()
            running = [
                _run(runnable, beginning_at(number / len(made)), options.patience)
                for number, runnable in enumerate(made.values())
            ]
            found = await asyncio.gather(*running)
            return found, (time.process_time() - cpu) / (time.monotonic() - wall)

        measured, busy = asyncio.run(side_by_side())
        found = dict(zip(made, measured, strict=True))
        with urlopen(url) as reply:  # the benchmark's own server
            counts = json.load(reply)
    for name, row in found.items():
        row.requests = max(0, counts.get(name, 0) - 1)  # without the request about _FIRST
    return found, busy


def _line(case: str, name: str, row: Row, bare: Row, patience: float) -> str:
    def ms(seconds: float) -> str:
        return f"{1000 * seconds:.0f}" if math.isfinite(seconds) else f"> {1000 * patience:.0f}"

    percents = (50.0, 95.0, 99.0)
    cells = [case, name, *(ms(row.at(percent)) for percent in (*percents, 100.0))]
    if row is bare:
        cells += [""] * 8
    else:
        cells += [ms(row.at(percent) - bare.at(percent)) for percent in percents]
        ended = [("passed",), ("abstained",), ("evaluator_failed",), ("given up",)]
        cells += [f"{row.share(*outcomes):.1f}" for outcomes in ended]
        cells.append(f"{row.requests / len(row.seconds):.3f}")
    return line(cells)


if __name__ == "__main__":
    main()
