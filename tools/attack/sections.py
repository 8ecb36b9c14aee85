"""Run each section of the attack in its own process."""

from __future__ import annotations

import argparse
import importlib
import multiprocessing
import sys
import warnings
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from .truth import Tally

_ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(_ROOT / "tests"), str(_ROOT / "integrations/llama-index/tests")]

# For each section: its module, its size, its size with --quick, and its time limit in seconds.
SECTIONS: dict[str, tuple[str, int, int, float]] = {
    "guards": ("guards", 17_000, 200, 1200),
    "beside": ("beside", 1_000, 120, 300),
    "chunks": ("chunks", 7_000, 140, 600),
    "edits": ("edits", 12_000, 300, 900),
    "graphs": ("graphs", 272, 6, 1200),
    "llama": ("llama", 3_000, 40, 900),
    "concurrency": ("concurrency", 1_500, 60, 900),
    "memory": ("memory", 12_000, 500, 1200),
    "kills": ("kills", 60, 1, 900),
    "damage": ("damage", 500, 20, 1200),
    "calibrations": ("calibrations", 100_000, 1_200, 900),
}
CONTROLS = ("guards", "beside", "chunks", "edits", "graphs", "llama")
"""The sections that can run without the guard."""


def apart(name: str, options: argparse.Namespace) -> Iterator[Tally]:
    """Yield the tallies of a section from its process, which is killed if it takes too long."""
    limit = SECTIONS[name][3]
    ours, theirs = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.get_context("spawn").Process(
        target=_section, args=(name, options, theirs)
    )
    process.start()
    theirs.close()
    while True:
        try:
            if not ours.poll(limit):
                raise TimeoutError
            found = ours.recv()
        except (EOFError, TimeoutError) as error:
            hung = isinstance(error, TimeoutError)
            lost = Tally(name)
            lost.add("hung" if hung else "wrong", "no result" if hung else "it broke off")
            process.kill()
            yield lost
            return
        if found is None:
            process.join()
            return
        yield found


def _section(name: str, options: argparse.Namespace, tell: Connection) -> None:
    warnings.filterwarnings("ignore")
    module, count, quick, _ = SECTIONS[name]
    given: dict[str, Any] = {"seed": options.seed}
    if name in CONTROLS:
        given["guarded"] = not options.unguarded
    try:
        attack = importlib.import_module(f"tools.attack.{module}").attack
    except ModuleNotFoundError as error:
        tell.send(Tally(name, notes=[f"skipped: {error.name} is not installed"]))
    else:
        for tally in attack(quick if options.quick else count, **given):
            tell.send(tally)
    tell.send(None)
