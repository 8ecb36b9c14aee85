"""Every table and figure of the sources that can be run, and our own, by name."""

from __future__ import annotations

from collections.abc import Mapping

from demur_research.bench import NotRun, Table

TABLES: Mapping[str, Table] = {}
"""By name, in the order in which they are listed."""

NOT_RUN: tuple[NotRun, ...] = ()
"""Those of the sources that cannot be run."""
