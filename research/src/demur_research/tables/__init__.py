"""Every table and figure of the sources that can be run, and our own, by name."""

from __future__ import annotations

from collections.abc import Mapping

from demur_research.bench import NotRun, Table
from demur_research.tables.fewl import FEWL_NOT_RUN, FEWL_TABLES

TABLES: Mapping[str, Table] = {table.name: table for table in (*FEWL_TABLES,)}
"""By name, in the order in which they are listed."""

NOT_RUN: tuple[NotRun, ...] = (*FEWL_NOT_RUN,)
"""Those of the sources that cannot be run."""
