"""What `demur score --ray ADDRESS` finds by its entry point."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import ray

from demur import DemurError
from demur_ray._pool import Pool
from demur_ray._sending import described

_LOCAL = "local"
_REACHED_SECONDS = 10.0


@contextmanager
def cluster(
    address: str, make: Callable[[], Mapping[str, Any]], at_once: int, made: Mapping[str, Any]
) -> Iterator[Pool]:
    """Workers on the cluster at an address, for the length of the block.

    Args:
        address: As `ray.init` takes it: "auto", "local", "HOST:PORT" or "ray://HOST:PORT".
        make: Makes the evaluators in each worker.
        at_once: Answers under way at a time, and requests to one endpoint, in all workers together.
        made: The evaluators as they are here, for comparison.

    Raises:
        DemurError: There is no such cluster, or its workers cannot have the evaluators.
    """
    with _connected(address), Pool(make, at_once, expected=described(made)) as pool:
        yield pool


@contextmanager
def _connected(address: str) -> Iterator[None]:
    """Ray, connected; as it is where this process is connected already."""
    if ray.is_initialized():
        yield
        return
    # What a worker writes goes to Ray's log on its node: findings tell what went wrong.
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": "error"}
    if address == _LOCAL:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        options["include_dashboard"] = False
    try:
        _reach(address)
        ray.init(address, **options)
    except (OSError, RuntimeError, ValueError) as error:
        why = " ".join(str(error).split())
        raise DemurError(f"there is no Ray cluster at {address!r}: {why:.300}") from error
    try:
        yield
    finally:
        ray.shutdown()


def _reach(address: str) -> None:
    """Connect to a host and port, since Ray would try for minutes.

    Raises:
        OSError: Nobody is there.
        ValueError: The port is no number in range.
    """
    parts = urlsplit(address if "://" in address else f"ray://{address}")
    if parts.hostname and parts.port:
        socket.create_connection((parts.hostname, parts.port), _REACHED_SECONDS).close()
