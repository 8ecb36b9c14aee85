"""Run the independent parts of an evaluation side by side, so that none waits for another."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import TypeVar

from demur.runtime.steps import Calls, Steps
from demur.runtime.tries import Outcome
from demur.runtime.undetermined import UndeterminedError

T = TypeVar("T")


def side_by_side(parts: Sequence[Steps[T]]) -> Steps[list[T]]:
    """Run the parts side by side, and return their results in order.

    The calls that the parts ask for at the same time become one batch. Use it as
    `results = yield from side_by_side(parts)`.

    Raises:
        UndeterminedError: A part raised it. All parts run to their ends before. If several raised
            it, the error of the first of these parts is raised.
    """
    results: dict[int, T] = {}
    failed: dict[int, UndeterminedError] = {}
    came: dict[int, Sequence[Outcome[object]] | None] = dict.fromkeys(range(len(parts)))
    while True:
        batches: dict[int, Calls] = {}
        for at, sent in came.items():
            try:
                effect = parts[at].send(sent)
                while not isinstance(effect, Calls):
                    yield effect
                    effect = parts[at].send(None)
                batches[at] = effect
            except StopIteration as stop:
                results[at] = stop.value
            except UndeterminedError as error:
                failed[at] = error
        if not batches:
            break
        outcomes = iter((yield Calls([c for batch in batches.values() for c in batch.calls])) or ())
        came = {at: list(islice(outcomes, len(batch.calls))) for at, batch in batches.items()}
    try:
        if failed:
            raise failed[min(failed)]
        return [results[at] for at in range(len(parts))]
    finally:
        failed.clear()  # breaks the reference cycle between an error and its traceback
