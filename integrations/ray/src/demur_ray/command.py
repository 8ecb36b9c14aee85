"""Provide the cluster of `demur score --ray ADDRESS`, which demur finds by an entry point."""

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
    """Provide workers on the cluster at an address, inside a `with` block.

    Args:
        address: The address, as `ray.init` takes it: "auto", "local", "HOST:PORT" or
            "ray://HOST:PORT".
        make: A function that makes the evaluators in each worker.
        at_once: The most answers under way at a time, and the most requests to one endpoint at a
            time, in all workers together.
        made: The evaluators as this process made them, for comparison with those of the workers.

    Raises:
        DemurError: There is no such cluster, or its workers cannot make the evaluators.
    """
    with _connected(address), Pool(make, at_once, expected=described(made)) as pool:
        yield pool


@contextmanager
def _connected(address: str) -> Iterator[None]:
    """Connect to Ray for the length of a `with` block, unless this process is connected already."""
    if ray.is_initialized():
        yield
        return
    # A worker's output goes to Ray's log on its node, because the results say what went wrong.
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": "error"}
    if address == _LOCAL:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        options["include_dashboard"] = False
    try:
        _reach(address)
        ray.init(address, **options)
    except (OSError, RuntimeError, ValueError) as error:
        why = " ".join(str(error).split())
        raise DemurError(
            f"there is no Ray cluster at {address!r}, so start one with ray start --head, or give "
            f"'local' for a cluster of this machine alone: {why:.300}"
        ) from error
    try:
        yield
    finally:
        ray.shutdown()


def _reach(address: str) -> None:
    """Connect to a host and port once, because Ray would try for minutes.

    Raises:
        OSError: The host cannot be reached within 10 seconds.
        ValueError: The port is not a number in the range of ports.
    """
    parts = urlsplit(address if "://" in address else f"ray://{address}")
    if parts.hostname and parts.port:
        socket.create_connection((parts.hostname, parts.port), _REACHED_SECONDS).close()
