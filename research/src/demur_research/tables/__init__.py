"""List every table and figure of the papers that can be run, and demur's own tables, by name."""

from __future__ import annotations

from collections.abc import Mapping

from demur_research.bench import NotRun, Table
from demur_research.tables import (
    actions,
    answers,
    bare,
    calls,
    claims,
    confidence,
    disputes,
    everyday,
    exact,
    fewl,
    figures,
    guarded,
    injection,
    judges,
    languages,
    quotes,
    refchecker,
    reverse_validation,
    statements,
    unchecked,
    window_sizes,
    windows,
)

TABLES: Mapping[str, Table] = {
    table.name: table
    for tables in (
        fewl.TABLES,
        reverse_validation.TABLES,
        refchecker.TABLES,
        claims.TABLES,
        everyday.TABLES,
        judges.TABLES,
        confidence.TABLES,
        answers.TABLES,
        bare.TABLES,
        unchecked.TABLES,
        guarded.TABLES,
        injection.TABLES,
        windows.TABLES,
        window_sizes.TABLES,
        exact.TABLES,
        figures.TABLES,
        disputes.TABLES,
        statements.TABLES,
        languages.TABLES,
        actions.TABLES,
        calls.TABLES,
        quotes.TABLES,
    )
    for table in tables
}
"""The tables by name, in the order in which they are listed."""

NOT_RUN: tuple[NotRun, ...] = (*fewl.NOT_RUN, *reverse_validation.NOT_RUN)
"""The tables and figures of the papers that cannot be run."""
