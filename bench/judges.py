"""Measure the judges of demur's own: "small", and the adapter of "local" beside the model itself.

    make bench        or: python -m bench.judges [--rounds 5] [--local]

Each check is of three sentences over three passages of 75 words, two of them supported. "small" is
measured in a fresh interpreter, from the import on. With `--local`, the adapter and the model's own
log-probabilities take turns, each with passages that it has not read yet, so that nothing is in the
server's cache. Then each is asked about one more sentence over the same passages.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from collections import defaultdict

from bench.measuring import Clock, arguments

PASSAGES = (
    "The town library of Brunnau opened in 1911 in a former corn store beside the river. It has "
    "two floors and a reading room for children under the roof. Books are lent for four weeks, and "
    "films for one. Who brings a book back late pays twenty cents a day, but never more than five "
    "euros. The library is closed on Mondays, and on the first Friday of every month it stays open "
    "until ten in the evening for readings.",
    "Line 7 of the tram runs from the harbour to the zoo in thirty-one minutes. Cars follow each "
    "other every eight minutes on weekdays, and every fifteen on Sundays. Bicycles may be taken "
    "along after nine in the morning at no charge. Between the theatre and the hospital the line "
    "is under repair until March, and buses take its place there. Tickets of the tram are valid in "
    "these buses, and drivers sell none.",
    "The recipe for the bread needs a kilogram of flour, seven hundred grams of water, twenty "
    "grams of salt and a spoon of yeast. The dough rests for twelve hours in a cool room, and is "
    "folded twice in the first two. It is baked for forty minutes at two hundred and thirty "
    "degrees, the first half of them under a lid. The loaf must cool for two hours before it is "
    "cut, or the crumb will stick to the knife.",
)
ANSWER = (
    "The library is closed on Mondays. Line 7 takes thirty-one minutes from the harbour to the "
    "zoo. The bread is baked for ninety minutes."
)
FURTHER = "Films are lent for one week."
_SMALL = """
import json, resource, sys, time
before = time.perf_counter()
from demur import RefChecker
imported = time.perf_counter()
sample = json.loads(sys.argv[1])
checker = RefChecker("small")
checker.invoke({"answer": "It is.", "contexts": ["It is so."], "question": "Is it?"})
loaded = time.perf_counter()
taken = []
for _ in range(int(sys.argv[2])):
    started = time.perf_counter()
    found = checker.invoke(sample)
    taken.append(time.perf_counter() - started)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps([imported - before, loaded - imported, taken, peak, found.score]))
"""


def _small(rounds: int) -> None:
    sample = json.dumps({"answer": ANSWER, "contexts": PASSAGES})
    command = [sys.executable, "-c", _SMALL, sample, str(rounds)]
    said = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    imported, loaded, taken, peak, score = json.loads(said)
    print(f"import of demur           {imported:.2f} s")
    print(f"small: files and session  {loaded:.2f} s")
    print(
        f"small: 3 sentences over 3 passages  median {statistics.median(taken):.2f} s "
        f"(from {min(taken):.2f} to {max(taken):.2f}), score {score:.2f}"
    )
    print(f"small: memory of the process, at most  {peak:.0f} MB")


def _local(rounds: int) -> None:
    from demur import RefChecker, resolve_model

    model = resolve_model("local")
    model.invoke("Say hello.", max_tokens=1)
    checkers = {name: RefChecker(model, checker=name) for name in ("adapter", "logprobs")}
    answers = {"3 sentences": ANSWER, "1 more": FURTHER}
    taken: dict[tuple[str, str], Clock] = defaultdict(Clock)
    for number in range(rounds):
        for name, checker in checkers.items():
            contexts = [f"Page {number} for {name}. {text}" for text in PASSAGES]
            for what, answer in answers.items():
                with taken[what, name]:
                    checker.invoke({"answer": answer, "contexts": contexts})
    for what in answers:
        medians = {name: taken[what, name].median.wall for name in checkers}
        for name, median in medians.items():
            walls = taken[what, name].walls
            low, high = min(walls), max(walls)
            print(f"local, {what}, {name:<9} median {median:.1f} s (from {low:.1f} to {high:.1f})")
        print(f"adapter / logprobs, {what}: {medians['adapter'] / medians['logprobs']:.2f}")


def main() -> None:
    """Measure, and print the figures."""
    parser = arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--local", action="store_true", help="measure the local model too")
    options = parser.parse_args()
    _small(options.rounds)
    if options.local:
        _local(options.rounds)


if __name__ == "__main__":
    main()
