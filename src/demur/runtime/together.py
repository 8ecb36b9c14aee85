"""Several pieces of an evaluation as one, so that what depends on no other waits for none."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import TypeVar

from demur._undetermined import UndeterminedError
from demur.runtime.steps import Calls, Steps
from demur.runtime.tries import Outcome

T = TypeVar("T")


def side_by_side(parts: Sequence[Steps[T]]) -> Steps[list[T]]:
    """What each part returns, in order; the calls that the parts ask for at a time are one batch.

    Use it as `results = yield from side_by_side(parts)`.

    Raises:
        UndeterminedError: A part raised it. All parts come to their ends before; if several raised
            it, that of the first part is raised.
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
        failed.clear()  # an error that is kept by its own traceback would be nobody's to free
