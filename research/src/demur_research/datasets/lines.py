"""Offer the data sets to `demur compare NAME`.

demur finds `rows` by the entry point `demur.data_sets`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from demur_research.datasets import DATA_SETS, read


def rows(name: str, path: Path | None = None) -> Iterator[Mapping[str, Any]]:
    """Return the rows of a data set, in the form of `LabelledRow.as_line`.

    Args:
        name: One of `DATA_SETS`.
        path: The folder of all data sets, the folder of this one, or its file; None: see `read`.

    Raises:
        LookupError: There is no data set of this name. The message lists the names.
        ValueError: Its files cannot be found, downloaded or read.
    """
    if name not in DATA_SETS:
        known = ", ".join(DATA_SETS)
        raise LookupError(f"unknown data set {name!r}: expected one of {known}")
    return (row.as_line() for row in read(name, path))
