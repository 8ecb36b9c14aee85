"""Test what is true of every table."""

from __future__ import annotations

import pytest

from demur_research.tables import NOT_RUN, TABLES

PAPERS = {  # The number of tables and figures in each paper.
    "FEWL, version 1": (10, 4),
    "FEWL, version 2": (16, 4),
    "Reverse Validation": (8, 1),
}


@pytest.mark.parametrize("paper", PAPERS)
def test_every_table_and_figure_of_a_paper_can_be_run_or_it_is_told_why_not(paper: str) -> None:
    tables, figures = PAPERS[paper]
    listed = {one.source for one in (*TABLES.values(), *NOT_RUN)}
    every = [f"{paper}, Table {at}" for at in range(1, tables + 1)]
    every += [f"{paper}, Figure {at}" for at in range(1, figures + 1)]
    assert [one for one in every if one not in listed] == []
    run = {table.source for table in TABLES.values()}
    assert not run & {one.source for one in NOT_RUN}
