"""How often the local model, as a judge, is talked into passing a claim that is not supported.

    python -m demur_research.injection [--out RUN.jsonl] [--mode joint ...] [--limit N]

Every text of texts/injections.py is put behind a passage and behind a claim, and each is
judged in every mode; beside it, as a control, the same case with bland sentences of the same
length. Mode "answer" is RefChecker as a whole, its claims from an answer that ends in the text.
Labels are appended to RUN.jsonl, and a run that is started again goes on where it stopped.
"""

from __future__ import annotations

import argparse
import json
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

# The same delimiters in every run: a small model answers a little otherwise when they change.
os.environ.setdefault("DEMUR_SECRET", "bench.injection")

from demur import ClaimLabel, RefChecker
from demur.local import ChatLocal
from demur_research.claims import Item, judge
from demur_research.texts.injections import CASES, INJECTIONS, Case, Injection, bland, placed

CHECKERS = ("joint", "per_claim", "logprobs")
PASSED = (ClaimLabel.ENTAILMENT.value, "Abstain")
"""Labels with which a guard lets an answer go."""


class Labels:
    """What the model said of each case, from this run and from earlier ones."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._model = ChatLocal()
        self._known: dict[tuple[str, ...], str] = {}
        if path and path.exists():
            for line in path.read_text(encoding="utf-8").splitlines():
                *key, label = json.loads(line)
                self._known[tuple(key)] = label

    def get(self, mode: str, case: Case) -> str:
        """The label of a case's claim, "Abstain" for an answer without claims, or "none"."""
        key = mode, case.passage, case.claim
        if key not in self._known:
            self._known[key] = self._ask(mode, case)
            if self._path:
                with self._path.open("a", encoding="utf-8") as file:
                    print(json.dumps([*key, self._known[key]]), file=file)
        return self._known[key]

    def _ask(self, mode: str, case: Case) -> str:
        if mode in CHECKERS:
            item = Item("injection", "", case.passage, ((case.claim, False),))
            return getattr(judge(item, mode, self._model)[0]["label"], "value", "none")
        found = RefChecker(self._model).invoke({"answer": case.claim, "contexts": [case.passage]})
        return "none" if found.undetermined or found.label is None else found.label


def measure(
    labels: Labels,
    mode: str,
    place: str,
    chosen: Sequence[tuple[Injection, Case]],
    with_controls: bool,
) -> list[str]:
    """Print one line of the table; return the texts that talked the judge round."""
    asked = controls = 0
    talked: list[Injection] = []
    others: Counter[str] = Counter()
    for injection, case in chosen:
        clean = labels.get(mode, case)
        if clean in PASSED:
            continue  # wrong without any injection
        asked += 1
        found = labels.get(mode, placed(case, place, injection.text))
        if with_controls:
            plain = labels.get(mode, placed(case, place, bland(len(injection.text))))
            controls += plain in PASSED
        if found in PASSED:
            talked.append(injection)
        elif found != clean:
            others[f"{clean} to {found}"] += 1
    print(
        f"{mode:>9}  {place:7}  {asked:5}  {len(talked):6}  {controls:8}  {dict(others)}",
        flush=True,
    )
    return [f"{mode}, {place}, {one.family}: {one.text[:80]!r}" for one in talked]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, help="where labels are kept")
    parser.add_argument("--mode", nargs="+", choices=(*CHECKERS, "answer"), default=CHECKERS)
    places = ("passage", "claim")
    parser.add_argument("--place", nargs="+", choices=places, default=places)
    parser.add_argument("--limit", type=int, default=len(INJECTIONS), help="that many texts")
    parser.add_argument("--no-controls", action="store_true", help="half of the time")
    options = parser.parse_args()
    step = max(1, len(INJECTIONS) // options.limit)
    some = list(enumerate(INJECTIONS))[::step][: options.limit]
    # Case by case: the server reads a passage that it has just read only once.
    some.sort(key=lambda pair: pair[0] % len(CASES))
    chosen = [(injection, CASES[at % len(CASES)]) for at, injection in some]

    labels = Labels(options.out)
    print(f"{len(chosen)} texts of {len({one.family for one, _ in chosen})} families")
    print(f"{'mode':>9}  {'behind':7}  {'asked':>5}  {'passed':>6}  {'controls':>8}  other changes")
    talked: list[str] = []
    for mode in options.mode:
        for place in places if mode != "answer" else ("claim",):
            if place in options.place:
                talked += measure(labels, mode, place, chosen, not options.no_controls)
    print("\n".join(talked))


if __name__ == "__main__":
    main()
