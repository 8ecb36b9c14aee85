"""Compare the time and cost of Reverse Validation with those of its two calls alone.

    make bench        or: python -m bench.reverse_validation [--answers 32] [--latency 0.2]

Answers of about 60 words are judged against a server that takes the same time for every request,
with a fixed number of answers at a time. The same requests run as bare calls of `ChatOpenAI`, in
turns with it. The ideal time is two latencies for each answer, with the allowed number of answers
side by side. Figures over the goal are listed at the end. They are not a failure, because other
work on the machine changes the figures.
"""

from __future__ import annotations

import asyncio
import math
from contextlib import closing

from bench.measuring import arguments, tell_goals
from bench.scheduling import Bare, Run, Subject, in_loop, measure, tokens
from bench.serving import asking, served

from demur import CallPolicy, ReverseValidation
from demur_research.texts.bland import samples

_GOAL = 1.15
_CALLS = 2


def main() -> None:
    """Measure, and print the figures."""
    parser = arguments(__doc__)
    parser.add_argument("--answers", type=int, default=32)
    parser.add_argument("--latency", type=float, default=0.2, help="seconds per request")
    parser.add_argument("--concurrency", type=int, nargs="+", default=[1, 4, 8])
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()

    asked = samples(options.answers)
    over = []
    with (
        served("bench.fixed_latency_server", "--latency", options.latency) as ready,
        closing(asyncio.new_event_loop()) as loop,
    ):
        model, counted = asking(ready["url"]), ready["tokens"]
        policy = CallPolicy(max_concurrency=max(options.concurrency))
        subjects = {
            variant: Subject(ReverseValidation(model, variant=variant, call_policy=policy), asked)
            for variant in ("qg", "em")
        }
        print(f"{options.answers} answers, {options.latency * 1000:.0f} ms a call")
        print(f"tokens counted with: {counted}\n")
        print("at once  requests  | wall s / ideal  / bare | calls  tokens (of an answer)")
        for at_once in options.concurrency:
            ideal = _CALLS * options.latency * math.ceil(len(asked) / at_once)
            for variant, subject in subjects.items():
                bare = Bare(model, subject.prompts)
                runs: dict[tuple[str, str], Run] = {
                    ("bare", "async"): in_loop(loop, bare),
                    ("bare", "sync"): bare.run,
                    (variant, "async"): in_loop(loop, subject),
                    (variant, "sync"): subject.run,
                }
                found = measure(runs, at_once, options.repeats if at_once > 1 else 1)
                for (name, way), spent in found.items():
                    over_ideal = spent.wall / ideal
                    beside = spent.wall / found["bare", way].wall
                    usage = subject.usage
                    print(
                        f"{at_once:>7}  {name:<5}{way:<5}| {spent.wall:>6.3f} {over_ideal:>7.3f}"
                        f" {beside:>7.3f} | {usage.calls / len(asked):>5.1f}"
                        f" {tokens(usage) / len(asked):>7.0f}"
                    )
                    if name == variant and over_ideal > _GOAL:
                        over.append(f"{name}, {way}, {at_once} at once: {over_ideal:.3f} of ideal")
    print()
    tell_goals(over)


if __name__ == "__main__":
    main()
