"""The data sets for `demur compare NAME`, which finds this by the entry point `demur.data_sets`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from demur_research.datasets import DATA_SETS, read


def rows(name: str, path: Path | None = None) -> Iterator[Mapping[str, Any]]:
    """The rows of a data set, as `LabelledRow.as_line` writes them.

    Args:
        name: One of `DATA_SETS`.
        path: See `read`.

    Raises:
        LookupError: There is no data set of this name; the message lists those that there are.
        ValueError: Its files cannot be had or read.
    """
    if name not in DATA_SETS:
        known = ", ".join(DATA_SETS)
        raise LookupError(f"unknown data set {name!r}: expected one of {known}")
    return (row.as_line() for row in read(name, path))
