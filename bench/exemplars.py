"""Compare selecting few-shot examples with the bare search, and measure building a store.

    make bench        or: python -m bench.exemplars [--questions 1000 10000] [--asked 200]
    python -m bench.exemplars --questions 1000 10000 100000

The second command measures the full size. The store (Chroma, in a folder) is the real one, with
three scored answers to each question. "Bare" is the way without demur: a plain Chroma collection of
the same questions and vectors, with the best answer as metadata. For a new question it computes
MiniLM's vector and runs one query for five neighbours. "In the store" is this query of the store's
collection.

All ways take turns, each time with a question that was never asked before. Computing 100,000
vectors by MiniLM takes minutes, so the stored vectors are made up around MiniLM's vectors of a few
questions. That changes nothing in what is measured.

Figures over their goals are listed at the end. They are not a failure, because other work on the
machine changes the figures, wall times more than CPU times. Chroma's threads leave holes in memory.
With MALLOC_ARENA_MAX=1 the peaks show only the memory in use.
"""

from __future__ import annotations

import asyncio
import random
import statistics
import sys
import tempfile
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import chromadb
import numpy as np
from bench import exemplar_texts as made
from bench.measuring import (
    Clock,
    Spent,
    alone,
    arguments,
    line,
    load,
    peak_mb,
    tell_goals,
)

from demur import DemurError, ExampleStore, FEWLExampleSelector
from demur.local import MiniLM

_RATIO_GOAL, _GROWTH_GOAL, _BUILD_GOAL = 1.2, 16.0, 4.0
_BARE = "bare"
_PART = 200
_K = 5
_WARM_UP = 30

Select = Callable[[str], object]


def main() -> None:
    """Measure, and print the figures."""
    parser = arguments(__doc__)
    parser.add_argument(
        "--questions", type=int, nargs="+", default=[1000, 10_000], help="stored questions"
    )
    parser.add_argument("--asked", type=int, default=200, help="new questions for each way")
    parser.add_argument("--keep", type=Path, help="folder that keeps the stores for the next run")
    options = parser.parse_args()
    try:
        MiniLM()
    except DemurError as error:
        sys.exit(f"there is nothing to embed new questions with: {error}")
    print(load())
    over = []
    with tempfile.TemporaryDirectory(prefix="demur-bench-") as temporary:
        for count in options.questions:
            folder = (options.keep or Path(temporary)) / str(count)
            if not folder.exists():
                over += _tell_built(
                    count, alone(built, folder, count), alone(built_bare, folder / _BARE, count)
                )
            found = alone(selected, folder, count, options.asked)
            over += _tell_selected(count, options.asked, found)
    print(load())
    tell_goals(over)


# --- Building -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Built:
    """Hold what `add_many` took, with all vectors computed beforehand."""

    spent: Spent
    before_mb: float
    """The peak resident memory before the first question, in MB."""
    peak_mb: float


def built(folder: Path, count: int) -> Built:
    """Make a store of `count` questions with given scores, in one call."""
    embedding, clock = _warm(), Clock()
    store = ExampleStore(folder, embedding=embedding)
    before = peak_mb()
    with clock:
        fitted = store.add_many(map(made.item, range(count)))
    if fitted.failed or len(store) != count:
        raise RuntimeError(f"expected {count} questions, got {len(store)}: {fitted.failed[:3]}")
    store.close()
    return Built(clock.total, before, peak_mb())


def built_bare(folder: Path, count: int) -> Built:
    """Make a plain collection of the same questions, each with its best answer."""
    embedding, clock = _warm(), Clock()
    collection = chromadb.PersistentClient(str(folder)).create_collection(
        _BARE, configuration={"hnsw": {"space": "cosine"}}, embedding_function=None
    )
    before = peak_mb()
    with clock:
        for start in range(0, count, _PART):
            items = [made.item(number) for number in range(start, min(count, start + _PART))]
            collection.add(
                [str(start + at) for at in range(len(items))],
                embeddings=np.asarray(
                    embedding.embed_documents([question for question, _, _ in items]), np.float32
                ),
                metadatas=[
                    {"question": question, "answer": answers[scores.index(max(scores))]}
                    for question, answers, scores in items
                ],
            )
    return Built(clock.total, before, peak_mb())


def _warm() -> made.Near:
    """Return the embedding with nearly all of MiniLM's vectors computed."""
    embedding = made.Near()
    embedding.embed_documents([made.question(number) for number in range(5000)])
    return embedding


def _tell_built(count: int, store: Built, bare: Built) -> list[str]:
    print(f"{count:,} questions with {made.CANDIDATES} scored answers each, by one add_many:\n")
    print("| | a second | ms of CPU each | MB before | MB at peak |\n|---|---|---|---|---|")
    for name, found in (("store", store), ("plain collection", bare)):
        spent = f"{count / found.spent.wall:,.0f}", f"{found.spent.cpu / count * 1000:.2f}"
        print(line([name, *spent, f"{found.before_mb:.0f}", f"{found.peak_mb:.0f}"]))
    print(flush=True)
    ratio = store.spent.cpu / bare.spent.cpu
    return [f"building {count:,}: {ratio:.1f} times Chroma's CPU"] if ratio > _BUILD_GOAL else []


# --- Selecting ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Selected:
    """Hold what each way took for a question, and the memory of the whole run."""

    spent: dict[str, Spent]
    """The medians of each way."""
    opened_mb: float
    """The peak resident memory after each way was used once, in MB."""
    half_mb: float
    """The same after half of the questions."""
    peak_mb: float
    ceiling: float
    """The value of `max_similarity`, which the nearest neighbour of every second question
    exceeds."""


def selected(folder: Path, count: int, asked: int) -> Selected:
    """Select examples for `asked` new questions, with the ways in turns."""
    store = ExampleStore(folder)
    new = (made.question(number) for number in range(count, sys.maxsize))
    nearest = [store.nearest(next(new), 1)[0].similarity for _ in range(_WARM_UP)]
    ceiling = statistics.median(nearest)
    with closing(asyncio.new_event_loop()) as loop:
        ways = _ways(store, folder, ceiling, loop)
        for _ in range(_WARM_UP):
            for select in ways.values():
                select(next(new))
        clocks = {name: Clock() for name in ways}
        opened = half = peak_mb()
        names = list(ways)
        for turn in range(asked):
            # A way profits from the caches of the one before it, so their order changes.
            random.Random(turn).shuffle(names)
            for name in names:
                question = next(new)
                with clocks[name]:
                    ways[name](question)
            half = peak_mb() if 2 * turn < asked else half
    store.close()
    spent = {name: clock.median for name, clock in clocks.items()}
    return Selected(spent, opened, half, peak_mb(), ceiling)


def _ways(
    store: ExampleStore, folder: Path, ceiling: float, loop: asyncio.AbstractEventLoop
) -> dict[str, Select]:
    embedding = MiniLM()

    def bare(place: Path, name: str) -> Select:
        client = chromadb.PersistentClient(str(place))
        collection = client.get_collection(name, embedding_function=None)

        def search(question: str) -> None:
            vectors = np.asarray(embedding.embed_documents([question]), np.float32)
            found = collection.query(query_embeddings=[vectors[0]], n_results=_K)
            _check(len(found["ids"][0]))

        return search

    def select(**options: Any) -> Select:
        selector = FEWLExampleSelector(store, k=_K, **options)
        return lambda question: _check(len(selector.select_examples({"question": question})))

    waiting = FEWLExampleSelector(store, k=_K)

    def in_loop(question: str) -> None:
        examples = waiting.aselect_examples({"question": question})
        _check(len(loop.run_until_complete(examples)))

    return {
        "bare": bare(folder / _BARE, _BARE),
        "bare, in the store": bare(folder, "exemplars"),
        "select": select(),
        "select, async": in_loop,
        "max_similarity": select(max_similarity=ceiling),
        "min_score": select(min_score=made.MEDIAN_BEST),
    }


def _check(count: int) -> None:
    if count != _K:
        raise RuntimeError(f"expected {_K} examples, got {count}")


def _tell_selected(count: int, asked: int, found: Selected) -> list[str]:
    print(f"Selecting {_K} of {count:,}, ms per question, medians over {asked} for each way:\n")
    print("| way | wall | to bare | CPU | to bare |\n|---|---|---|---|---|")
    over = []
    bare = found.spent["bare"]
    for name, spent in found.spent.items():
        ratios = spent.wall / bare.wall, spent.cpu / bare.cpu
        wall, cpu = 1000 * spent.wall, 1000 * spent.cpu
        print(line([name, *(f"{one:.2f}" for one in (wall, ratios[0], cpu, ratios[1]))]))
        if max(ratios) > _RATIO_GOAL:
            over.append(f"{name} of {count:,}: {ratios[0]:.2f} of bare, CPU {ratios[1]:.2f}")
    growth = found.peak_mb - found.half_mb
    print(
        f"\n(max_similarity={found.ceiling:.2f}, which every second question's nearest reaches; "
        f"min_score={made.MEDIAN_BEST:.2f}, which half of the\nstored reach)\n"
        f"Peak memory: {found.opened_mb:.0f} MB once all was read, {found.half_mb:.0f} MB after "
        f"half of the questions, {found.peak_mb:.0f} MB at the end\n",
        flush=True,
    )
    if growth > _GROWTH_GOAL:
        over.append(f"memory of {count:,}: {growth:.0f} MB more over the second half")
    return over


if __name__ == "__main__":
    main()
