"""A run: every item is judged by every configuration that the recording has no result of."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from demur.runtime import as_completed
from demur_research.recorder import Item, Line, Recording

T = TypeVar("T")


@dataclass(frozen=True)
class Finding:
    """What a configuration makes of an item."""

    result: Mapping[str, Any]
    """As JSON."""
    error: str | None = None
    """Why it could not be decided."""


def run(
    recording: Recording,
    items: Sequence[Item[T]],
    judges: Mapping[str, Callable[[T], Finding]],
    told: Callable[[int, int], None] = lambda done, total: None,
    *,
    at_once: int = 1,
    retry: bool = False,
) -> None:
    """Record what is missing, configuration by configuration, in the order of the items.

    So the instructions of one stay in a server's prefix cache.

    Args:
        recording: Where the results go.
        items: What is judged.
        judges: By the configurations' names, what judges an item. What it raises ends the run;
            what was found before is kept.
        told: How many are done, and of how many, at the beginning and after each.
        at_once: How many are under way at a time.
        retry: Whether to judge again what was left undecided.
    """
    wanted = [(name, item) for name in judges for item in items]
    lacking = [job for job in wanted if recording.lacks(job[1].key, job[0], retry)]

    def judged(job: tuple[str, Item[T]]) -> Line:
        name, item = job
        finding = judges[name](item.value)
        return Line(
            item=item.key,
            content=item.digest,
            model=recording.model,
            configuration=name,
            error=finding.error,
            result=dict(finding.result),
        )

    done = len(wanted) - len(lacking)
    told(done, len(wanted))
    for line in as_completed(judged, lacking, at_once):
        recording.append(line)
        done += 1
        told(done, len(wanted))
