"""Find demur-ray for the option `--ray`, because demur does not import it."""

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
"""The group of entry points in which demur-ray registers `ray`, a function of the type `Open`. It
raises DemurError if there is no such cluster, or if its workers cannot score."""


class Cluster(Protocol):
    """Represent workers that score."""

    @property
    def scorers(self) -> Mapping[str, Scorer]:
        """Return the evaluators by name; each of them scores on the cluster."""
        ...

    def prepare(
        self, total: int, questions: Iterable[str], *, progress: Callable[[Fitted], None]
    ) -> Fitted:
        """Have references asked about `total` questions, and call `progress` after each one."""
        ...


Make = Callable[[], Mapping[str, Scorer]]
Open = Callable[[str, Make, int, Mapping[str, Scorer]], AbstractContextManager[Cluster]]
"""A function that opens a cluster. Its arguments are the address, the function that makes the
evaluators in each worker, a limit, and the evaluators of this process. The limit holds for all
workers together: that many answers, and that many requests to one endpoint, at a time."""


@contextmanager
def on_ray(address: str, method: Method, make: Make, at_once: int, rows: int) -> Iterator[Method]:
    """Yield the method with evaluators that score on a Ray cluster until the block ends.

    Args:
        address: The address of the cluster.
        method: The method with the evaluators of this process.
        make: A function that makes the evaluators in each worker.
        at_once: The limit for all workers together, as in `Open`.
        rows: The number of rows to score.

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
