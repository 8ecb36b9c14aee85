"""How `--ray` finds demur-ray, which demur does not import."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import partial
from importlib.metadata import entry_points
from typing import Protocol

import typer

from demur.cli.methods import Method
from demur.evaluators import Fitted
from demur.scoring import Scorer

GROUP = "demur.clusters"
"""The group of entry points in which demur-ray has its own, `ray`: a function as `Open` has it. It
raises DemurError where there is no such cluster, or its workers cannot score."""


class Cluster(Protocol):
    """Workers that score."""

    @property
    def scorers(self) -> Mapping[str, Scorer]:
        """The evaluators, each of which scores on the cluster."""
        ...

    def prepare(
        self, total: int, questions: Iterable[str], *, progress: Callable[[Fitted], None]
    ) -> Fitted:
        """Have references asked about so many questions; `progress` is told after each."""
        ...


Make = Callable[[], Mapping[str, Scorer]]
Open = Callable[[str, Make, int, Mapping[str, Scorer]], AbstractContextManager[Cluster]]
"""From an address, what makes the evaluators in each worker, the answers and the requests to one
endpoint that may be under way in all workers together, and the evaluators as they are here."""


@contextmanager
def on_ray(address: str, method: Method, make: Make, at_once: int, rows: int) -> Iterator[Method]:
    """A method whose evaluators score on a Ray cluster, for the length of the block.

    Args:
        address: Where the cluster is.
        method: As it is here.
        make: Makes its evaluators in each worker.
        at_once: As `Open` has it.
        rows: How many there are to be scored.

    Raises:
        typer.BadParameter: demur-ray is not installed.
        DemurError: There is no such cluster, or its workers cannot score.
    """
    points = [*entry_points(group=GROUP, name="ray")]
    if not points:
        raise typer.BadParameter(
            "scoring on a Ray cluster needs demur-ray. Run: pip install demur-ray",
            param_hint="--ray",
        )
    opens: Open = points[0].load()
    with opens(address, make, at_once, method.evaluators) as cluster:
        ask = None if method.prepare is None else partial(cluster.prepare, rows)
        yield replace(method, evaluators=cluster.scorers, prepare=ask)
