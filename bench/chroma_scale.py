"""Measure how a store in Chroma grows: the time to fill, open and query it, and its size.

    make bench        or: python -m bench.chroma_scale [--entries 2000 10000]
    python -m bench.chroma_scale --entries 10000 100000 1000000

The second command measures the full size, which takes an hour. The store is FEWL's `NeighborStore`
in a folder. A question is some words of one of many topics. Its vector is the sum of a vector for
each word (384 numbers, as for MiniLM), and two short answers to it are known. Each size is measured
in its own process. The process opens the store and asks for the 25 nearest neighbours of new
questions, one by one and many at once.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from bench import fewl_texts as made
from bench.measuring import Clock, Spent, alone, arguments, line, load, peak_mb

from demur.evaluators import NeighborStore
from demur.evaluators.fewl.neighbors import KnownQuestion

_PART = 1000
_ASKED = 300
_CEILING = 0.8


@dataclass(frozen=True)
class Asked:
    """Hold what a store of one size takes."""

    opened: float
    """The seconds until the first question was answered."""
    singly: Spent
    together: Spent
    gb: float
    """The peak resident memory of the process, in GB."""
    found: float
    """The neighbours found for a question, on average."""


def main() -> None:
    """Measure, and print the figures."""
    parser = arguments(__doc__)
    parser.add_argument("--entries", type=int, nargs="+", default=[2000, 10_000])
    options = parser.parse_args()
    print(load())
    print(
        "| questions | to add one, ms (CPU) | on disk, GB | to open, s | memory, GB |"
        " nearest, ms (CPU) | of many at once, ms (CPU) | found |\n"
        "|---:|---:|---:|---:|---:|---:|---:|---:|"
    )
    most = max(options.entries)
    with tempfile.TemporaryDirectory(prefix="demur-bench-") as temporary:
        folder, before = Path(temporary), 0
        for count in sorted(options.entries):
            filling = alone(filled, folder, before, count, most)
            asked = alone(asked_of, folder, count, most)
            size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / 1e9
            cells = (
                *(f"{count:,}", _each(filling, count - before)),
                *(f"{size:.2f}", f"{asked.opened:.1f}", f"{asked.gb:.2f}"),
                *(_each(asked.singly, _ASKED), _each(asked.together, _ASKED)),
                f"{asked.found:.1f}",
            )
            print(line(cells), flush=True)
            before = count


def filled(folder: Path, first: int, count: int, most: int) -> Spent:
    """Add the questions from number `first` to `count`, and return the time that it took."""
    clock = Clock()
    store = NeighborStore(folder, embedding=made.WordVectors())
    questions = _questions(first, count, most)
    while part := list(islice(questions, _PART)):
        with clock:
            store.add_many(part)
    store.close()
    return clock.total


def asked_of(folder: Path, count: int, most: int) -> Asked:
    """Open a store, and ask for the neighbours of new questions."""
    opening, singly, together = Clock(), Clock(), Clock()
    with opening:
        store = NeighborStore(folder, embedding=made.WordVectors())
        store.nearest("what opens the index?", made.K, _CEILING)
    new = [known.question for known in _questions(most, most + 2 * _ASKED, most)]
    with singly:
        near = [store.nearest(question, made.K, _CEILING) for question in new[:_ASKED]]
    with together:
        near += store.nearest_many(new[_ASKED:], made.K, _CEILING)
    store.close()
    gb, found = peak_mb() * 1024 / 1e6, sum(map(len, near)) / len(near)
    return Asked(opening.total.wall, singly.total, together.total, gb, found)


def _questions(first: int, last: int, most: int) -> Iterator[KnownQuestion]:
    for at in range(first, last):
        question = made.question(at, made.topics(most))
        yield KnownQuestion(question, (f"It is {at}.", f"It may be {at}."))


def _each(spent: Spent, count: int) -> str:
    return f"{1000 * spent.wall / count:.2f} ({1000 * spent.cpu / count:.2f})"


if __name__ == "__main__":
    main()
