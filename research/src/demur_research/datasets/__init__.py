"""Public data sets, read as their publishers keep them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from demur_research.datasets.catalogue import DataSet
from demur_research.datasets.rows import Reading

DATA_SETS: Mapping[str, DataSet] = {}
"""By name."""


def read(name: str, data: Path | None = None) -> Reading:
    """The rows of a data set.

    Args:
        name: One of `DATA_SETS`.
        data: The folder of the data sets, or the set's own; None: `DEMUR_DATA`, or what was
            downloaded before.

    Raises:
        ValueError: The name is unknown, or the files cannot be had or read; the message says where
            to put them.
    """
    raise ValueError(f"unknown data set {name!r}: expected one of {', '.join(DATA_SETS)}")
