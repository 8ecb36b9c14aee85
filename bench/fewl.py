"""Measure what FEWL costs beside its model calls: time, memory, neighbours, similarities.

    make bench        or: python -m bench.fewl [--questions 500 1000] [--parts scale lookup ...]
    python -m bench.fewl --questions 1000 2000 5000 10000 --embedded 737 10000 --data DIR

The second command measures the full size. The evaluator, the store (Chroma, in a folder) and the
similarity are the real ones. What the models would say is made up beforehand
(`bench/fewl_texts.py`), so no model is called. Each measurement of time has its own process. Wall
times include other work on the machine. CPU times do not, but they grow too if cores and caches are
shared. DIR has `chale/chale.jsonl`. Figures over their goals are listed at the end, and are not a
failure.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from bench import fewl_texts as made
from bench.fewl_texts import Item, WordVectors, overlap
from bench.measuring import Clock, Spent, alone, arguments, load, peak_mb, tell_goals
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatResult

from demur import DemurError
from demur.evaluators import FEWL, NeighborStore
from demur.local import MiniLM
from demur.similarity import Similarity, resolve_similarity

_FLAT_GOAL, _MB_GOAL, _LOOKUP_GOAL, _PAIRS_GOAL = 1.25, 2048, 2.5, 0.55
_PART = 200
_CEILING = 0.8
_LOOKUPS = 300
_SIMILARITIES = ("overlap", "cosine")
_SIDES = ("non_hallu", "half_hallu", "hallu")


class Silent(BaseChatModel):
    """Stand for a model that must not be called."""

    @property
    def _llm_type(self) -> str:
        return "silent"

    def _generate(self, messages: list[BaseMessage], *args: Any, **options: Any) -> ChatResult:
        raise RuntimeError("a model was called, although all of its replies are known")


def main() -> None:
    """Measure, and print the figures."""
    parser = arguments(__doc__)
    parser.add_argument("--questions", type=int, nargs="+", default=[500, 1000])
    parser.add_argument("--stored", type=int, nargs="*", default=[737, 10000])
    parser.add_argument(
        "--embedded",
        type=int,
        nargs="*",
        default=[737],
        help="stored questions, with MiniLM's vectors",
    )
    parser.add_argument("--data", type=Path, help="the folder that has chale/")
    parser.add_argument("--rows", type=int, default=300, help="rows of CHALE")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    options = parser.parse_args()
    print(load())
    over = [line for part in options.parts for line in PARTS[part](options)]
    print(load())
    tell_goals(over)


# --- Time and memory ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Scored:
    """Hold what scoring the three answers of each question took."""

    filling: Spent
    scoring: Spent
    mb: float
    """The peak resident memory of the process, in MB."""
    asked: int
    evaluated: int
    embedded: int


def _scale(options: argparse.Namespace) -> list[str]:
    print(
        f"Three answers a question, {made.N} references, {made.R} pairs, {made.K} neighbours each;"
        f"\ntwo answers are equal for one question in {made.EQUAL_WRONG}. ms per question:\n"
        "similarity  questions | fill wall   CPU | score wall   CPU  CPU, to first | peak MB | "
        "pairs scored  texts embedded"
    )
    over = []
    for name in _SIMILARITIES:
        first = 0.0
        for count in options.questions:
            found = alone(scored, count, name)
            cpu = 1000 * found.scoring.cpu / count
            first = first or cpu
            print(
                f"{name:<10} {count:>10} | {1000 * found.filling.wall / count:>9.2f} "
                f"{1000 * found.filling.cpu / count:>5.2f} | "
                f"{1000 * found.scoring.wall / count:>10.1f} {cpu:>5.1f} {cpu / first:>14.2f} | "
                f"{found.mb:>7.0f} | {found.evaluated / found.asked:>12.3f} "
                f"{found.embedded / (2 * found.asked):>15.3f}",
                flush=True,
            )
            if cpu / first > _FLAT_GOAL:
                over.append(f"{name}, {count} questions: {cpu / first:.2f} times the first's CPU")
            if found.mb > _MB_GOAL:
                over.append(f"{name}, {count} questions: {found.mb:.0f} MB")
    print("(pairs over N*2R + N*K + N per answer, texts over twice that)\n")
    return over


def scored(count: int, name: str) -> Scored:
    """Fill a store with `count` questions, and score the answers to each."""
    embeddings = WordVectors()
    similarity = _similarity(name, embeddings)
    filling, scoring = Clock(), Clock()
    with _folder() as folder:
        store = NeighborStore(folder, embedding=WordVectors())
        _fill(store, made.items(count), filling)
        fewl = FEWL(Silent(), similarity=similarity, neighbors=store, penalty=True)
        for part in _parts(made.items(count)):
            with scoring:
                _score(fewl, part)
        store.close()
    return Scored(
        filling.total,
        scoring.total,
        peak_mb(),
        similarity.asked,
        similarity.evaluated,
        embeddings.embedded,
    )


def _similarity(name: str, embeddings: Embeddings) -> Similarity:
    return resolve_similarity(embeddings if name == "cosine" else overlap)


def _fill(store: NeighborStore, items: Iterable[Item], clock: Clock) -> None:
    for part in _parts(items):
        with clock:
            store.add_many([one.asked for one in part])


def _score(fewl: FEWL, items: Iterable[Item], neighbors: int | None = made.K) -> None:
    for one in items:
        for answer in one.answers:
            found = fewl.invoke({"question": one.asked.question, "answer": answer})
            if found.score is None or found.usage.calls:
                raise RuntimeError(
                    f"expected a score without a call, got {found.usage.calls} calls and: "
                    f"{found.explanation}"
                )
            if neighbors not in (None, found.details["neighbors_used"]):
                raise RuntimeError(f"expected {neighbors} neighbours, got fewer")


# --- Neighbours ---------------------------------------------------------------------------------


def _lookup(options: argparse.Namespace) -> list[str]:
    print("ms per question to find its neighbours")
    print("vectors of          stored | questions             | wall   CPU")
    over = []
    runs: list[tuple[type[Embeddings], int]] = [(WordVectors, at) for at in options.stored]
    try:
        MiniLM()
    except DemurError as error:
        print(f"without MiniLM: {error}")
    else:
        runs += [(MiniLM, at) for at in options.embedded]
    for kind, count in runs:
        for way, spent in alone(looked_up, kind, count).items():
            wall, cpu = (1000 * seconds / _LOOKUPS for seconds in (spent.wall, spent.cpu))
            print(
                f"{kind.__name__:<14} {count:>11} | {way:<21} | {wall:>5.2f} {cpu:>5.2f}",
                flush=True,
            )
            if cpu > _LOOKUP_GOAL and "known" in way:
                over.append(f"neighbours, {count} stored, {way}: {cpu:.2f} ms of CPU")
    print(
        "(the store was opened again: at first what the references said is read from disk, and is "
        "in memory\nlater; the vector of a new question is computed, by MiniLM or as a sum of its "
        "words' vectors, that of\na known one is read)\n"
    )
    return over


def looked_up(kind: type[Embeddings], count: int) -> dict[str, Spent]:
    """Return what finding the neighbours of `_LOOKUPS` questions takes, in each way."""
    clocks: dict[str, Clock] = {}
    topics = made.topics(count)
    stride = max(2, count // _LOOKUPS)
    known = [made.item(at * stride % count, topics) for at in range(_LOOKUPS)]
    others = [made.item((at * stride + 1) % count, topics) for at in range(_LOOKUPS)]
    new = [made.item(count + at, topics) for at in range(2 * _LOOKUPS)]
    samples = {
        "known, at first": known,
        "known, all read": others,
        "known, many at once": known,
        "new": new[:_LOOKUPS],
        "new, many at once": new[_LOOKUPS:],
    }
    with _folder() as folder:
        store = NeighborStore(folder, embedding=kind())
        _fill(store, made.items(count), Clock())
        store.close()
        store = NeighborStore(folder, embedding=kind())
        store.nearest("what opens the index and loads the model?", made.K, _CEILING)
        for way, sample in samples.items():
            questions = [one.asked.question for one in sample]
            if "all read" in way:
                store.questions()
            clocks[way] = Clock()
            with clocks[way]:
                if "many" in way:
                    near = store.nearest_many(questions, made.K, _CEILING)
                else:
                    near = [store.nearest(one, made.K, _CEILING) for one in questions]
            if {len(one) for one in near} != {made.K}:
                raise RuntimeError(f"expected {made.K} neighbours of every question")
        store.close()
    return {way: clock.total for way, clock in clocks.items()}


# --- Similarities -------------------------------------------------------------------------------


def _pairs(options: argparse.Namespace) -> list[str]:
    if options.data is None:
        print("similarities on CHALE: left out, for want of --data\n")
        return []
    over = []
    print("CHALE's rows          | similarity | pairs an answer  of them scored  texts embedded")
    for kind, rows in _chale(options.data, options.rows).items():
        for name in _SIMILARITIES:
            embeddings = WordVectors()
            similarity = _similarity(name, embeddings)
            store = NeighborStore(embedding=WordVectors())
            _fill(store, rows, Clock())
            penalised = FEWL(Silent(), similarity=similarity, neighbors=store, penalty=True)
            _score(penalised, rows, None)
            share = similarity.evaluated / similarity.asked
            print(
                f"{len(rows):>4}, {kind:<15} | {name:<10} | "
                f"{similarity.asked / 3 / len(rows):>15.1f} {share:>15.3f} "
                f"{embeddings.embedded / (2 * similarity.asked):>15.3f}",
                flush=True,
            )
            if share > _PAIRS_GOAL and name == "overlap":
                over.append(f"CHALE, {kind}: {share:.3f} of the pairs are scored")
    print(
        "(unlike: without the rows whose two wrong answers are equal; references' answers and "
        "pairs are made up)\n"
    )
    return over


def _chale(folder: Path, count: int) -> dict[str, list[Item]]:
    """Return CHALE's questions and answers, with made-up answers of the references."""
    with (folder / "chale" / "chale.jsonl").open(encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    unlike = [row for row in rows if not row["flags"]["half_equals_hallu"]]
    return {
        kind: [
            Item(
                replace(one.asked, question=row["question"]),
                tuple(row[side] for side in _SIDES),
            )
            # Spread over the file, which is in the order of its sources.
            for one, row in zip(
                made.items(count), some[:: max(1, len(some) // count)], strict=False
            )
        ]
        for kind, some in {"all": rows, "unlike": unlike}.items()
    }


def _parts(items: Iterable[Item]) -> Iterator[list[Item]]:
    """Yield the items in parts, so that only one part is in memory at a time."""
    waiting = iter(items)
    while part := list(islice(waiting, _PART)):
        yield part


@contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="demur-bench-") as folder:
        yield Path(folder)


PARTS: dict[str, Callable[[argparse.Namespace], list[str]]] = {
    "scale": _scale,
    "lookup": _lookup,
    "pairs": _pairs,
}


if __name__ == "__main__":
    main()
