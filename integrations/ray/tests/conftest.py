"""Start a Ray cluster on this machine."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator

import pytest
import ray
from ray.cluster_utils import Cluster
from ray.data import DataContext

import judges

CPUS = 2


@pytest.fixture
def cluster(nodes: Cluster) -> Cluster:
    """Return the cluster once the last test's workers have ended; Ray does not wait for that."""
    judges.wait(lambda: not judges.workers())
    return nodes


@pytest.fixture(scope="package")  # An idle cluster takes as much of a processor as a test.
def nodes() -> Iterator[Cluster]:
    """Start Ray as on machines: one node with two CPUs, to which tests may add other nodes."""
    logging.getLogger("ray").setLevel("ERROR")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        # Workers are not to wait until all tests beside theirs leave them a processor.
        patch.setenv("RAY_worker_niceness", "0")
        # Workers need the same import paths as pytest.
        patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, sys.path)))
        head = {"num_cpus": CPUS, "include_dashboard": False}
        made = Cluster(initialize_head=True, head_node_args=head)
        ray.init(made.address, log_to_driver=False, logging_level="error")
        context = DataContext.get_current()
        context.enable_progress_bars = False
        context.print_on_execution_start = False
        context.read_op_min_num_blocks = 1  # not 200 tasks for a few rows
        try:
            yield made
        finally:
            ray.shutdown()
            made.shutdown()
