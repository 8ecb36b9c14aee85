"""Several pieces of an evaluation as one, so that what depends on no other waits for none."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import TypeVar

from demur.runtime.calls import Steps
from demur.runtime.tries import Outcome

T = TypeVar("T")


def side_by_side(parts: Sequence[Steps[T]]) -> Steps[list[T]]:
    """What each part returns, in order; the calls that the parts ask for at a time are one batch.

    `found = yield from side_by_side(...)` this.
    """
    results: dict[int, T] = {}
    outcomes: dict[int, Sequence[Outcome] | None] = dict.fromkeys(range(len(parts)))
    while True:
        batches = {}
        for at, sent in outcomes.items():
            try:
                batches[at] = next(parts[at]) if sent is None else parts[at].send(sent)
            except StopIteration as stop:
                results[at] = stop.value
        if not batches:
            return [results[at] for at in range(len(parts))]
        replies = iter((yield [call for calls in batches.values() for call in calls]))
        outcomes = {at: list(islice(replies, len(calls))) for at, calls in batches.items()}
