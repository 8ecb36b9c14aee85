"""Measure time and memory in the same way for every benchmark, and print what all of them print."""

from __future__ import annotations

import argparse
import multiprocessing
import os
import resource
import statistics
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TypeVar

K = TypeVar("K")
T = TypeVar("T")


def arguments(doc: str) -> argparse.ArgumentParser:
    """Return a parser whose help begins with the first line of a module's docstring."""
    return argparse.ArgumentParser(description=doc.partition("\n")[0])


# --- Time ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Spent:
    """Hold what something took."""

    wall: float
    """The wall time in seconds."""
    cpu: float
    """The CPU seconds of this process, in all its threads."""


@dataclass
class Clock:
    """Measure a `with` block, as often as it is entered."""

    spent: list[Spent] = field(default_factory=list)

    def __enter__(self) -> None:
        self._began = time.perf_counter(), time.process_time()

    def __exit__(self, *error: object) -> None:
        wall, cpu = self._began
        self.spent.append(Spent(time.perf_counter() - wall, time.process_time() - cpu))

    @property
    def walls(self) -> list[float]:
        """Return the wall time of each block."""
        return [one.wall for one in self.spent]

    @property
    def total(self) -> Spent:
        """Return what all blocks took together."""
        return Spent(sum(self.walls), sum(one.cpu for one in self.spent))

    @property
    def median(self) -> Spent:
        """Return the medians of the blocks."""
        cpu = statistics.median(one.cpu for one in self.spent)
        return Spent(statistics.median(self.walls), cpu)

    @property
    def typical(self) -> Spent:
        """Return the median wall time, and the least CPU time: other work can only add to that."""
        return Spent(self.median.wall, min(one.cpu for one in self.spent))


def in_turns(runs: Mapping[K, Callable[[], object]], rounds: int) -> dict[K, Clock]:
    """Run functions in turns, so that a machine that slows down slows all of them."""
    clocks = {name: Clock() for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            with clocks[name]:
                run()
    return clocks


def seconds(work: Callable[[], object]) -> float:
    """Return the wall time of a function."""
    clock = Clock()
    with clock:
        work()
    return clock.total.wall


def read(stream: Iterable[Any]) -> tuple[float, float]:
    """Return the seconds until the first piece of a stream, and until its end."""
    started, first = time.perf_counter(), 0.0
    for _ in stream:
        first = first or time.perf_counter() - started
    return first, time.perf_counter() - started


async def aread(stream: AsyncIterator[Any]) -> tuple[float, float]:
    """Return the seconds until the first piece of a stream, and until its end."""
    started, first = time.perf_counter(), 0.0
    async for _ in stream:
        first = first or time.perf_counter() - started
    return first, time.perf_counter() - started


# --- Processes ----------------------------------------------------------------------------------


def alone(measure: Callable[..., T], *arguments: Any) -> T:
    """Run a function in its own process, and return its result."""
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawn) as pool:
        return pool.submit(measure, *arguments).result()


def peak_mb() -> float:
    """Return the peak resident memory of this process, in MB."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1024 if sys.platform == "linux" else 1024**2)


# --- What is printed ----------------------------------------------------------------------------


def load() -> str:
    """Return a line about how busy the machine is, because load changes the figures."""
    return f"load of the last minute: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores\n"


def tell_goals(over: Sequence[str]) -> None:
    """Print the figures that are over their goals."""
    print("\n".join(f"over the goal: {one}" for one in over) or "nothing is over its goal")


def line(cells: Iterable[str]) -> str:
    """Return a line of a table in Markdown."""
    return f"| {' | '.join(cells)} |"


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table in Markdown; the first column is text, the others are figures."""
    return "\n".join(map(line, [heads, ["---", *["---:"] * (len(heads) - 1)], *rows]))
